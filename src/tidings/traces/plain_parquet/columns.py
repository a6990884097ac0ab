"""How do the values of one column become a page of a Parquet file?

Numbers stand in a row, eight bytes each. Texts stand once in a dictionary, and the rows have their
codes: of one, two or four bytes, which are packed as they lie in memory. A column whose values are
all the same, as most are for a while, is a dictionary of one value and the number of rows. A list
of texts has, besides the codes of all its items, two bits for each: whether it begins a new list,
and whether there is an item at all.

All rows or none
----------------
A column takes values in two steps, so that a chunk of rows of which one fits no column leaves
nothing behind: `made` raises an error for a value that does not fit, `add` cannot fail.

In short steps
--------------
A thread makes the pages while the broker's own goes on. Python lets another thread run between two
steps, but never in the midst of one: so no step here is about more than some thousand values.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from math import isfinite
from struct import pack
from typing import Any, TypeVar

from msgspec import Struct

from tidings.traces.plain_parquet.thrift import varint

BOOLEAN, INT64, DOUBLE, BYTE_ARRAY = 0, 2, 5, 6  # types of Parquet
CODE_BITS = {"B": 8, "H": 16, "I": 32}  # by the type of an array that holds the codes
SLICE = 8_192  # values in one step, which is about a tenth of a millisecond

Sliced = TypeVar("Sliced", "array[Any]", str)


class Page(Struct, frozen=True):
    """The values of a column as bytes; with a dictionary, they are codes."""

    values: bytes
    count: int
    dictionary: bytes | None = None
    dictionary_count: int = 0
    least_and_most: tuple[bytes, bytes] | None = None


class Numbers:
    """Whole numbers, or floats."""

    def __init__(self, kind: int, of_instants: bool = False) -> None:
        self.type, self._of_instants = kind, of_instants
        self._values = array("q" if kind == INT64 else "d")

    def made(self, values: Sequence[Any]) -> array[Any]:
        return array(self._values.typecode, values)

    def add(self, made: array[Any]) -> None:
        self._values += made

    def page(self) -> Page:
        values, count = _little_endian(self._values), len(self._values)
        bounds = self._bounds() if self._of_instants and count else None
        one = values[:8]
        if count > 1 and values == one * count:
            return Page(_same_codes(0, count), count, one, 1, bounds)
        return Page(values, count, least_and_most=bounds)

    def _bounds(self) -> tuple[bytes, bytes] | None:
        """The first and last instant, which readers find in the footer; NaN is in no order."""
        slices = list(_slices(self._values))
        if not isfinite(sum(sum(some) for some in slices)):
            return None
        least, most = min(min(some) for some in slices), max(max(some) for some in slices)
        return pack("<d", least or -0.0), pack("<d", most or 0.0)  # as Parquet wants its zeros


class Flags:
    """True or false, a bit each."""

    type = BOOLEAN

    def __init__(self) -> None:
        self._bits = list[str]()

    def made(self, values: Sequence[Any]) -> str:
        if any(type(value) is not bool for value in values):
            raise TypeError("a flag is neither true nor false")
        return "".join("01"[value] for value in values)

    def add(self, made: str) -> None:
        self._bits.append(made)

    def page(self) -> Page:
        return Page(_packed_bits(self._bits), sum(map(len, self._bits)))


class _Codes(dict[str, int]):
    """A code for each text, in the order in which they came."""

    def __missing__(self, text: str) -> int:
        str.encode(text)  # what is no text, or cannot be written, gets no code
        code = self[text] = len(self)
        return code

    def of(self, texts: Sequence[str]) -> array[int]:
        if not texts:
            return array("I")
        first = texts[0]
        if texts[-1] is first and texts.count(first) == len(texts):  # the usual case, and cheap
            return array("I", [self[first]]) * len(texts)
        return array("I", map(self.__getitem__, texts))

    def packed(self, codes: array[int]) -> bytes:
        """Codes behind the number of bits of each."""
        if codes.tobytes() == codes[:1].tobytes() * len(codes):
            return _same_codes(codes[0], len(codes))
        kind = "B" if len(self) <= 1 << 8 else "H" if len(self) <= 1 << 16 else "I"
        packed = array(kind)
        for some in _slices(codes):
            packed.fromlist(some.tolist())
        packed.extend([0] * (-len(packed) % 8))  # they are packed by eights
        head = bytes([CODE_BITS[kind]]) + varint(len(packed) // 8 << 1 | 1)
        return head + _little_endian(packed)

    def dictionary(self) -> bytes:
        return b"".join(pack("<I", len(text)) + text for text in map(str.encode, self))


class Texts:
    """Texts, most of which come again."""

    type = BYTE_ARRAY

    def __init__(self) -> None:
        self._known, self._codes = _Codes(), array("I")

    def made(self, values: Sequence[Any]) -> array[int]:
        return self._known.of(values)

    def add(self, made: array[int]) -> None:
        self._codes += made

    def page(self) -> Page:
        known, count = self._known, len(self._codes)
        return Page(known.packed(self._codes), count, known.dictionary(), len(known))


class TextLists:
    """Lists of texts."""

    type = BYTE_ARRAY

    def __init__(self) -> None:
        self._known, self._codes, self._lengths = _Codes(), array("I"), array("I")

    def made(self, values: Sequence[Any]) -> tuple[array[int], array[int]]:
        first = values[0]
        if values[-1] is first and values.count(first) == len(values):
            return self._known.of(first) * len(values), array("I", [len(first)]) * len(values)
        return self._known.of([*chain.from_iterable(values)]), array("I", map(len, values))

    def add(self, made: tuple[array[int], array[int]]) -> None:
        self._codes += made[0]
        self._lengths += made[1]

    def page(self) -> Page:
        lengths = {length for some in _slices(self._lengths) for length in set(some)}
        begins = {length: "0" + "1" * (length - 1) for length in lengths}  # 0: a list
        items = {length: "1" * length or "0" for length in begins}  # 0: an empty list
        starts, present = (
            ["".join(map(bits.__getitem__, some)) for some in _slices(self._lengths)]
            for bits in (begins, items)
        )
        count, levels = sum(map(len, starts)), _levels(starts) + _levels(present)
        if not self._codes:  # all lists are empty, and so would the dictionary be
            return Page(levels, count)
        known = self._known
        return Page(levels + known.packed(self._codes), count, known.dictionary(), len(known))


Column = Numbers | Flags | Texts | TextLists


def _same_codes(code: int, count: int) -> bytes:
    return b"\x20" + varint(count << 1) + pack("<I", code)


def _levels(parts: list[str]) -> bytes:
    """A bit for each value, behind their length in bytes."""
    count, ones = sum(map(len, parts)), sum(part.count("1") for part in parts)
    if ones in (0, count):
        made = varint(count << 1) + bytes([ones > 0])
    else:
        made = varint((count + 7) // 8 << 1 | 1) + _packed_bits(parts)
    return pack("<I", len(made)) + made


def _packed_bits(parts: list[str]) -> bytes:
    """The first in the lowest bit of the first byte."""
    bits = "".join(parts)
    return b"".join(
        int(some[::-1], 2).to_bytes((len(some) + 7) // 8, "little") for some in _slices(bits)
    )


def _slices(values: Sliced) -> Iterator[Sliced]:
    """What can be done in one step each; a whole number of bytes, if values are bits."""
    return (values[begin : begin + SLICE] for begin in range(0, len(values), SLICE))


def _little_endian(values: array[Any]) -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()
