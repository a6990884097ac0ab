"""Short dialogues: the client sends these bytes, the server hands up that and answers this."""

from __future__ import annotations

from math import inf

import pytest

from tidings.mqtt.codec import Limits, encode
from tidings.mqtt.packets import (
    Connect,
    Disconnect,
    Pingreq,
    Publish,
    Subscribe,
    TopicFilter,
    Unsubscribe,
)
from tidings.mqtt.properties import Properties
from tidings.mqtt.reasons import ReasonCode
from tidings.mqtt.session import LEGAL, Closed, Session, State

CONNECT_3 = bytes.fromhex("10 0d 0004 4d515454 04 02 003c 0001 63")  # "c", clean, 60 s
CONNECT_5 = bytes.fromhex("10 0e 0004 4d515454 05 02 003c 00 0001 63")
WILL = Publish("gone", b"c", Properties(will_delay_s=30, user_properties=(("price", "2"),)))


def refused(data: bytes) -> tuple[bytes, Closed]:
    session = Session(0.0)
    (closed,) = session.feed(data, 0.0)
    assert isinstance(closed, Closed)
    return session.outgoing(), closed


def test_a_3_1_1_client_connects_subscribes_publishes_and_leaves() -> None:
    session = Session(0.0)
    assert session.feed(CONNECT_3, 0.0) == [Connect(4, "c", True, 60)]
    assert session.accept(0.0) == []
    assert session.outgoing() == bytes.fromhex("20 02 00 00")

    subscribe = bytes.fromhex("82 08 0001 0003 612f23 01")  # a/# with QoS 1
    assert session.feed(subscribe, 1.0) == [Subscribe(1, (TopicFilter("a/#", 1),))]
    session.suback(1, [ReasonCode.SUCCESS])
    assert session.outgoing() == bytes.fromhex("90 03 0001 00")

    assert session.feed(bytes.fromhex("30 07 0003 612f62 6869"), 2.0) == [Publish("a/b", b"hi")]
    assert session.feed(bytes.fromhex("c000"), 3.0) == []
    assert session.outgoing() == bytes.fromhex("d000")

    unsubscribe = bytes.fromhex("a2 07 0002 0003 612f23")
    assert session.feed(unsubscribe, 4.0) == [Unsubscribe(2, ("a/#",))]
    session.unsuback(2, [ReasonCode.SUCCESS])
    assert session.outgoing() == bytes.fromhex("b0 02 0002")

    (closed,) = session.feed(bytes.fromhex("e000"), 5.0)
    assert isinstance(closed, Closed)
    assert (closed.code, closed.will) == (0, None)
    assert session.outgoing() == b""


def test_a_5_client_is_told_what_is_not_offered_and_under_which_name_it_is_known() -> None:
    session = Session(0.0, Limits(max_packet_bytes=65_536))
    anonymous = Connect(5, properties=Properties(session_expiry_s=100))
    assert session.feed(encode(anonymous, 5), 0.0) == [anonymous]
    assert session.accept(0.0, "made-up") == []
    assert (
        session.outgoing()
        == bytes.fromhex(
            "20 22 00 00 1f"
            "11 00000000"  # no session survives
            "12 0007" + b"made-up".hex() + "22 0000"  # no topic aliases
            "24 00"  # QoS 0
            "25 00"  # nothing retained
            "27 00010000"  # packets up to 64 KiB
            "29 00"  # no subscription identifiers
            "2a 00"  # no shared subscriptions
        )
    )


def test_a_5_client_hands_up_contracts_and_hears_why_a_subscription_failed(open_session) -> None:
    session = open_session(5)
    pairs = (("where", "height <"), ("price", "3"))
    wish = Subscribe(7, (TopicFilter("a", 2, no_local=True),), Properties(user_properties=pairs))
    assert session.feed(encode(wish, 5), 1.0) == [wish]
    session.suback(7, [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR], "bad where")
    assert session.outgoing() == bytes.fromhex("90 10 0007 0c 1f 0009") + b"bad where" + b"\x83"

    properties = Properties(
        payload_format=1,
        message_expiry_s=60,
        content_type="text/plain",
        response_topic="answers",
        correlation_data=b"\x00\x01",
        user_properties=(("deadline-ms", "50"), ("kind", "jet"), ("kind", "prop")),
    )
    message = Publish("a", b"hi", properties)
    assert session.feed(encode(message, 5), 1.0) == [message]


