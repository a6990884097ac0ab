"""Whatever is encoded is decoded again, however it is cut; whatever comes, nothing else breaks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from tidings.core.errors import WireError
from tidings.mqtt.codec import Limits, PacketDecoder, encode
from tidings.mqtt.packet_types import PacketType
from tidings.mqtt.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    TopicFilter,
    Unsuback,
    Unsubscribe,
)
from tidings.mqtt.primitives import Cursor
from tidings.mqtt.properties import (
    NO_PROPERTIES,
    PROPERTY_TABLE,
    Properties,
    encode_properties,
)
from tidings.mqtt.reasons import REASONS_OF_RETURN_CODES, ReasonCode
from tidings.mqtt.session import Closed, Session

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
TOPICS = st.text(
    st.characters(exclude_characters="\0+#", exclude_categories=["Cs"]), min_size=1, max_size=12
)
IDS = st.integers(1, 65_535)
CODES = st.sampled_from([int(code) for code in ReasonCode])
PAYLOADS = st.one_of(st.binary(max_size=20), st.integers(100, 200).map(bytes))
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    Cursor.byte: st.integers(0, 1),
    Cursor.two_bytes: IDS,
    Cursor.four_bytes: st.integers(1, (1 << 32) - 1),
    Cursor.variable: st.lists(st.integers(1, 268_435_455), max_size=1).map(tuple),
    Cursor.binary: st.binary(max_size=10),
    Cursor.text: TOPICS,
    Cursor.pair: st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
}


@cache  # building a strategy takes longer than drawing from it
def properties_of(version: int, carrier: PacketType) -> st.SearchStrategy[Properties]:
    if version != 5:
        return st.just(NO_PROPERTIES)
    optional = {
        row.name: VALUES[row.read] for row in PROPERTY_TABLE.values() if carrier in row.carriers
    }
    return st.fixed_dictionaries({}, optional=optional).map(_consistent)


def _consistent(found: dict[str, Any]) -> Properties:
    if "authentication_data" in found:
        found.setdefault("authentication_method", "some")
    return Properties(**found)


def publishes(version: int) -> st.SearchStrategy[Publish]:
    extras = properties_of(version, PacketType.PUBLISH)
    plain = st.builds(Publish, TOPICS, PAYLOADS, extras, retain=st.booleans())
    careful = st.builds(
        Publish, TOPICS, PAYLOADS, extras, st.integers(1, 2), st.booleans(), st.booleans(), IDS
    )
    return plain | careful


def connects(version: int) -> st.SearchStrategy[Connect]:
    will_extras = properties_of(version, PacketType.WILL)
    wills = st.builds(
        Publish, TOPICS, st.binary(max_size=9), will_extras, st.integers(0, 2), st.booleans()
    )
    return st.builds(
        Connect,
        st.just(version),
        TEXTS,
        st.booleans(),
        st.integers(0, 65_535),
        TEXTS,
        st.none() | st.binary(max_size=9),
        st.none() | wills,
        properties_of(version, PacketType.CONNECT),
    )


def filters(version: int) -> st.SearchStrategy[TopicFilter]:
    flags, handling = (st.booleans(), st.integers(0, 2)) if version == 5 else (st.just(False),) * 2
    return st.builds(TopicFilter, TEXTS, st.integers(0, 2), flags, flags, handling.map(int))


def acknowledgements(version: int) -> Iterable[st.SearchStrategy[Packet]]:
    kinds = (Puback, Pubrec, Pubrel, Pubcomp)
    types = (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)
    codes = CODES if version == 5 else st.just(0)
    for kind, carrier in zip(kinds, types, strict=True):
        yield st.builds(kind, IDS, codes, properties_of(version, carrier))
    yield st.builds(Disconnect, codes, properties_of(version, PacketType.DISCONNECT))
    if version == 5:
        yield st.builds(Auth, codes, properties_of(version, PacketType.AUTH))


@cache
def packets(version: int) -> st.SearchStrategy[Packet]:
    answers = st.sampled_from([int(code) for code in REASONS_OF_RETURN_CODES.values()])
    grants = CODES if version == 5 else st.sampled_from([0, 1, 2, 0x80])
    some = st.lists(grants, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        connects(version),
        st.builds(Connack, answers, st.booleans(), properties_of(version, PacketType.CONNACK)),
        publishes(version),
        st.builds(
            Subscribe,
            IDS,
            st.lists(filters(version), min_size=1, max_size=3).map(tuple),
            properties_of(version, PacketType.SUBSCRIBE),
        ),
        st.builds(Suback, IDS, some, properties_of(version, PacketType.SUBACK)),
        st.builds(
            Unsubscribe,
            IDS,
            st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
            properties_of(version, PacketType.UNSUBSCRIBE),
        ),
        st.builds(
            Unsuback,
            IDS,
            some if version == 5 else st.just(()),
            properties_of(version, PacketType.UNSUBACK),
        ),
        st.sampled_from([Pingreq(), Pingresp()]),
        *acknowledgements(version),
    )


CONVERSATIONS = st.sampled_from([4, 5]).flatmap(
    lambda version: st.tuples(st.just(version), st.lists(packets(version), max_size=4))
)
READS = st.lists(st.binary(max_size=40), max_size=6)


def decoded(decoder: PacketDecoder, data: bytes) -> list[Packet]:
    taken: list[Packet] = []
    if decoder.receive(data):
        while (packet := decoder.next_packet()) is not None:
            taken.append(packet)
        decoder.keep_rest()
    return taken


@settings(deadline=None, max_examples=50)
@given(CONVERSATIONS)
def test_packets_survive_the_wire_whole(conversation: tuple[int, list[Packet]]) -> None:
    version, said = conversation
    data = b"".join(encode(packet, version) for packet in said)
    assert decoded(PacketDecoder(version=version), data) == said


@settings(deadline=None, max_examples=50)
@given(CONVERSATIONS)
def test_packets_survive_the_wire_byte_by_byte(conversation: tuple[int, list[Packet]]) -> None:
    version, said = conversation
    decoder = PacketDecoder(version=version)
    data = b"".join(encode(packet, version) for packet in said)
    heard = [packet for byte in data for packet in decoded(decoder, bytes((byte,)))]
    assert heard == said


@settings(deadline=None, max_examples=50)
@given(CONVERSATIONS, st.data())
def test_trailing_data_waits_for_its_packet(
    conversation: tuple[int, list[Packet]], choice: st.DataObject
) -> None:
    version, said = conversation
    decoder = PacketDecoder(version=version)
    last = Publish("trailing", b"x" * choice.draw(st.sampled_from([0, 1, 130, 20_000])))
    data = b"".join(encode(packet, version) for packet in said)
    tail = encode(last, version)
    cut = choice.draw(st.integers(1, len(tail) - 1))
    assert decoded(decoder, data + tail[:cut]) == said
    assert decoded(decoder, tail[cut:]) == [last]


@settings(deadline=None, max_examples=150)
@given(st.lists(publishes(4), max_size=5), st.lists(publishes(5), max_size=5), st.data())
def test_the_fast_way_agrees_with_the_general_one(
    older: list[Publish], newer: list[Publish], choice: st.DataObject
) -> None:
    for version, said in ((4, older), (5, newer)):
        damaged = bytearray(b"".join(encode(packet, version) for packet in said))
        if damaged and choice.draw(st.booleans()):
            damaged[choice.draw(st.integers(0, len(damaged) - 1))] = choice.draw(
                st.integers(0, 255)
            )
        data = bytes(damaged)
        assert fast_outcome(version, data) == general_outcome(version, data)


def general_outcome(version: int, data: bytes) -> list[object]:
    decoder, taken = PacketDecoder(version=version), list[object]()
    decoder.receive(data)
    try:
        while (packet := decoder.next_packet()) is not None:
            taken.append(packet)
    except WireError as fault:
        taken.append((fault.problem, fault.code))
    return taken


def fast_outcome(version: int, data: bytes) -> list[object]:
    decoder, taken = PacketDecoder(version=version), list[object]()
    decoder.receive(data)
    try:
        while True:
            decoder.take_publishes(taken.append)
            if (packet := decoder.next_packet()) is None:
                return taken
            taken.append(packet)
    except WireError as fault:
        taken.append((fault.problem, fault.code))
    return taken


@settings(deadline=None)
@given(READS, st.sampled_from([0, 4, 5]))
def test_random_bytes_raise_nothing_but_wire_errors(reads: list[bytes], version: int) -> None:
    decoder, codes = PacketDecoder(version=version), set[int]()
    try:
        for data in reads:
            decoded(decoder, data)
    except WireError as fault:
        codes.add(fault.code)
    assert codes <= set(ReasonCode) - {ReasonCode.SUCCESS}


@settings(deadline=None, max_examples=50)
@given(CONVERSATIONS, st.data())
def test_a_session_survives_any_damage_and_closes_at_most_once(
    conversation: tuple[int, list[Packet]], choice: st.DataObject
) -> None:
    version, said = conversation
    session = Session(0.0, Limits(max_packet_bytes=1000))
    damaged = bytearray(
        b"".join(encode(packet, version) for packet in [Connect(version, "c"), *said])
    )
    for _ in range(choice.draw(st.integers(0, 3))):
        damaged[choice.draw(st.integers(0, len(damaged) - 1))] = choice.draw(st.integers(0, 255))
    requests = session.feed(bytes(damaged), 0.0)
    requests += session.accept(0.0)
    requests += session.lost()
    assert [type(request) for request in requests].count(Closed) == 1
    assert isinstance(requests[-1], Closed)


@settings(deadline=None)
@given(properties_of(5, PacketType.PUBLISH))
def test_another_implementation_reads_our_properties(properties: Properties) -> None:
    theirs = PahoProperties(PacketTypes.PUBLISH)
    theirs.unpack(encode_properties(properties, PacketType.PUBLISH))
    names = {
        "payload_format": "PayloadFormatIndicator",
        "message_expiry_s": "MessageExpiryInterval",
        "content_type": "ContentType",
        "response_topic": "ResponseTopic",
        "correlation_data": "CorrelationData",
        "topic_alias": "TopicAlias",
        "user_properties": "UserProperty",
        "subscription_identifiers": "SubscriptionIdentifier",
    }
    for ours, name in names.items():
        value = getattr(properties, ours)
        expected = list(value) if isinstance(value, tuple) else value
        assert getattr(theirs, name, [] if value == () else None) == expected
