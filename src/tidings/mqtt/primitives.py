"""How are MQTT's few data types written as bytes?

Section 1.5 of both standards: big-endian integers of one, two and four bytes, the variable byte
integer (seven bits a byte, lowest first, at most four bytes, and in MQTT 5 never longer than
needed), binary data and UTF-8 text behind a two-byte length, and pairs of texts. Every reader here
raises `WireError` when the bytes end too early, so parsers above contain no length arithmetic.
"""

from __future__ import annotations

from tidings.core.errors import WireError
from tidings.mqtt.reasons import ReasonCode

WILDCARDS = frozenset("+#")  # of topic filters
LARGEST_VARIABLE = 268_435_455  # four bytes of seven bits
LARGEST_BINARY_BYTES = 65_535  # the length is two bytes


def malformed(problem: str) -> WireError:
    return WireError(problem, ReasonCode.MALFORMED_PACKET)


def protocol_error(problem: str) -> WireError:
    return WireError(problem, ReasonCode.PROTOCOL_ERROR)


class Cursor:
    """A place in the bytes of one packet, moved on by each read."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes) -> None:
        self._data, self._position, self._end = data, 0, len(data)

    @property
    def remaining_bytes(self) -> int:
        return self._end - self._position

    def take(self, size_bytes: int) -> bytes:
        start, stop = self._position, self._position + size_bytes
        if stop > self._end:
            raise malformed(
                f"the packet ends {stop - self._end} bytes before the end of a field it contains"
            )
        self._position = stop
        return self._data[start:stop]

    def byte(self) -> int:
        return self.take(1)[0]

    def two_bytes(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def four_bytes(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def variable(self) -> int:
        value = 0
        for shift in (0, 7, 14, 21):
            part = self.byte()
            value |= (part & 0x7F) << shift
            if part < 0x80:
                if part == 0 and shift:
                    raise malformed("a variable byte integer is longer than its value needs")
                return value
        raise malformed("a variable byte integer is longer than four bytes")

    def binary(self) -> bytes:
        return self.take(self.two_bytes())

    def text(self) -> str:
        return checked_text(self.binary())

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()

    def rest(self) -> bytes:
        return self.take(self.remaining_bytes)

    def finish(self, packet: str) -> None:
        """A packet must end where its last field does."""
        if self.remaining_bytes:
            raise malformed(f"{self.remaining_bytes} bytes follow the last field of a {packet}")


def checked_text(raw: bytes) -> str:
    """UTF-8 as MQTT wants it: no NUL, well formed, no surrogates (Python checks the last two)."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        raise malformed(f"a text is not valid UTF-8 at its byte {fault.start}") from None
    if "\0" in text:
        raise malformed("a text contains the character U+0000, which MQTT forbids")
    return text


def encode_two_bytes(value: int) -> bytes:
    return value.to_bytes(2, "big")


def encode_four_bytes(value: int) -> bytes:
    return value.to_bytes(4, "big")


def encode_variable(value: int) -> bytes:
    if not 0 <= value <= LARGEST_VARIABLE:
        raise WireError(
            f"a length or identifier is {value}, but accepted is 0 to {LARGEST_VARIABLE}",
            ReasonCode.PACKET_TOO_LARGE,
        )
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def encode_binary(data: bytes) -> bytes:
    if len(data) > LARGEST_BINARY_BYTES:
        raise WireError(
            f"a field has {len(data)} bytes, but MQTT carries at most {LARGEST_BINARY_BYTES}",
            ReasonCode.PACKET_TOO_LARGE,
        )
    return len(data).to_bytes(2, "big") + data


def encode_text(text: str) -> bytes:
    return encode_binary(text.encode())


def encode_pair(pair: tuple[str, str]) -> bytes:
    return encode_text(pair[0]) + encode_text(pair[1])
