"""Where does one packet end and the next begin?

TCP gives bytes, not packets: a read may bring one byte, or a thousand packets and half of another.
`PacketDecoder` cuts them apart, however they arrive, and keeps a packet that is not yet complete. A
packet that is too large is refused as soon as its length is known. The bytes of an incomplete
packet are only gathered and not looked at again, so a peer that sends one byte at a time costs no
more than one that sends all at once.
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.core.errors import WireError
from tidings.core.values import Value
from tidings.mqtt.decoding import connect_version, decode_body
from tidings.mqtt.encoding import encode
from tidings.mqtt.packet_types import PacketType
from tidings.mqtt.packets import MQTT_5, Packet, Publish
from tidings.mqtt.primitives import malformed
from tidings.mqtt.publishing import encode_publish, take_publishes
from tidings.mqtt.reasons import ReasonCode

__all__ = ["Limits", "PacketDecoder", "encode", "encode_publish"]

UNKNOWN_VERSION = 0  # until a CONNECT has named it


class Limits(Value, frozen=True):
    """What one client may cost us."""

    max_packet_bytes: int = 1 << 20  # a whole packet; MQTT allows 256 MiB, brokers commonly less
    # From the connection to its CONNECT: a client that says nothing occupies a socket.
    connect_within_s: float = 10.0


DEFAULT_LIMITS = Limits()


class PacketDecoder:
    """Bytes to packets, for one direction of one connection."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, version: int = UNKNOWN_VERSION) -> None:
        self.version = version
        self._limit_bytes = limits.max_packet_bytes
        self._data, self._position = b"", 0
        self._kept, self._needed_bytes = bytearray(), 0

    def receive(self, data: bytes) -> bool:
        """Adds bytes behind those that are kept; false while they are not yet a whole packet."""
        if not self._kept:
            self._data, self._position = data, 0
            return True
        self._kept += data
        if len(self._kept) < self._needed_bytes:
            return False
        self._data, self._position = bytes(self._kept), 0
        self._kept.clear()
        return True

    @property
    def kept_bytes(self) -> int:
        """Of a packet that is not all there."""
        return len(self._kept)

    def take_publishes(self, append: Callable[[Publish], object]) -> None:
        """Takes the plain PUBLISH packets that come next, by the fast path."""
        self._position = take_publishes(
            self._data, self._position, self.version, self._limit_bytes, append
        )

    def next_packet(self) -> Packet | None:
        """Takes the packet that comes next, or None if it is not all there."""
        framed = self._frame()
        if framed is None:
            return None
        start, stop = framed
        first_byte, body = self._data[self._position], self._data[start:stop]
        if first_byte >> 4 == PacketType.CONNECT and self.version == UNKNOWN_VERSION:
            self.version = connect_version(body)
        packet = decode_body(first_byte, body, self.version)
        self._position, self._needed_bytes = stop, 0
        return packet

    def keep_rest(self) -> bool:
        """Keeps what was not taken until more comes; true if anything was taken."""
        taken = self._position > 0
        if self._position < len(self._data):
            self._kept += self._data[self._position :]
        self._data, self._position = b"", 0
        return taken

    def hold(self, data: bytes) -> None:
        """Keeps bytes unread, up to a limit, while the client has to wait for an answer."""
        self._kept += data
        self._needed_bytes = 0
        if len(self._kept) > self._limit_bytes:
            problem = f"more than {self._limit_bytes} bytes came before CONNECT was answered"
            raise WireError(problem, ReasonCode.QUOTA_EXCEEDED)

    def _frame(self) -> tuple[int, int] | None:
        """Where the body of the next packet starts and stops, if all of it is there."""
        data, position, length = self._data, self._position + 1, 0
        for shift in (0, 7, 14, 21):
            if position >= len(data):
                self._needed_bytes = len(data) - self._position + 1
                return None
            part = data[position]
            position += 1
            length |= (part & 0x7F) << shift
            if part < 0x80:
                if part == 0 and shift and self.version == MQTT_5:
                    raise malformed("the remaining length is written longer than it needs")
                return self._whole(position, position + length)
        raise malformed("the remaining length of a packet is longer than four bytes")

    def _whole(self, start: int, stop: int) -> tuple[int, int] | None:
        size_bytes = stop - self._position
        if size_bytes > self._limit_bytes:
            problem = f"a packet has {size_bytes} bytes, but accepted are {self._limit_bytes}"
            raise WireError(problem, ReasonCode.PACKET_TOO_LARGE)
        if stop > len(self._data):
            self._needed_bytes = size_bytes
            return None
        return start, stop
