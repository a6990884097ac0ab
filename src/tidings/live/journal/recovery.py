"""What does a journal still hold, and what was lost with frames that are missing?

What a crash leaves unfinished was never acknowledged and is no loss: bytes behind the last whole
frame, or a gap within the last commit, if no more than that was known to be committed. All else
that is missing is damage. Of each gap it is known how many frames are missing and by how many
messages the store grew over it, so the number of lost messages is known, or bounds of it: a missing
frame may also have been one that struck a message out, which is then sent once more.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from tidings.core.contract import Destination
from tidings.live.journal.committed import Committed
from tidings.live.journal.frames import Began, JournalFrame, Kept, frames_in


class HeldMessage(Struct):
    """A message that a journal holds: as last kept, for whom, and the frames that say so."""

    kept: Kept
    owed: dict[str, Destination]
    places: list[tuple[int, int]]  # where each frame starts and stops

    def whole(self) -> Kept:
        """All of it in one record."""
        owed = tuple(self.owed.values())
        return Kept(self.kept.stored_at, replace(self.kept.envelope, destinations=owed))


class Recovered(Struct):
    """What was found in a journal."""

    began: Began | None = None
    messages: dict[int, HeldMessage] = {}
    first: int = 1  # serial numbers of the first frame, and of the last
    last: int = 0
    held: int = 0  # messages, as the last frame or the last commit says
    size_bytes: int = 0  # up to the end of the last frame
    missing: int = 0  # frames
    unsure: int = 0  # of them, those that may have struck a message out

    @property
    def lost(self) -> tuple[int, int]:
        """How many messages are lost, at least and at most."""
        short = self.held - len(self.messages)
        return max(0, short), min(self.held, max(0, short + self.unsure))


def recover(data: bytes, committed: Committed | None) -> Recovered:
    """All that the bytes of a journal tell; `committed` says what they should."""
    frames = _in_order(data)
    found = Recovered(_began(frames), {}, _first(frames, committed))
    found.last = found.first - 1
    known = committed.last if committed else -1
    for number, frame in enumerate(frames):
        if frame.serial != found.last + 1:
            if found.last >= known and _is_one_commit(frames[number:], found.last):
                break  # it was not finished
            _count_gap(found, frame.serial, frame.held - frame.change)
        found.last, found.held, found.size_bytes = frame.serial, frame.held, frame.stop
        _apply(found.messages, frame)
    if committed and committed.last > found.last:
        _count_gap(found, committed.last + 1, committed.held)
        found.last, found.held = committed.last, committed.held
    return found


def _in_order(data: bytes) -> list[JournalFrame]:
    """Frames whose serial numbers grow; another is a copy of one, inside a message's payload."""
    frames: list[JournalFrame] = []
    for frame in frames_in(data):
        if not frames or frame.serial > frames[-1].serial:
            frames.append(frame)
    return frames


def _began(frames: list[JournalFrame]) -> Began | None:
    record = frames[0].record if frames else None
    return record if isinstance(record, Began) else None


def _first(frames: list[JournalFrame], committed: Committed | None) -> int:
    """The serial number that the file begins with, or began with."""
    if not frames:
        return committed.first if committed else 1
    if _began(frames):
        return frames[0].serial
    before = frames[0].serial - 1
    return min(before, committed.first) if committed else before


def _is_one_commit(rest: list[JournalFrame], last: int) -> bool:
    """Whether what is missing before these frames was written with them, and nothing after them."""
    missing = rest[0].serial - last - 1
    if rest[0].place < missing:
        return False
    offset = rest[0].serial - rest[0].place
    return all(frame.serial - frame.place == offset for frame in rest)


def _count_gap(found: Recovered, until: int, held: int) -> None:
    """Frames are missing before this serial number, where the store held so many messages."""
    missing = until - found.last - 1
    found.missing += missing
    found.unsure += max(0, missing - (held - found.held)) // 2


def _apply(messages: dict[int, HeldMessage], frame: JournalFrame) -> None:
    record, place = frame.record, (frame.start, frame.stop)
    if isinstance(record, Began):
        return
    if isinstance(record, Kept):
        envelope = record.envelope
        held = messages.setdefault(envelope.message.id, HeldMessage(record, {}, []))
        held.kept = record
        held.owed.update({d.broker: d for d in envelope.destinations})
        held.places.append(place)
    elif not record.brokers:
        messages.pop(record.message, None)
    elif record.message in messages:
        held = messages[record.message]
        held.places.append(place)
        for broker in record.brokers:
            held.owed.pop(broker, None)
        if not held.owed:  # the frame that said to whom else it is owed is missing
            del messages[record.message]
