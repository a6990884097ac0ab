"""Bytes that no correct client sends, and the reason code each is answered with."""

from __future__ import annotations

import pytest

from tidings.core.errors import WireError
from tidings.mqtt.codec import Limits, PacketDecoder, encode
from tidings.mqtt.packets import Publish
from tidings.mqtt.reasons import ReasonCode

MALFORMED, PROTOCOL = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
NAME = ReasonCode.TOPIC_NAME_INVALID
BOTH = (4, 5)

BAD_PACKETS = {
    # what is wrong: (versions, bytes, the answer)
    "packet type 0": (BOTH, "00 00", MALFORMED),
    "AUTH in 3.1.1": ((4,), "f0 00", MALFORMED),
    "length of five bytes": (BOTH, "30 ff ff ff ff 01", MALFORMED),
    "padded length": ((5,), "c0 80 00", MALFORMED),
    "padded length of a PUBLISH": ((5,), "30 85 00 0001 61 00 62", MALFORMED),
    "flags on PINGREQ": (BOTH, "c1 00", MALFORMED),
    "body on PINGREQ": (BOTH, "c0 01 00", MALFORMED),
    "no flags on SUBSCRIBE": ((4,), "80 06 0001 0001 61 00", MALFORMED),
    "no flags on UNSUBSCRIBE": ((4,), "a0 05 0001 0001 61", MALFORMED),
    "no flags on PUBREL": (BOTH, "60 02 0001", MALFORMED),
    "body on DISCONNECT of 3.1.1": ((4,), "e0 01 00", MALFORMED),
    "unknown reason code": ((5,), "e0 01 05", MALFORMED),
    "PUBLISH with QoS 3": (BOTH, "36 06 0001 61 0001 00", MALFORMED),
    "repeated PUBLISH with QoS 0": (BOTH, "38 04 0001 61 00", MALFORMED),
    "PUBLISH without a topic length": (BOTH, "30 01 00", MALFORMED),
    "topic longer than its packet": (BOTH, "30 04 0005 6162", MALFORMED),
    "topic with NUL": (BOTH, "30 06 0003 610062 00", MALFORMED),
    "topic with a surrogate": (BOTH, "30 06 0003 eda080 00", MALFORMED),
    "topic with an overlong character": (BOTH, "30 05 0002 c0af 00", MALFORMED),
    "topic with +": (BOTH, "30 06 0003 612f2b 00", NAME),
    "topic with #": (BOTH, "30 04 0001 23 00", NAME),
    "empty topic": (BOTH, "30 03 0000 00", PROTOCOL),
    "packet identifier 0": ((4,), "82 06 0000 0001 61 00", PROTOCOL),
    "SUBSCRIBE without a filter": ((4,), "82 02 0001", PROTOCOL),
    "SUBSCRIBE without options": ((4,), "82 05 0001 0001 61", MALFORMED),
    "SUBSCRIBE with QoS 3": ((4,), "82 06 0001 0001 61 03", MALFORMED),
    "options of 5 in 3.1.1": ((4,), "82 06 0001 0001 61 04", MALFORMED),
    "reserved options": ((5,), "82 07 0001 00 0001 61 40", MALFORMED),
    "retain handling 3": ((5,), "82 07 0001 00 0001 61 30", PROTOCOL),
    "UNSUBSCRIBE without a filter": ((4,), "a2 02 0001", PROTOCOL),
    "SUBACK without codes": ((5,), "90 03 0001 00", PROTOCOL),
    "CONNACK with odd flags": (BOTH, "20 02 02 00", MALFORMED),
    "CONNACK with an odd return code": ((4,), "20 02 00 06", MALFORMED),
    "PUBLISH without properties": ((5,), "30 03 0001 61", MALFORMED),
    "PUBLISH without properties before a 0": ((5,), "30 03 0001 61 00 00", MALFORMED),
    "properties longer than their packet": ((5,), "30 05 0001 61 02 01", MALFORMED),
    "padded property length": ((5,), "30 05 0001 61 80 00", MALFORMED),
    "unknown property": ((5,), "30 06 0001 61 02 7f 00", MALFORMED),
    "property of another packet": ((5,), "30 09 0001 61 05 11 00000001", MALFORMED),
    "property without a value": ((5,), "30 05 0001 61 01 01", MALFORMED),
    "property twice": ((5,), "30 08 0001 61 04 0101 0101", PROTOCOL),
    "property out of range": ((5,), "30 06 0001 61 02 0102", PROTOCOL),
    "topic alias 0": ((5,), "30 07 0001 61 03 23 0000", ReasonCode.TOPIC_ALIAS_INVALID),
    "user property with NUL": ((5,), "30 0b 0001 61 07 26 0001 00 0001 61", MALFORMED),
    "wildcard in a response topic": ((5,), "30 08 0001 61 04 08 0001 23", PROTOCOL),
    "two subscription identifiers": ((5,), "82 0b 0001 04 0b01 0b02 0001 61 00", PROTOCOL),
    "subscription identifier 0": ((5,), "82 09 0001 02 0b00 0001 61 00", PROTOCOL),
}
BAD_CONNECTS = {
    "nothing": ("10 00", MALFORMED),
    "reserved flag": ("10 0d 0004 4d515454 04 03 003c 0001 63", MALFORMED),
    "will QoS without a will": ("10 0d 0004 4d515454 04 0a 003c 0001 63", MALFORMED),
    "will retain without a will": ("10 0d 0004 4d515454 04 22 003c 0001 63", MALFORMED),
    "will QoS 3": ("10 12 0004 4d515454 04 1e 003c 0001 63 0001 61 0000", MALFORMED),
    "will on a wildcard": ("10 12 0004 4d515454 04 06 003c 0001 63 0001 23 0000", NAME),
    "password without a name": ("10 10 0004 4d515454 04 42 003c 0001 63 0001 61", MALFORMED),
    "bytes behind the last field": ("10 0e 0004 4d515454 04 02 003c 0001 63 00", MALFORMED),
    "client identifier cut short": ("10 0d 0004 4d515454 04 02 003c 0002 63", MALFORMED),
    "no properties in 5": ("10 0c 0004 4d515454 05 02 003c 0000", MALFORMED),
    "receive maximum 0": ("10 11 0004 4d515454 05 02 003c 03 210000 0001 63", PROTOCOL),
    "packet size 0": ("10 13 0004 4d515454 05 02 003c 05 2700000000 0001 63", PROTOCOL),
    "authentication data alone": ("10 11 0004 4d515454 05 02 003c 03 160000 0001 63", PROTOCOL),
}


