"""How does a durable message survive a crash of the broker that holds it? It is stored first.

There is one journal per broker (`journal.journal`); what was committed survives a killed process
and a loss of power. All that one round of the driver stores is one commit, and the commit ends
before anything of that round is sent. What is struck out waits for the next commit: a message that
is struck out too late is at worst sent twice.

An age is stored together with the wall clock's instant, so that the time between two incarnations
counts as age; a wall clock that was set back meanwhile makes no message younger. Copies are
counted: a message may return to a broker before the acknowledgement that it was handed on, and it
is then still stored once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidings.core.contract import Destination
from tidings.core.errors import TidingsError
from tidings.core.parcel import Parcel, restored
from tidings.live.journal.earlier import earlier_messages, put_away
from tidings.live.journal.frames import Kept
from tidings.live.journal.journal import Journal, NoJournal
from tidings.live.logs.files import locked
from tidings.live.logs.records import LogError

LOCKED_WITHIN_S = 5.0  # an earlier incarnation that is still ending may hold the lock
LONGEST_S = 3e8  # ten years, of age or downtime; more means that a clock was not set


class StoreError(TidingsError):
    """A store that cannot be opened, or has failed: nothing more can be stored."""


class MessageStore:
    """The durable messages that one broker is responsible for, on its disk."""

    def __init__(self, path: Path, wall: Callable[[], float] = time.time) -> None:
        """Opens the journal, or makes it; nobody else can use it meanwhile."""
        self.path, self._wall = path, wall
        self.urgent = False  # something must be on the disk before this round is answered
        self._failure: StoreError | None = None
        self._copies: dict[int, dict[str, int]] = {}  # held of each message, by destination
        # What the next commit writes: a message as it was last kept, and by its destinations
        # whether it is owed to them, or (None) no more.
        self._kept: dict[int, tuple[float, Parcel, float]] = {}
        self._owed: dict[int, dict[str, Destination | None]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = locked(path.with_suffix(".lock"), LOCKED_WITHIN_S)
        except LogError:
            raise StoreError(f"{path} is in use by another process") from None
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None
        try:
            earlier = path.with_suffix(".db")
            taken = earlier_messages(earlier) if earlier.exists() else None
            self._journal = Journal(path)
            self.reports = self._journal.reports  # what was damaged or missing, for people
            if taken is not None:
                self._take_up(taken)
                put_away(earlier)
        except (OSError, NoJournal) as error:
            os.close(self._lock)
            raise self._unusable(error) from None

    def __len__(self) -> int:
        """How many messages it holds, or will after the next commit."""
        return len(self._copies)

    # ---- what the broker wants written

    def keep(self, parcel: Parcel, now: float) -> None:
        """What this parcel owes is to be on the disk after the next commit."""
        message = parcel.message.id
        copies = self._copies.setdefault(message, {})
        added: dict[str, Destination | None] = {}
        for destination in parcel.destinations:
            broker = destination.broker
            held = copies.get(broker, 0)
            copies[broker] = held + 1
            if not held:
                added[broker] = destination
        if added:
            self._kept[message] = (self._wall(), parcel, _age_s(parcel, now))
            self._owed[message] = self._owed.get(message, {}) | added
            self.urgent = True

    def forget(self, message: int, brokers: tuple[str, ...]) -> None:
        """One copy fewer to these destinations; the last one is struck out by some later commit."""
        copies = self._copies.get(message, {})
        for broker in brokers:
            held = copies.get(broker, 0)
            if held > 1:
                copies[broker] = held - 1
            elif held:
                del copies[broker]
                self._owed.setdefault(message, {})[broker] = None
                if not copies:
                    del self._copies[message]

    def commit(self) -> None:
        """All that was kept is on the disk when this returns. After a failure it fails for ever:
        a disk that has lost a write may report success when it is asked again."""
        if self._failure:
            raise self._failure
        if not self._owed:
            return
        try:
            self._write()
        except OSError as error:
            why = error.strerror or str(error)
            self._failure = StoreError(f"{self.path} cannot be written: {why}")
            raise self._failure from None
        self._kept, self._owed, self.urgent = {}, {}, False

    def _write(self) -> None:
        journal = self._journal
        for message, owed in self._owed.items():
            added = tuple(destination for destination in owed.values() if destination)
            if message not in self._copies:
                if message in journal:
                    journal.strike(message)
                continue
            if message in journal and len(added) < len(owed):
                journal.strike(message, tuple(b for b, owes in owed.items() if owes is None))
            if added:
                stored_at, parcel, age_s = self._kept[message]
                journal.keep(Kept(stored_at, parcel.stored(age_s, added)))
        journal.commit()

    def close(self) -> None:
        """Writes what is still to be struck out, if it can, and releases the files."""
        with suppress(StoreError):  # what must not be lost was committed before
            self.commit()
        self._journal.close()
        os.close(self._lock)

    # ---- what an earlier incarnation left

    def restore(self, now: float) -> list[Parcel]:
        """All that was stored, the longest stored first, as parcels by the clock of this
        incarnation. It is asked for once."""
        held, self._journal.recovered = self._journal.recovered, {}
        kept = sorted((h.whole() for h in held.values()), key=lambda k: k.stored_at)
        for one in kept:
            envelope = one.envelope
            self._copies[envelope.message.id] = {d.broker: 1 for d in envelope.destinations}
        wall_now = self._wall()
        return [_parcel(one, now, wall_now) for one in kept]

    def _take_up(self, taken: list[Kept]) -> None:
        """Messages that another store has held."""
        for kept in taken:
            self._journal.keep(kept)
        self._journal.commit()
        self._journal.close()
        self._journal = Journal(self.path)

    def _unusable(self, error: Exception) -> StoreError:
        why = getattr(error, "strerror", None) or str(error)
        return StoreError(f"{self.path} cannot be used: {why}")


def _age_s(parcel: Parcel, now: float) -> float:
    return min(max(0.0, now - parcel.born_at), LONGEST_S)


def _parcel(kept: Kept, now: float, wall_now: float) -> Parcel:
    envelope = kept.envelope
    downtime_s = min(max(0.0, wall_now - kept.stored_at), LONGEST_S)
    owed = tuple(sorted(envelope.destinations, key=lambda destination: destination.broker))
    return restored(envelope, owed, now - envelope.age_s - downtime_s)
