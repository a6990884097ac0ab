"""A broker's interests may be larger than any frame: they travel in parts and are put together.

All parts of an update share origin, incarnation, base and version; an update counts only when its
last part is there. Of each origin one unfinished update is kept, the newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tidings.broker.frames import Interests
from tidings.core.contract import Wish

PART_BYTES = 1 << 20  # about, by characters: far below what the codec takes, even in wide letters

_Key = tuple[int, int, int]


def split(update: Interests) -> list[Interests]:
    """The update as parts that fit into frames; mostly just one."""
    heaps = list(_heaps(update.wishes))
    if len(heaps) <= 1:
        return [update]
    return [
        replace(update, wishes=heap, part=number, parts=len(heaps))
        for number, heap in enumerate(heaps)
    ]


def _heaps(wishes: Sequence[Wish]) -> Iterator[tuple[Wish, ...]]:
    heap: list[Wish] = []
    size_bytes = 0
    for wish in wishes:
        size_bytes += wish.size_bytes
        if heap and size_bytes > PART_BYTES:
            yield tuple(heap)
            heap, size_bytes = [], 0
        heap.append(wish)
    if heap:
        yield tuple(heap)


class Assembly:
    """Updates of which not all parts have come."""

    def __init__(self) -> None:
        self._unfinished: dict[str, tuple[_Key, dict[int, Interests]]] = {}

    def gather(self, part: Interests) -> list[Interests]:
        """All parts of an update in their order, when this was the last; else nothing."""
        if part.parts == 1:
            return [part]
        key = (part.incarnation, part.version, part.base)
        known_key, parts = self._unfinished.get(part.origin, (key, {}))
        if key < known_key:
            return []
        if key > known_key:
            parts = {}
        parts[part.part] = part
        self._unfinished[part.origin] = (key, parts)
        if len(parts) < part.parts:
            return []
        del self._unfinished[part.origin]
        return [parts[number] for number in sorted(parts)]


def joined(parts: Sequence[Interests]) -> Interests:
    """The update that the parts make."""
    if len(parts) == 1:
        return parts[0]
    wishes = tuple([wish for part in parts for wish in part.wishes])
    return replace(parts[0], wishes=wishes, part=0, parts=1)