@pytest.mark.parametrize(
    ("version", "data", "code"),
    [
        pytest.param(version, data, code, id=f"{what} ({version})")
        for what, (versions, data, code) in BAD_PACKETS.items()
        for version in versions
    ],
)
def test_a_bad_packet_ends_the_connection_with_its_code(
    open_session, version: int, data: str, code: ReasonCode
) -> None:
    session = open_session(version)
    good = Publish("a", b"before")
    published, closed = session.feed(encode(good, version) + bytes.fromhex(data), 1.0)
    assert published == good
    assert closed.code == code
    said = session.outgoing()
    assert [*said[:1], *said[2:3]] == ([0xE0, code] if version == 5 else [])


@pytest.mark.parametrize(("data", "code"), BAD_CONNECTS.values(), ids=BAD_CONNECTS)
def test_a_bad_connect_is_refused_with_its_code(data: str, code: ReasonCode) -> None:
    decoder = PacketDecoder()
    decoder.receive(bytes.fromhex(data))
    with pytest.raises(WireError) as caught:
        decoder.next_packet()
    assert caught.value.code == code


def test_a_padded_length_is_let_pass_in_3_1_1_which_does_not_forbid_it(open_session) -> None:
    session = open_session(4)
    assert session.feed(bytes.fromhex("30 84 00 0001 61 62"), 1.0) == [Publish("a", b"b")]


@pytest.mark.parametrize("version", BOTH)
def test_a_packet_too_large_is_refused_before_it_arrives(open_session, version: int) -> None:
    session = open_session(version, Limits(max_packet_bytes=200))
    fitting = Publish("a", bytes(200 - 6 - (version == 5)))
    data = encode(fitting, version)
    assert len(data) == 200
    assert session.feed(data, 1.0) == [fitting]
    too_large = encode(Publish("a", bytes(195)), version)
    for arrived in (too_large[:3], too_large):
        (closed,) = open_session(version, Limits(max_packet_bytes=200)).feed(arrived, 1.0)
        assert closed.code == ReasonCode.PACKET_TOO_LARGE


def test_a_large_packet_in_single_bytes_costs_no_more_than_its_bytes() -> None:
    decoder = PacketDecoder(version=4)
    data = encode(Publish("a", bytes(300_000)), 4)
    looked = [decoder.receive(data[i : i + 1]) and _try(decoder) for i in range(len(data) - 1)]
    assert sum(1 for outcome in looked if outcome is not False) <= 6
    assert decoder.receive(data[-1:])
    assert decoder.next_packet() == Publish("a", bytes(300_000))


def _try(decoder: PacketDecoder) -> None:
    assert decoder.next_packet() is None
    decoder.keep_rest()
