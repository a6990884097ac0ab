"""Which kinds of packets are there, and what does the first byte of each say?

Its upper four bits are the packet type, its lower four are flags. Only a PUBLISH has flags to
choose; those of all other packets are fixed (section 2.1.3 of MQTT 5).
"""

from __future__ import annotations

from enum import IntEnum


class PacketType(IntEnum):
    """The upper four bits of a packet's first byte. 0 is reserved; will properties use it here."""

    WILL = 0
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


FIXED_FLAGS: dict[PacketType, int] = {
    **{kind: 0 for kind in PacketType if kind is not PacketType.PUBLISH},
    PacketType.PUBREL: 2,
    PacketType.SUBSCRIBE: 2,
    PacketType.UNSUBSCRIBE: 2,
}
