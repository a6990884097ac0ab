from __future__ import annotations

import pytest

from tidings.mqtt import publishing
from tidings.mqtt.codec import PacketDecoder, encode, encode_publish
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import NO_PROPERTIES, Properties
from tidings.mqtt.publishing import REMEMBERED, Remembering, delivered_properties, headers_of

PAIRS = (("kind", "jet"), ("kind", "prop"))
EXTRAS = Properties(
    payload_format=1,
    message_expiry_s=60,
    content_type="text/plain",
    response_topic="answers",
    correlation_data=b"\x00",
    user_properties=PAIRS,
)


@pytest.mark.parametrize("size_bytes", [0, 1, 120, 121, 122, 123, 124, 16_380, 70_000])
@pytest.mark.parametrize("properties", [NO_PROPERTIES, Properties(), EXTRAS])
@pytest.mark.parametrize("version", [4, 5])
def test_the_fast_encoder_writes_what_the_general_one_does(version, properties, size_bytes) -> None:
    payload = bytes(size_bytes)
    fast = encode_publish("a/b", payload, properties, version)
    assert fast == encode(Publish("a/b", payload, properties), version)


def test_properties_survive_as_headers_and_the_expiry_shrinks_with_age() -> None:
    headers = headers_of(EXTRAS)
    assert b"jet" not in headers
    young = delivered_properties(headers, PAIRS, 0.9)
    assert young == EXTRAS
    assert delivered_properties(headers, PAIRS, 12.3).message_expiry_s == 48
    assert delivered_properties(headers, PAIRS, 99.0).message_expiry_s == 0


def test_a_will_is_published_without_its_delay() -> None:
    will = Properties(will_delay_s=5, content_type="x")
    assert encode_publish("a", b"", will, 5) == bytes.fromhex("30 08 0001 61 04 03 0001 78")
    assert delivered_properties(headers_of(will), (), 0.0) == Properties(content_type="x")


def test_a_message_without_extras_has_no_headers() -> None:
    assert headers_of(NO_PROPERTIES) == headers_of(Properties(user_properties=PAIRS)) == b""
    assert delivered_properties(b"", (), 3.0) is NO_PROPERTIES
    assert delivered_properties(b"", PAIRS, 3.0) == Properties(user_properties=PAIRS)


def test_what_is_remembered_is_bounded_in_number_and_size() -> None:
    topics: Remembering[bytes, str] = Remembering(bytes.decode, lambda raw, _: len(raw))
    for number in range(REMEMBERED + 10):
        assert topics[str(number).encode()] == str(number)
    assert len(topics) == 10
    assert topics[b"x" * 1000] == "x" * 1000
    assert len(topics) == 10


def test_a_bad_topic_is_not_remembered_as_good(open_session) -> None:
    bad = bytes.fromhex("30 04 0001 2b 00")
    assert open_session(4).feed(bad, 0.0) == open_session(4).feed(bad, 0.0)
    assert b"+" not in publishing._topics


@pytest.mark.parametrize("version", [4, 5])
def test_the_fast_way_takes_a_whole_read_and_leaves_what_is_not_whole(version: int) -> None:
    messages = [Publish(f"t/{i % 3}", bytes(i % 300), NO_PROPERTIES) for i in range(1000)]
    data = b"".join(encode(message, version) for message in messages)
    decoder, taken = PacketDecoder(version=version), list[Publish]()
    decoder.receive(data[:-1])
    decoder.take_publishes(taken.append)
    assert taken == messages[:-1]
    assert decoder.next_packet() is None
    decoder.keep_rest()
    assert decoder.receive(data[-1:])
    decoder.take_publishes(taken.append)
    assert taken == messages


def test_properties_do_not_rub_off_on_the_next_message(open_session) -> None:
    messages = [Publish("a", b"1", EXTRAS), Publish("a", b"2"), Publish("a", b"3", EXTRAS)]
    data = b"".join(encode(message, 5) for message in messages)
    assert open_session(5).feed(data, 0.0) == messages
