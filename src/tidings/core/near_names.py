"""Which known name was probably meant by one that is not known?

Names are compared without case and separators, since `deadline_ms` and `DeadlineMs` are the usual
ways to miss `deadline-ms`. A wrong suggestion in an error costs nothing, so it is generous. Whoever
acts on a name that is not known, as brokers do on properties, asks for a slip: a name with hardly a
letter that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

NEAR = 0.6  # the share of letters in common that difflib's own suggestions ask for
LETTERS_PER_SLIP = 5  # so that `lat` and `date` are no slips of `late`, but `prise` is of `price`


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question to end an error with, " Did you mean 'x'?", or nothing if no name is near."""
    by_letters = _by_letters(known)
    near = get_close_matches(_letters(name), by_letters, n=1, cutoff=NEAR)
    return f" Did you mean {by_letters[near[0]]!r}?" if near else ""


def slip_of(name: str, known: Iterable[str]) -> str | None:
    """The known name of which this one can only be a misspelling, if there is one."""
    letters = _letters(name)
    for known_letters, known_name in _by_letters(known).items():
        allowed = len(known_letters) // LETTERS_PER_SLIP
        if name != known_name and _wrong_letters(letters, known_letters) <= allowed:
            return known_name
    return None


def _by_letters(known: Iterable[str]) -> dict[str, str]:
    return {_letters(name): name for name in sorted(known, reverse=True)}


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _wrong_letters(one: str, other: str) -> int:
    """How many letters are wrong, missing or too many; two that changed places count as one."""
    longer = max(len(one), len(other))
    if longer - min(len(one), len(other)) > longer // LETTERS_PER_SLIP:
        return longer  # spares the work: no comparison finds less than the difference in length
    matches = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return longer - sum(match.size for match in matches)
