"""What of a store that an earlier version has left? Its messages are taken up, and the file kept.

Until format 2 a store was an SQLite file. It is read as that version read it; then it gets another
name, so that it is taken up once.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidings.core.contract import Destination
from tidings.core.message import Envelope
from tidings.live.journal.frames import Kept
from tidings.live.journal.journal import NoJournal

LOCKED_WITHIN_S = 5.0  # a broker of that version may still be ending
FORMAT_OF_SQLITE = 1
READ_STORED = """
SELECT id, stored_at, envelope, destination FROM message JOIN owed ON message = id
ORDER BY stored_at, id, broker
"""

_envelopes = msgspec.msgpack.Decoder(Envelope)
_destinations = msgspec.msgpack.Decoder(Destination)


def earlier_messages(path: Path) -> list[Kept]:
    """All that the SQLite file of an earlier version holds, oldest first."""
    try:
        with closing(sqlite3.connect(path, timeout=LOCKED_WITHIN_S)) as database:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN IMMEDIATE")  # raises if a broker of that version has it open
            _check(database)
            rows = database.execute(READ_STORED).fetchall()
            database.rollback()
        return [_kept(list(owed)) for _, owed in groupby(rows, key=lambda row: row[0])]
    except (sqlite3.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        advice = "move this store of an earlier version away to start without its messages"
        raise NoJournal(f"{path} cannot be taken up: {error}; {advice}") from None


def put_away(path: Path) -> None:
    """The file has been taken up."""
    os.replace(path, path.with_name(f"{path.name}.taken-up"))


def _check(database: sqlite3.Connection) -> None:
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found != FORMAT_OF_SQLITE:
        raise sqlite3.DatabaseError("it is not a store of Tidings")
    (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(state)


def _kept(rows: list[tuple[int, float, bytes, bytes]]) -> Kept:
    _, stored_at, envelope, _ = rows[0]
    owed = tuple(_destinations.decode(row[3]) for row in rows)
    return Kept(stored_at, replace(_envelopes.decode(envelope), destinations=owed))
