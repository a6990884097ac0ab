"""The one tree of errors: what must not happen.

What may happen is a value (a late message is a `Dropped` row). An error is either ours to report
to the person who wrote a file (`ConfigError`), theirs to hear on the wire (`WireError`), or a
mistake in a text they typed (`SyntaxFault`); each message is one paragraph that says what is
accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidings.core.near_names import suggestion

SHOWN_CHARACTERS = 60  # of a long text, on each side of the fault
A_FEW = 8  # of the names of brokers, of which there may be dozens


class TidingsError(Exception):
    """The root: catching it catches every error this project raises on purpose."""


class ConfigError(TidingsError):
    """A file, option or parameter that cannot be used, found before anything runs."""

    def __init__(self, source: str, field: str, value: object, accepted: str) -> None:
        self.source, self.field, self.value, self.accepted = source, field, value, accepted
        shown = "missing" if value is None else repr(value)
        end = "" if accepted.endswith("?") else "."  # see `one_of`
        super().__init__(f"{source}: {field} is {shown}, but accepted is: {accepted}{end}")


class FileError(TidingsError):
    """A file or folder that is not there, or that the system does not let us read."""

    def __init__(self, path: str, problem: str | None, named_by: str = "", hint: str = "") -> None:
        """`named_by` is the option, or the file and its field, that named the path."""
        self.path, self.problem = path, problem or "cannot be read"
        where = f" (named by {named_by})" if named_by else ""
        super().__init__(f"{path}: {self.problem}{where}.{hint}")


def one_of(
    known: Iterable[str], name: object, what: str = "one of", most: int | None = None
) -> str:
    """What is accepted instead of a name that is not known, and which of it was probably meant."""
    names = tuple(known)
    meant = suggestion(name, names) if isinstance(name, str) else ""
    return f"{what} {some_of(names, most or len(names))}{'.' if meant else ''}{meant}"


def some_of(names: Sequence[str], most: int) -> str:
    """A list as a person reads it: the first ones, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def first_line(error: BaseException) -> str:
    """What an error of somebody else's says, as far as it fits into a sentence of ours."""
    return str(error).strip().partition("\n")[0]


class SyntaxFault(TidingsError):
    """A text (topic, filter, predicate) with a fault at one character, which the message shows."""

    what = "text"

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text, self.position, self.problem = text, position, problem
        start = max(0, position - SHOWN_CHARACTERS)
        shown = "".join(c if c.isprintable() else "?" for c in text[start:][: 2 * SHOWN_CHARACTERS])
        pointer = " " * (position - start + 2) + "^"
        super().__init__(
            f"bad {self.what} at character {position + 1}: {problem}\n  {shown}\n{pointer}"
        )


class TopicError(SyntaxFault):
    what = "topic"


class FilterError(SyntaxFault):
    what = "topic filter"


class PredicateError(SyntaxFault):
    what = "where predicate"


class WireError(TidingsError):
    """Bytes from a peer that no correct peer sends; `code` is what the protocol answers with."""

    def __init__(self, problem: str, code: int = 0) -> None:
        self.problem, self.code = problem, code
        super().__init__(problem)


class Unwelcome(WireError):
    """A broker with which there is to be no link."""

    def __init__(self, problem: str, told: str = "") -> None:
        """`told`: what the peer is told of it, if not all."""
        self.told = told or problem
        super().__init__(problem)


class CheckFailed(TidingsError):
    """A run broke a law that every run must keep; the seed in the message is the bug report."""