def test_a_failed_subscription_has_one_code_in_3_1_1(open_session) -> None:
    session = open_session(4)
    session.suback(7, [ReasonCode.SUCCESS, ReasonCode.TOPIC_FILTER_INVALID], "bad filter")
    assert session.outgoing() == bytes.fromhex("90 04 0007 00 80")


def test_an_unsubscription_is_answered_with_codes_in_5(open_session) -> None:
    session = open_session(5)
    session.unsuback(9, [ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED])
    assert session.outgoing() == bytes.fromhex("b0 05 0009 00 00 11")


def test_a_client_that_wants_no_explanations_gets_none(open_session) -> None:
    session = open_session(5, properties=Properties(request_problem_information=0))
    session.suback(7, [ReasonCode.TOPIC_FILTER_INVALID], "bad filter")
    assert session.outgoing() == bytes.fromhex("90 04 0007 00 8f")


def test_an_explanation_too_long_for_the_client_is_left_out() -> None:
    session = Session(0.0)
    small = Connect(5, "c", properties=Properties(maximum_packet_bytes=40))
    session.feed(encode(small, 5), 0.0)
    session.accept(0.0)
    session.outgoing()
    assert session.max_outgoing_bytes == 40
    session.suback(7, [ReasonCode.TOPIC_FILTER_INVALID], "no" * 50)
    assert session.outgoing() == bytes.fromhex("90 04 0007 00 8f")


def test_what_a_client_sends_before_its_answer_waits_for_accept() -> None:
    session = Session(0.0)
    hasty = CONNECT_3 + encode(Publish("a", b"1"), 4) + bytes.fromhex("c0")
    assert session.feed(hasty, 0.0) == [Connect(4, "c", True, 60)]
    assert session.feed(b"\x00" + encode(Publish("a", b"2"), 4), 0.1) == []
    assert session.accept(0.2) == [Publish("a", b"1"), Publish("a", b"2")]
    assert session.outgoing() == bytes.fromhex("20020000 d000")


@pytest.mark.parametrize("connect", [CONNECT_3, CONNECT_5], ids=["3.1.1", "5"])
def test_a_connect_that_comes_byte_by_byte_does_not_hide_what_follows(connect: bytes) -> None:
    session = Session(0.0)
    for byte in connect[:-1]:
        assert session.feed(bytes((byte,)), 0.0) == []
    assert len(session.feed(connect[-1:] + encode(Pingreq(), 4), 0.0)) == 1
    session.accept(0.0)
    assert session.outgoing().endswith(b"\xd0\x00")


def test_bytes_that_pile_up_before_the_answer_are_limited() -> None:
    session = Session(0.0, Limits(max_packet_bytes=100))
    session.feed(CONNECT_5, 0.0)
    (closed,) = session.feed(bytes(101), 0.0)
    assert isinstance(closed, Closed)
    assert closed.code == ReasonCode.QUOTA_EXCEEDED
    said = session.outgoing()
    assert (said[0], said[3]) == (0x20, ReasonCode.QUOTA_EXCEEDED)


def test_credentials_and_wills_are_handed_up() -> None:
    asked = Connect(5, "c", False, 9, "ann", b"\x00secret", WILL)
    session = Session(0.0)
    assert session.feed(encode(asked, 5), 0.0) == [asked]
    assert session.version == 5


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (ReasonCode.BAD_USER_NAME_OR_PASSWORD, "20 02 00 04"),
        (ReasonCode.NOT_AUTHORISED, "20 02 00 05"),
        (ReasonCode.SERVER_BUSY, "20 02 00 03"),
        (ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "20 02 00 02"),
    ],
)
def test_a_3_1_1_client_is_refused_with_a_return_code(code: ReasonCode, answer: str) -> None:
    session = Session(0.0)
    session.feed(CONNECT_3, 0.0)
    assert session.close(code, "no") == [Closed(code, "no")]
    assert session.outgoing() == bytes.fromhex(answer)
    assert session.accept(0.0) == []
    assert session.outgoing() == b""


def test_a_5_client_is_refused_with_a_reason() -> None:
    session = Session(0.0)
    session.feed(CONNECT_5, 0.0)
    session.close(ReasonCode.NOT_AUTHORISED, "no")
    assert session.outgoing() == bytes.fromhex("20 08 00 87 05 1f 0002 6e6f")


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        ("10 0f 0006 4d5149736470 03 02 003c 0001 63", [0x20, 0, 1]),  # MQTT 3.1
        ("10 0d 0004 4d515454 84 02 003c 0001 63", [0x20, 0, 1]),  # a bridge's first try
        ("10 0d 0004 4d515454 06 02 003c 0001 63", [0x20, 0, 0x84]),  # a version to come
        ("10 0d 0004 48545450 04 02 003c 0001 63", []),  # another protocol
    ],
)
def test_a_version_we_do_not_speak_is_refused_in_its_own_words(
    connect: str, answer: list[int]
) -> None:
    said, closed = refused(bytes.fromhex(connect))
    assert closed.code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION
    assert [*said[:1], *said[2:4]] == answer


