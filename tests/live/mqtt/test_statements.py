"""What a client states wrongly is answered, logged and hinted at; what is its own travels on."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from support.live import Overlay, PahoClient, an_overlay, eventually

from tidings.mqtt.codec import PacketDecoder, encode
from tidings.mqtt.packets import (
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Publish,
    Subscribe,
    TopicFilter,
)
from tidings.mqtt.properties import Properties

SOCKET_S = 30.0
BAD = [
    ("strategy", "dtree", "Did you mean 'd-tree'?"),
    ("scheduling", "EB", "Did you mean 'eb'?"),
    ("deadline-ms", "abc", "accepted is: a number of milliseconds greater than 0."),
    ("late", "maybe", "accepted is: deliver or drop."),
]


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Overlay]:
    with an_overlay(tmp_path, "n1") as one:
        yield one


@pytest.fixture
def port(overlay: Overlay) -> int:
    return overlay.port("n1")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "tidings.mqtt")
    return caplog


def stating(kind: type, *pairs: tuple[str, str]) -> object:
    properties = Properties(user_properties=pairs)
    if kind is Subscribe:
        return Subscribe(1, (TopicFilter("t"),), properties)
    return Publish("t", b"", properties)


def goodbye_to(port: int, *packets: object) -> list[object]:
    """All that the broker says to a client that says this in one breath and then listens."""
    decoder, heard = PacketDecoder(version=MQTT_5), []
    with socket.create_connection(("127.0.0.1", port), timeout=SOCKET_S) as client:
        client.sendall(b"".join(encode(packet, MQTT_5) for packet in packets))  # type: ignore[arg-type]
        while data := client.recv(65_536):
            if decoder.receive(data):
                while (packet := decoder.next_packet()) is not None:
                    heard.append(packet)
                decoder.keep_rest()
    return heard


@pytest.mark.parametrize(("name", "value", "hint"), BAD)
def test_a_bad_value_in_a_publication_ends_the_connection_and_is_logged(
    port: int, log: pytest.LogCaptureFixture, name: str, value: str, hint: str
) -> None:
    _, goodbye = goodbye_to(port, Connect(MQTT_5, "sensor"), stating(Publish, (name, value)))
    assert isinstance(goodbye, Disconnect)
    assert goodbye.code == 0x83
    reason = goodbye.properties.reason_string
    assert reason is not None
    assert reason.startswith(f"user property {name} is {value!r}, but accepted is: ")
    assert reason.endswith(hint)
    assert log.messages == [f"client 'sensor' is refused: {reason}"]


def test_a_client_that_is_refused_again_and_again_fills_no_log(
    port: int, log: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        goodbye_to(port, Connect(MQTT_5), stating(Publish, ("price", f"-{number}")))
    goodbye_to(port, Connect(MQTT_5), stating(Publish, ("late", "maybe")))
    assert [message.partition(" property ")[2].split()[0] for message in log.messages] == [
        "price",
        "late",
    ]


def test_what_a_client_sends_in_lines_of_its_own_is_one_line_of_the_log(
    port: int, log: pytest.LogCaptureFixture
) -> None:
    name, value = "x\nall is well", "y\nall is well"
    goodbye_to(port, Connect(MQTT_5, name), stating(Publish, ("late", value)))
    [message] = log.messages
    assert "\n" not in message


@pytest.mark.parametrize(("name", "value", "hint"), BAD)
def test_a_bad_value_in_a_will_is_refused_before_it_is_needed(
    port: int, log: pytest.LogCaptureFixture, name: str, value: str, hint: str
) -> None:
    will = stating(Publish, (name, value))
    [answer] = goodbye_to(port, Connect(MQTT_5, "sensor", will=will))  # type: ignore[arg-type]
    assert isinstance(answer, Connack)
    assert answer.code == 0x83
    assert str(answer.properties.reason_string).endswith(hint)
    assert log.messages == [f"client 'sensor' is refused: {answer.properties.reason_string}"]


def test_a_client_whose_will_is_refused_drives_nobody_out(port: int) -> None:
    first = PahoClient(port, "twin")
    will = stating(Publish, ("late", "maybe"))
    goodbye_to(port, Connect(MQTT_5, "twin", will=will))  # type: ignore[arg-type]
    first.subscribe("t")
    assert first.disconnected == []
    first.close()


def test_a_client_that_leaves_with_a_bad_value_leaves_no_subscription(
    overlay: Overlay, port: int, log: pytest.LogCaptureFixture
) -> None:
    words = (stating(Subscribe), stating(Publish, ("late", "maybe")), Disconnect())
    goodbye_to(port, Connect(MQTT_5, "hasty"), *words)
    eventually(lambda: overlay.status("n1")["subscriptions"] == 0)
    assert len(log.messages) == 1


@pytest.mark.parametrize("name", ["deadlinems", "deadline_ms", "Deadline-ms", "deadline"])
def test_a_misspelt_name_in_a_publication_travels_on_and_is_logged(
    port: int, log: pytest.LogCaptureFixture, name: str
) -> None:
    speaker, listener = PahoClient(port, "speaker"), PahoClient(port, "listener")
    listener.subscribe("t")
    stated = PahoProperties(PacketTypes.PUBLISH)
    stated.UserProperty = [(name, "100"), ("lat", "52.0"), ("priority", "high")]
    for _ in range(3):
        speaker.client.publish("t", b"x", properties=stated)
    eventually(lambda: len(listener.messages) == 3)
    assert listener.properties[0].UserProperty == stated.UserProperty
    assert log.messages == [
        f"client 'speaker' publishes with user property {name!r}, which states nothing. "
        "Did you mean 'deadline-ms'?"
    ]
    speaker.close()
    listener.close()


def test_a_name_of_its_own_is_nobodys_business(port: int, log: pytest.LogCaptureFixture) -> None:
    client = PahoClient(port, "own")
    client.subscribe("t", lat="52.0", trace_id="7", where_from="here")
    client.publish("t", b"x", lat="52.0", rate="7", availability_zone="eu")
    eventually(lambda: client.messages)
    assert log.messages == []
    client.close()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("deadlinems", "deadline-ms"), ("Where", "where"), ("wehre", "where"), ("prize", "price")],
)
def test_a_misspelt_name_in_a_subscription_is_refused_with_the_one_that_is_meant(
    port: int, log: pytest.LogCaptureFixture, name: str, meant: str
) -> None:
    client = PahoClient(port, "reader")
    codes, properties = client.subscribe("t", **{name: "1"})
    assert [code.value for code in codes] == [0x83]
    reason = f"user property {name!r} is not known. Did you mean {meant!r}?"
    assert properties.ReasonString == reason
    assert log.messages == [f"client 'reader' is refused: {reason}"]
    client.close()


def test_mosquittos_publisher_that_waits_for_nothing_is_found_in_the_log(
    port: int, log: pytest.LogCaptureFixture
) -> None:
    if not (command := shutil.which("mosquitto_pub")):
        pytest.skip("mosquitto_pub is not installed")
    stated = ["-D", "publish", "user-property", "strategy", "dtree"]
    arguments = ["-V", "5", "-p", str(port), "-i", "hasty", "-t", "t", "-m", "x", *stated]
    subprocess.run([command, *arguments], check=False, timeout=SOCKET_S)
    eventually(lambda: log.messages)
    assert log.messages[0].startswith("client 'hasty' is refused: user property strategy is")


def test_a_client_of_3_1_1_states_nothing_and_is_not_asked(
    port: int, log: pytest.LogCaptureFixture
) -> None:
    client = PahoClient(port, "old", paho.MQTTv311)
    client.subscribe("t")
    client.publish("t", b"x")
    eventually(lambda: client.messages)
    assert log.messages == []
    client.close()
