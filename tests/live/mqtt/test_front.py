"""One live broker and real MQTT clients: what each version may expect of it."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from support.live import Overlay, PahoClient, an_overlay, eventually

from tidings.core.errors import ConfigError
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_3_1_1, MQTT_5, Connect, Publish, Subscribe, TopicFilter

SOCKET_S = 30.0  # a busy machine may need it
MQTT = {"max_unsent_bytes": 65_536, "connect_within_s": 3.0}
BURST = 10  # messages of 4 kB: less than a client may have unsent, so a reader loses none
BOTH = pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Overlay]:
    policies = [{"topic": "quick/#", "deadline_ms": 50.0, "late": "drop"}]
    folder = tmp_path_factory.mktemp("one")
    with an_overlay(folder, "n1", policy=policies, mqtt=MQTT) as overlay:
        yield overlay


@pytest.fixture
def port(overlay: Overlay) -> int:
    return overlay.port("n1")


def raw(port: int, name: str, version: int = MQTT_3_1_1, **fields: object) -> socket.socket:
    """A connection that says exactly what it is told to."""
    client = socket.create_connection(("127.0.0.1", port), timeout=SOCKET_S)
    try:
        client.sendall(encode(Connect(version, name, **fields), version))  # type: ignore[arg-type]
        assert client.recv(1000)[0] == 0x20
    except BaseException:
        client.close()
        raise
    return client


def everything(client: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    while part := client.recv(65_536):
        parts.append(part)
    client.close()
    return b"".join(parts)


@BOTH
def test_messages_come_in_order_through_wildcards(port: int, version: int) -> None:
    listener, speaker = PahoClient(port, "l", version), PahoClient(port, "s", version)
    listener.subscribe("a/+/c", "b/#")
    sent = [(topic, str(n).encode()) for n in range(50) for topic in ("a/x/c", "b", "b/y", "a/c")]
    for topic, payload in sent:
        speaker.publish(topic, payload)
    wanted = [(topic, payload) for topic, payload in sent if topic != "a/c"]
    eventually(lambda: len(listener.messages) >= len(wanted))
    assert listener.messages == wanted
    listener.close()
    speaker.close()


@BOTH
def test_a_client_gets_one_copy_however_many_of_its_filters_match(port: int, version: int) -> None:
    client = PahoClient(port, "one-copy", version)
    client.subscribe("one/#", "one/copy", "+/copy")
    client.publish("one/copy", b"1")
    client.publish("one/end", b"2")
    eventually(lambda: len(client.messages) >= 2)
    assert client.messages == [("one/copy", b"1"), ("one/end", b"2")]
    client.close()


def test_versions_hear_each_other_and_properties_travel(port: int) -> None:
    old, new = PahoClient(port, "old", paho.MQTTv311), PahoClient(port, "new")
    for client in (old, new):
        client.subscribe("mixed")
    new.publish("mixed", b"x", colour="blue")
    eventually(lambda: old.messages and new.messages)
    assert old.messages == new.messages == [("mixed", b"x")]
    assert new.properties[0].UserProperty == [("colour", "blue")]
    old.close()
    new.close()


def test_what_is_unsubscribed_comes_no_more(port: int) -> None:
    client = PahoClient(port, "leaver")
    client.subscribe("leave", "stay")
    client.client.unsubscribe("leave")
    eventually(lambda: len(client.answers) == 2)
    client.publish("leave", b"1")
    client.publish("stay", b"2")
    eventually(lambda: client.messages)
    assert client.messages == [("stay", b"2")]
    client.close()


def test_subscribing_again_replaces_the_where_filter(port: int) -> None:
    client = PahoClient(port, "where")
    client.subscribe("planes", where="height < 3000")
    client.subscribe("planes", where="height >= 3000")
    client.publish("planes", '{"height": 100}')
    client.publish("planes", '{"height": 9000}')
    eventually(lambda: client.messages)
    assert client.messages == [("planes", b'{"height": 9000}')]
    client.close()


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ({"where": "height <"}, "where predicate"),
        ({"deadline_ms": "soon"}, "deadline-ms"),
        ({"strategy": "guess"}, "d-tree"),
    ],
)
def test_a_bad_wish_is_refused_with_the_reason_and_the_connection_stays(
    port: int, pairs: dict[str, str], problem: str
) -> None:
    client = PahoClient(port, "bad-wish")
    codes, properties = client.subscribe("a", "b", **pairs)
    assert [code.value for code in codes] == [0x83, 0x83]
    assert problem in properties.ReasonString
    client.subscribe("c")
    client.publish("c", b"still here")
    eventually(lambda: client.messages)
    client.close()


def test_an_illegal_filter_is_refused_alone(port: int) -> None:
    client = raw(port, "illegal", MQTT_5)
    client.sendall(encode(Subscribe(1, (TopicFilter("a/#/b"), TopicFilter("c"))), MQTT_5))
    answer = client.recv(1000)
    assert answer[0] == 0x90
    assert answer[-2:] == b"\x8f\x00"
    assert b"last level" in answer
    client.close()


def test_a_shared_subscription_of_3_1_1_is_refused_alone(port: int) -> None:
    client = PahoClient(port, "sharing", version=paho.MQTTv311)
    assert client.subscribe("$share/group/t")[0][0].is_failure
    assert not client.subscribe("plain")[0][0].is_failure
    client.close()


def test_a_bad_promise_ends_the_connection_with_the_reason(port: int) -> None:
    client = PahoClient(port, "bad-promise")
    client.publish("a", b"", strategy="guess")
    eventually(lambda: client.disconnected)
    code, properties = client.disconnected[0]
    assert code.value == 0x83
    assert "direct, flooding" in properties.ReasonString or "d-tree" in properties.ReasonString
    client.close()


def test_no_local_keeps_a_clients_own_words_from_it(port: int) -> None:
    client = raw(port, "no-local", MQTT_5)
    wanted = (TopicFilter("quiet", no_local=True), TopicFilter("loud"))
    client.sendall(encode(Subscribe(1, wanted), MQTT_5))
    assert client.recv(1000)[0] == 0x90
    client.sendall(encode(Publish("quiet", b"1"), MQTT_5) + encode(Publish("loud", b"2"), MQTT_5))
    assert client.recv(1000) == encode(Publish("loud", b"2"), MQTT_5)
    other = PahoClient(port, "other")
    other.publish("quiet", b"3")
    assert client.recv(1000) == encode(Publish("quiet", b"3"), MQTT_5)
    other.close()
    client.close()


@BOTH
def test_a_will_is_published_when_the_connection_is_lost_and_not_after_a_goodbye(
    port: int, version: int
) -> None:
    listener = PahoClient(port, "heir", version)
    listener.subscribe("wills/#")
    for name, leave in (("polite", PahoClient.close), ("lost", PahoClient.vanish)):
        leave(PahoClient(port, name, version, will=(f"wills/{name}", b"gone")))
    eventually(lambda: listener.messages)
    assert listener.messages == [("wills/lost", b"gone")]
    listener.close()


@BOTH
def test_a_client_that_connects_again_takes_over(port: int, version: int) -> None:
    older = PahoClient(port, "twin", version)
    older.subscribe("twins")
    newer = PahoClient(port, "twin", version)
    eventually(lambda: older.disconnected)
    if version == paho.MQTTv5:
        assert older.disconnected[0][0].value == 0x8E
    newer.subscribe("twins")
    newer.publish("twins", b"hello")
    eventually(lambda: newer.messages)
    assert older.messages == []
    older.close()
    newer.close()


def test_a_silent_client_is_given_up_after_one_and_a_half_keep_alives(port: int) -> None:
    listener = PahoClient(port, "watcher")
    listener.subscribe("silence")
    begun_at = time.monotonic()
    will = Publish("silence", b"")
    silent = raw(port, "silent", MQTT_5, keep_alive_s=1, will=will)
    goodbye = everything(silent)
    assert goodbye[0] == 0xE0
    assert goodbye[2] == 0x8D
    assert 1.4 < time.monotonic() - begun_at < 30
    eventually(lambda: listener.messages)
    listener.close()


def test_a_malformed_packet_ends_its_own_connection_only(port: int) -> None:
    neighbour = PahoClient(port, "calm")
    neighbour.subscribe("calm")
    for garbage in (
        b"\xf0\x00",
        b"\x30\x03\x00\x09a",
        b"\x82\x02\x00\x00",
        b"\x30\xff\xff\xff\xff",
    ):
        client = raw(port, "rude", MQTT_5)
        client.sendall(garbage)
        answer = everything(client)
        assert answer[0] == 0xE0, garbage
        assert answer[2] in (0x81, 0x82), garbage
    silent = socket.create_connection(("127.0.0.1", port))
    silent.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert everything(silent) == b""
    neighbour.publish("calm", b"ok")
    eventually(lambda: neighbour.messages)
    neighbour.close()


def test_a_topic_policy_gives_a_version_3_client_its_contract(
    overlay: Overlay, port: int, tmp_path: Path
) -> None:
    contract = overlay.brokers["n1"].broker.default_contract("quick/x")
    assert (contract.deadline_s, contract.late) == (0.05, "drop")


def test_one_who_does_not_read_loses_messages_and_nobody_else_does(
    port: int, overlay: Overlay, caplog: pytest.LogCaptureFixture
) -> None:
    sleeper = raw(port, "sleeper")
    sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sleeper.sendall(encode(Subscribe(1, (TopicFilter("flood"),)), MQTT_3_1_1))
    sleeper.recv(5)
    reader, speaker = PahoClient(port, "reader"), raw(port, "flooder")
    reader.subscribe("flood")
    payloads = [struct.pack(">I", number) + bytes(4000) for number in range(2_000)]
    for count in range(BURST, len(payloads) + 1, BURST):
        burst = [encode(Publish("flood", p), MQTT_3_1_1) for p in payloads[count - BURST : count]]
        speaker.sendall(b"".join(burst))
        eventually(lambda n=count: len(reader.messages) == n)  # type: ignore[misc]
    assert [payload for _, payload in reader.messages] == payloads
    warnings = [r.getMessage() for r in caplog.records if "reads too slowly" in r.getMessage()]
    assert len([warning for warning in warnings if "sleeper" in warning]) == 1
    sleeper.close()
    speaker.close()
    reader.close()
    eventually(lambda: any("sleeper lost" in record.getMessage() for record in caplog.records))


def test_a_broker_that_stops_says_goodbye(tmp_path: Path) -> None:
    with an_overlay(tmp_path, "n1") as overlay:
        new, old = raw(overlay.port("n1"), "new", MQTT_5), raw(overlay.port("n1"), "old")
        overlay.stop("n1")
        assert everything(new)[2] == 0x8B
        assert everything(old) == b""


def test_a_connection_too_many_is_closed_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with an_overlay(tmp_path, "n1", mqtt={"max_connections": 2}) as overlay:
        port = overlay.port("n1")
        first, second = raw(port, "first"), raw(port, "second")
        for _ in range(3):
            third = socket.create_connection(("127.0.0.1", port), timeout=SOCKET_S)
            with third, suppress(ConnectionResetError):
                assert everything(third) == b""
        assert [m for m in caplog.messages if "max_connections is 2" in m] == [
            "an MQTT connection too many is closed: mqtt.max_connections is 2 (1 so far)"
        ]
        second.close()

        def admitted() -> bool:
            with suppress(OSError, IndexError):
                raw(port, "third").close()
                return True
            return False

        eventually(admitted)
        first.close()


def test_traces_that_cannot_be_written_are_named_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("a\0b")):
        with (
            pytest.raises(ConfigError, match=r"traces is .* a folder that can be written"),
            an_overlay(tmp_path, "n1", traces=str(place)),
        ):
            pass


@pytest.mark.parametrize("host", ["999.1.1.1", "192.0.2.1", "a" * 70])
def test_a_host_that_is_not_here_is_named_at_start(tmp_path: Path, host: str) -> None:
    with (
        pytest.raises(ConfigError, match=r"host is .* of this machine"),
        an_overlay(tmp_path, "n1", host=host),
    ):
        pass


def test_a_port_in_use_is_named(tmp_path: Path, overlay: Overlay, port: int) -> None:
    with (
        pytest.raises(ConfigError, match=r"mqtt_port is .*in use"),
        an_overlay(tmp_path, "n1", mqtt_port=port),
    ):
        pass