@pytest.mark.parametrize(
    ("connect", "code"),
    [
        (Connect(4, "", clean_start=False), ReasonCode.CLIENT_IDENTIFIER_NOT_VALID),
        (
            Connect(5, "c", properties=Properties(authentication_method="SCRAM")),
            ReasonCode.BAD_AUTHENTICATION_METHOD,
        ),
        (Connect(5, "c", will=Publish("a", b"", qos=1)), ReasonCode.QOS_NOT_SUPPORTED),
        (Connect(5, "c", will=Publish("a", b"", retain=True)), ReasonCode.RETAIN_NOT_SUPPORTED),
    ],
)
def test_a_connect_that_asks_for_too_much_is_refused(connect: Connect, code: ReasonCode) -> None:
    said, closed = refused(encode(connect, connect.version))
    assert closed == Closed(code, closed.reason, None)
    assert said[3] == (2 if connect.version == 4 else code)


def test_a_3_1_1_will_with_qos_and_retain_is_taken(open_session) -> None:
    session = open_session(4, will=Publish("a", b"", qos=1, retain=True))
    (closed,) = session.lost()
    assert closed.will.topic == "a"


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (Publish("a", b"", qos=1, packet_id=1), ReasonCode.QOS_NOT_SUPPORTED),
        (Publish("a", b"", qos=2, packet_id=1), ReasonCode.QOS_NOT_SUPPORTED),
        (Publish("a", b"", retain=True), ReasonCode.RETAIN_NOT_SUPPORTED),
        (Publish("a", b"", Properties(topic_alias=1)), ReasonCode.TOPIC_ALIAS_INVALID),
        (Publish("a", b"", Properties(subscription_identifiers=(1,))), ReasonCode.PROTOCOL_ERROR),
        (
            Subscribe(1, (TopicFilter("$share/g/a"),)),
            ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        ),
        (
            Subscribe(1, (TopicFilter("a"),), Properties(subscription_identifiers=(1,))),
            ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        ),
        (Disconnect(0, Properties(session_expiry_s=1)), ReasonCode.PROTOCOL_ERROR),
    ],
)
def test_what_is_not_offered_ends_a_5_connection_with_its_code(open_session, packet, code) -> None:
    session = open_session(5, will=WILL)
    before, after = Publish("a", b"before"), Publish("a", b"after")
    data = encode(before, 5) + encode(packet, 5) + encode(after, 5)
    published, closed = session.feed(data, 1.0)
    assert published == before
    assert closed == Closed(code, closed.reason, WILL)
    said = session.outgoing()
    assert (said[0], said[2]) == (0xE0, code)
    assert closed.reason.encode() in said
    assert session.feed(data, 2.0) == []


def test_a_qos_1_publish_of_3_1_1_ends_the_connection_without_a_word(open_session) -> None:
    session = open_session(4)
    (closed,) = session.feed(encode(Publish("a", b"", qos=1, packet_id=1), 4), 1.0)
    assert closed.code == ReasonCode.QOS_NOT_SUPPORTED
    assert session.outgoing() == b""


def test_a_retained_publish_of_3_1_1_is_delivered(open_session) -> None:
    session = open_session(4)
    assert session.feed(bytes.fromhex("31 04 0001 61 62"), 1.0) == [Publish("a", b"b", retain=True)]


@pytest.mark.parametrize(
    ("goodbye", "publishes_will"),
    [
        (Disconnect(), False),
        (Disconnect(ReasonCode.DISCONNECT_WITH_WILL), True),
        (Disconnect(ReasonCode.UNSPECIFIED_ERROR), True),
    ],
)
def test_only_a_clean_disconnect_forgets_the_will(open_session, goodbye, publishes_will) -> None:
    session = open_session(5, will=WILL)
    (closed,) = session.feed(encode(goodbye, 5) + encode(Publish("a", b"late"), 5), 1.0)
    assert closed.will == (WILL if publishes_will else None)
    assert session.outgoing() == b""


@pytest.mark.parametrize("version", [4, 5])
def test_the_will_is_published_when_the_connection_is_lost(open_session, version: int) -> None:
    will = Publish("gone", b"c")
    session = open_session(version, will=will)
    (closed,) = session.lost()
    assert closed.will == will
    assert session.lost() == []
    assert session.outgoing() == b""


