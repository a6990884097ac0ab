"""What is to be said about a journal that was found? Nothing, if it is whole."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tidings.live.journal.committed import Committed
from tidings.live.journal.recovery import Recovered


class StoreFiles(Struct, frozen=True):
    """Both files of a store as they were found."""

    journal: Path
    journal_exists: bool
    note: Path  # says how far the journal was written
    note_exists: bool
    committed: Committed | None  # what the note says, if it can be read
    found: Recovered  # in the journal

    @property
    def journal_is_damaged(self) -> bool:
        return self.journal_exists and self.found.missing > 0

    @property
    def note_is_damaged(self) -> bool:
        return self.note_exists and self.committed is None

    @property
    def foreign(self) -> bool:
        """Whether the two files are of two stores."""
        began, committed = self.found.began, self.committed
        return began is not None and committed is not None and began.store != committed.store


def reports(files: StoreFiles) -> list[str]:
    """One sentence or two for each thing that is wrong."""
    found, about = files.found, []
    if not files.journal_exists and files.note_exists:
        held = f"the {found.held} messages in it are" if files.committed else "what was in it is"
        about.append(f"{files.journal} is missing: {held} lost")
    if files.journal_is_damaged:
        about.append(
            f"{files.journal} is damaged: {found.missing} of its records are missing or cannot "
            f"be read, and {_lost(found)}. The {len(found.messages)} that can be read are taken up"
        )
    if problem := _note_problem(files):
        unknown = f"whether {files.journal} has lost its end cannot be told"
        about.append(f"{files.note} {problem}: {unknown}")
    return about


def _note_problem(files: StoreFiles) -> str:
    """What is wrong with the file that says how far a journal was written."""
    found = files.found
    if not files.journal_exists:
        return ""
    if not files.note_exists:  # it is made after the journal, and may not have come to that
        return "is missing" if found.last > found.first or found.missing else ""
    if files.note_is_damaged:
        return "is damaged"
    return "belongs to another store" if files.foreign else ""


def _lost(found: Recovered) -> str:
    least, most = found.lost
    if most == 0:
        return f"none of {found.held} messages is lost"
    number = str(least) if least == most else f"between {least} and {most}"
    return f"{number} of {found.held} messages {'is' if most == 1 else 'are'} lost"
