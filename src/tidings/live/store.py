"""How does a durable message survive a crash of the broker that holds it? It is stored first.

There is one SQLite file per broker. In WAL mode a commit is an append and one fsync; what was
committed survives a killed process and a loss of power. All that one round of the driver stores is
one commit, and the commit ends before anything of that round is sent. Deletions wait for the next
commit: a message that is deleted too late is at worst sent twice.

An age is stored together with the wall clock's instant, so that the time between two incarnations
counts as age; a wall clock that was set back meanwhile makes no message younger. Copies are
counted: a message may return to a broker before the acknowledgement that it was handed on, and it
is then still stored once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import msgspec

from tidings.core.contract import Destination
from tidings.core.errors import TidingsError
from tidings.core.message import Envelope, Parcel

LOCKED_WITHIN_S = 5.0  # an earlier incarnation that is still ending may hold the file
LONGEST_S = 3e8  # ten years, of age or downtime; more means that a clock was not set
FORMAT = 1
CREATE_TABLES = """
BEGIN;
CREATE TABLE message (id INTEGER PRIMARY KEY, stored_at REAL NOT NULL, envelope BLOB NOT NULL);
CREATE TABLE owed (message INTEGER NOT NULL, broker TEXT NOT NULL, destination BLOB NOT NULL,
                   PRIMARY KEY (message, broker)) WITHOUT ROWID;
PRAGMA user_version = 1;
COMMIT;
"""
READ_STORED = """
SELECT id, stored_at, envelope, destination FROM message JOIN owed ON message = id
ORDER BY stored_at, id, broker
"""

_encode = msgspec.msgpack.Encoder().encode
_envelopes = msgspec.msgpack.Decoder(Envelope)
_destinations = msgspec.msgpack.Decoder(Destination)

_Row = tuple[int, float, bytes, bytes]


class StoreError(TidingsError):
    """A store that cannot be opened, or has failed: nothing more can be stored."""


class MessageStore:
    """The durable messages that one broker is responsible for, on its disk."""

    def __init__(self, path: Path, wall: Callable[[], float] = time.time) -> None:
        """Opens the file, or makes it; nobody else can use it meanwhile."""
        self.path, self._wall = path, wall
        self.urgent = False  # something must be on the disk before this round is answered
        self._failure: StoreError | None = None
        self._copies: dict[int, dict[str, int]] = {}  # held of each message, by destination
        # What the next commit writes, or deletes where there is None.
        self._messages: dict[int, tuple[float, bytes] | None] = {}
        self._owed: dict[tuple[int, str], bytes | None] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = _open(path)
        except (OSError, ValueError, sqlite3.Error) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise StoreError(f"{path} cannot be used: {why}") from None

    def __len__(self) -> int:
        """How many messages it holds, or will after the next commit."""
        return len(self._copies)

    # ---- what the broker wants written

    def keep(self, parcel: Parcel, now: float) -> None:
        """What this parcel owes is to be on the disk after the next commit."""
        message = parcel.message.id
        copies = self._copies.get(message)
        if copies is None:
            copies = self._copies[message] = {}
            self._messages[message] = (self._wall(), _encode(parcel.stored(_age_s(parcel, now))))
        for destination in parcel.destinations:
            broker = destination.broker
            held = copies.get(broker, 0)
            copies[broker] = held + 1
            if not held:
                self._owed[message, broker] = _encode(destination)
                self.urgent = True

    def forget(self, message: int, brokers: tuple[str, ...]) -> None:
        """One copy fewer to these destinations; the last one is deleted by some later commit."""
        copies = self._copies.get(message, {})
        for broker in brokers:
            held = copies.get(broker, 0)
            if held > 1:
                copies[broker] = held - 1
            elif held:
                del copies[broker]
                self._owed[message, broker] = None
                if not copies:
                    del self._copies[message]
                    self._messages[message] = None

    def commit(self) -> None:
        """All that was kept is on the disk when this returns. After a failure it fails for ever:
        a disk that has lost a write may report success when it is asked again."""
        if self._failure:
            raise self._failure
        if not self._owed:
            return
        try:
            self._write()
        except sqlite3.Error as error:
            self._failure = StoreError(f"{self.path} cannot be written: {error}")
            raise self._failure from None
        self._messages, self._owed, self.urgent = {}, {}, False

    def _write(self) -> None:
        messages, owed, run = self._messages, self._owed, self._database.executemany
        with self._database:
            run(
                "DELETE FROM message WHERE id = ?", ((m,) for m, row in messages.items() if not row)
            )
            run(
                "DELETE FROM owed WHERE message = ? AND broker = ?",
                (key for key, row in owed.items() if row is None),
            )
            run(
                "INSERT OR REPLACE INTO message VALUES (?, ?, ?)",
                ((m, *row) for m, row in messages.items() if row),
            )
            run(
                "INSERT OR REPLACE INTO owed VALUES (?, ?, ?)",
                ((*key, row) for key, row in owed.items() if row is not None),
            )

    def close(self) -> None:
        """Writes the last deletions, if it can, and releases the file."""
        with suppress(StoreError):  # what must not be lost was committed before
            self.commit()
        self._database.close()

    # ---- what an earlier incarnation left

    def restore(self, now: float) -> list[Parcel]:
        """All that is stored, oldest first, as parcels by the clock of this incarnation."""
        try:
            rows = self._database.execute(READ_STORED).fetchall()
            parcels = list(_parcels(rows, now, self._wall()))
        except (sqlite3.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from None
        for parcel in parcels:
            self._copies[parcel.message.id] = {d.broker: 1 for d in parcel.destinations}
        return parcels


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=LOCKED_WITHIN_S)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        (found,) = database.execute("PRAGMA user_version").fetchone()
        empty = not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if found != (0 if empty else FORMAT):
            raise sqlite3.DatabaseError("it is not a store of this version of Tidings")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")  # raises if nothing can be written
        database.rollback()
        if empty:
            database.executescript(CREATE_TABLES)
        (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(state)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _age_s(parcel: Parcel, now: float) -> float:
    return min(max(0.0, now - parcel.born_at), LONGEST_S)


def _parcels(rows: list[_Row], now: float, wall_now: float) -> Iterator[Parcel]:
    for (_, stored_at, body), owed in groupby(rows, key=lambda row: row[:3]):
        envelope = _envelopes.decode(body)
        destinations = tuple(_destinations.decode(row[3]) for row in owed)
        downtime_s = min(max(0.0, wall_now - stored_at), LONGEST_S)
        yield envelope.restored(destinations, now - envelope.age_s - downtime_s)