def test_a_will_is_not_published_for_a_client_that_was_never_accepted() -> None:
    session = Session(0.0)
    session.feed(encode(Connect(5, "c", will=WILL), 5), 0.0)
    (closed,) = session.lost()
    assert closed == Closed(closed.code, closed.reason, None)


def test_the_server_can_end_a_connection_and_says_so_in_5(open_session) -> None:
    session = open_session(5, will=WILL)
    (closed,) = session.close(ReasonCode.SESSION_TAKEN_OVER, "taken")
    assert closed.will == WILL
    assert session.outgoing() == bytes.fromhex("e0 0a 8e 08 1f 0005") + b"taken"
    session = open_session(4)
    assert len(session.close(ReasonCode.SESSION_TAKEN_OVER, "taken")) == 1
    assert session.outgoing() == b""


def test_a_silent_client_is_given_one_and_a_half_keep_alives(open_session) -> None:
    session = open_session(5, keep_alive_s=10, will=WILL)
    assert session.deadline_at == 15.0
    session.feed(encode(Publish("a", b""), 5), 4.0)
    assert session.deadline_at == 19.0
    assert session.tick(18.9) == []
    (closed,) = session.tick(19.0)
    assert (closed.code, closed.will) == (ReasonCode.KEEP_ALIVE_TIMEOUT, WILL)
    assert session.outgoing()[2] == ReasonCode.KEEP_ALIVE_TIMEOUT
    assert session.deadline_at == inf
    assert session.tick(99.0) == []


def test_half_a_packet_is_not_a_sign_of_life(open_session) -> None:
    session = open_session(4, keep_alive_s=10)
    session.feed(encode(Publish("a", b"payload"), 4)[:-1], 14.0)
    assert session.deadline_at == 15.0


def test_a_client_that_was_not_listened_to_is_not_to_blame_for_its_silence(open_session) -> None:
    session = open_session(4, keep_alive_s=10)
    session.excused(100.0)
    assert session.tick(114.9) == []
    assert session.tick(115.0) != []


def test_a_client_without_keep_alive_may_be_silent_for_ever(open_session) -> None:
    assert open_session(4, keep_alive_s=0).deadline_at == inf


def test_a_connection_without_a_connect_is_closed_in_time() -> None:
    session = Session(100.0, Limits(connect_within_s=5.0))
    assert session.deadline_at == 105.0
    session.feed(CONNECT_3[:5], 104.0)
    (closed,) = session.tick(105.0)
    assert closed == Closed(ReasonCode.KEEP_ALIVE_TIMEOUT, "nothing was heard for 5.0 s")
    assert session.outgoing() == b""


@pytest.mark.parametrize(
    "packet",
    [
        CONNECT_5.hex(),
        "20 03 00 00 00",  # CONNACK
        "40 02 0001",  # PUBACK
        "50 02 0001",  # PUBREC
        "62 02 0001",  # PUBREL
        "70 02 0001",  # PUBCOMP
        "90 04 0001 00 00",  # SUBACK
        "b0 04 0001 00 00",  # UNSUBACK
        "d0 00",  # PINGRESP
        "f0 00",  # AUTH
    ],
)
def test_packets_out_of_place_are_protocol_errors(open_session, packet: str) -> None:
    session = open_session(5)
    (closed,) = session.feed(bytes.fromhex(packet), 1.0)
    assert closed.code == ReasonCode.PROTOCOL_ERROR
    assert session.outgoing()[2] == ReasonCode.PROTOCOL_ERROR


@pytest.mark.parametrize("packet", [Pingreq(), Publish("a", b""), Disconnect()])
def test_the_first_packet_must_be_a_connect(packet) -> None:
    said, closed = refused(encode(packet, 4))
    assert (said, closed.code) == (b"", ReasonCode.PROTOCOL_ERROR)


def test_the_table_of_transitions_leads_nowhere_from_closed() -> None:
    assert all(state is not State.CLOSED for state, _ in LEGAL)
    assert set(LEGAL.values()) == set(State) - {State.NEW}


def test_a_reason_is_one_printable_line_because_clients_may_refuse_others(open_session) -> None:
    session = open_session(5)
    session.suback(1, [0x83], "bad where predicate at character 3: no\x00 value\n  x <\n    ^")
    sent = session.outgoing()
    assert b"bad where predicate at character 3: no? value" in sent
    assert not any(byte in sent[4:-1] for byte in b"\n^")
