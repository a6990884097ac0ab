"""How does Parquet write down what a file holds? As structs in Thrift's compact protocol.

A struct is a list of fields, each with a number, a type and a value, and ends with a zero byte. A
field's number is told by how much it exceeds the one before, so fields stand in rising order.
"""

from __future__ import annotations

from collections.abc import Iterable

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
FALSE = 2  # a flag is a type of its own, and has no value
SHORT_LIST = 15  # a list of fewer items tells their number in its first byte

Field = tuple[int, int, bytes]  # number, type, value


def struct(*fields: Field) -> bytes:
    """The fields, in the order of their numbers."""
    made, last = bytearray(), 0
    for number, kind, value in fields:
        made.append((number - last) << 4 | kind)
        made += value
        last = number
    return bytes(made) + b"\0"


def i32(number: int, value: int) -> Field:
    return number, I32, zigzag(value)


def i64(number: int, value: int) -> Field:
    return number, I64, zigzag(value)


def false(number: int) -> Field:
    return number, FALSE, b""


def binary(number: int, value: bytes) -> Field:
    return number, BINARY, counted(value)


def nested(number: int, made: bytes) -> Field:
    """A struct in a struct."""
    return number, STRUCT, made


def listed(number: int, kind: int, items: Iterable[bytes]) -> Field:
    """Items of one type, each as its bytes."""
    made = list(items)
    if len(made) < SHORT_LIST:
        head = bytes([len(made) << 4 | kind])
    else:
        head = bytes([SHORT_LIST << 4 | kind]) + varint(len(made))
    return number, LIST, head + b"".join(made)


def counted(value: bytes) -> bytes:
    return varint(len(value)) + value


def zigzag(value: int) -> bytes:
    """Small numbers in few bytes, negative ones too."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that there are more."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
