"""Brokers hang, are killed, run out of disk or are cut off, and durable messages still arrive."""

import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from support.broker_processes import BrokerProcess
from support.live import Overlay, PahoClient, an_overlay, eventually, free_ports

from tidings.broker.settings import Settings
from tidings.core.trace import TABLES, Reason
from tidings.live.config import BrokerConfig, Neighbour
from tidings.live.journal.frames import Kept, frames_in
from tidings.live.journal.recovery import recover
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_5, Connect, Pingreq, Pingresp, Publish
from tidings.mqtt.properties import Properties
from tidings.traces.files import parquet_files, read_files
from tidings.traces.schemas import arrow_schema

ARRIVE_WITHIN_S = 60.0
COUNT = 20  # messages of each kind


# ---- a line of processes: a - b - c


class Line:
    """Three brokers, each a process; a and c know each other only through b."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.traces, self.store = folder / "traces", folder / "store"
        links = dict(zip("abc", free_ports(3), strict=True))
        mqtt = dict(zip("abc", free_ports(3), strict=True))
        told = Settings(
            trace="hops",
            retry_every_s=0.2,
            exhausted="drop",  # so that what is not durable tells when it has no way left
            suspect_after_s=1e6,
            probes_missed=1_000,  # a broker that hangs counts as there: others hold on to it
            **settings,
        )
        self.brokers = {
            name: BrokerProcess(
                BrokerConfig(
                    name=name,
                    mqtt_port=mqtt[name],
                    link_port=links[name],
                    neighbour=tuple(Neighbour(name=n, port=links[n]) for n in near),
                    broker=told,
                    traces=str(self.traces),
                    store=str(self.store),
                    flush_s=0.1,
                ),
                folder,
            )
            for name, near in (("a", "b"), ("b", "ac"), ("c", "b"))
        }
        for broker in self.brokers.values():
            broker.start()
        for name, near in (("a", ["b"]), ("b", ["a", "c"]), ("c", ["b"])):
            self.brokers[name].until(links=near)

    def subscriber_at_c(self) -> PahoClient:
        listener = PahoClient(self.brokers["c"].port, "listener")
        listener.subscribe("kept", "plain")
        return listener

    def restart(self, name: str) -> None:
        self.brokers[name].start()
        self.brokers[name].until(ready=name)

    def rows(self, table: str, broker: str = "") -> list[dict[str, Any]]:
        return [row for row in rows(self.traces, table) if broker in ("", row["broker"])]

    def acknowledged_to_a(self) -> set[int]:
        """The messages that b has answered for, as a has heard it."""
        answered = {row["transmission"] for row in self.rows("acknowledged", "a")}
        sent = self.rows("forwarded", "a")
        return {row["message"] for row in sent if row["transmission"] in answered}

    def stored(self, name: str) -> set[int]:
        """The messages that a broker which has ended has stored."""
        return set(recover((self.store / f"{name}.journal").read_bytes(), None).messages)

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.end(signal.SIGKILL)


def rows(traces: Path, table: str) -> list[dict[str, Any]]:
    """What the brokers have recorded until now."""
    found = read_files(parquet_files(traces / table), arrow_schema(TABLES[table]))
    return list(found.to_pylist())


def payloads(client: PahoClient, topic: str) -> list[int]:
    return sorted(int(payload) for about, payload in client.messages if about == topic)


@pytest.fixture
def line(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Line]:
    line = Line(tmp_path, strategy=request.param)
    yield line
    line.close()


def publish_while_c_hangs(line: Line, *topics: str, count: int, size_bytes: int = 0) -> None:
    """b is given messages for c, which does not answer though it seems to be there."""
    listener, speaker = line.subscriber_at_c(), PahoClient(line.brokers["a"].port, "speaker")
    for broker in line.brokers.values():
        broker.until(subscriptions=2)
    line.brokers["c"].process.send_signal(signal.SIGSTOP)
    for number in range(count):
        for topic in topics:
            kept = {"durable": "true"} if topic == "kept" else {}
            speaker.publish(topic, f"{number:{size_bytes}}", **kept)
    eventually(lambda: len(line.rows("published")) == count * len(topics))
    speaker.close()
    listener.vanish()


@pytest.mark.parametrize(
    ("line", "victims", "reason"),
    [
        ("d-tree", "b", Reason.UNACKNOWLEDGED),  # b keeps what c does not take
        ("dcrd", "ab", Reason.EXHAUSTED),  # b gives it back to a, which tries again
    ],
    indirect=["line"],
)
def test_brokers_that_die_with_what_they_acknowledged_lose_no_durable_message(
    line: Line, victims: str, reason: str
) -> None:
    publish_while_c_hangs(line, "kept", "plain", count=COUNT)
    said = {row["message"]: row["topic"] for row in line.rows("published")}
    plain = {message for message, topic in said.items() if topic == "plain"}
    kept = set(said) - plain
    eventually(lambda: kept <= line.acknowledged_to_a())
    eventually(lambda: {row["message"] for row in line.rows("dropped")} == plain)
    for name in ("c", *victims):
        assert line.brokers[name].end(signal.SIGKILL) == -signal.SIGKILL
    assert set[int]().union(*map(line.stored, victims)) == kept
    line.restart("c")
    listener = line.subscriber_at_c()  # before anybody can reach it
    for name in victims:
        line.restart(name)
    eventually(lambda: len(payloads(listener, "kept")) >= COUNT, ARRIVE_WITHIN_S)
    assert payloads(listener, "kept") == list(range(COUNT))
    assert payloads(listener, "plain") == []
    listener.close()
    for broker in line.brokers.values():
        broker.until(stored=0)
    for name, broker in line.brokers.items():
        assert broker.end() == 0, broker.complaints()
        assert line.stored(name) == set()
    dropped = {(row["message"], row["reason"]) for row in line.rows("dropped")}
    assert dropped == {(message, reason) for message in plain}


@pytest.mark.parametrize("line", ["d-tree"], indirect=True)
def test_a_broker_whose_disk_is_full_acknowledges_nothing_that_it_did_not_store(
    line: Line,
) -> None:
    limit = (300_000, resource.RLIM_INFINITY)
    resource.prlimit(line.brokers["b"].process.pid, resource.RLIMIT_FSIZE, limit)
    publish_while_c_hangs(line, "kept", count=200, size_bytes=2_000)
    b = line.brokers["b"]
    eventually(lambda: b.process.poll() is not None, ARRIVE_WITHIN_S)
    assert b.end() == 1
    assert "b.journal cannot be written" in b.complaints()
    assert "so this broker ends" in b.complaints()
    eventually(lambda: not all(row["up"] for row in line.rows("link_changed", "a")))
    assert line.acknowledged_to_a() <= line.stored("b")
    assert line.brokers["c"].end(signal.SIGKILL) == -signal.SIGKILL
    line.restart("c")
    listener = line.subscriber_at_c()
    line.restart("b")
    eventually(lambda: len(payloads(listener, "kept")) >= 200, ARRIVE_WITHIN_S)
    assert payloads(listener, "kept") == list(range(200))
    assert line.rows("dropped") == []
    listener.close()


def answered_pings(port: int, topic: str) -> Iterator[int]:
    """Publishes a durable message and pings, again and again, for as long as pings are answered."""
    kept = Properties(user_properties=(("durable", "true"),))
    with socket.create_connection(("127.0.0.1", port), timeout=ARRIVE_WITHIN_S) as speaker:
        speaker.sendall(encode(Connect(MQTT_5, "speaker"), MQTT_5))
        with suppress(ConnectionError):
            assert speaker.recv(1_000)[0] == 0x20
            for number in range(1_000_000):
                said = Publish(topic, f"{number:2000}".encode(), kept)
                speaker.sendall(encode(said, MQTT_5) + encode(Pingreq(), MQTT_5))
                if not speaker.recv(1_000).startswith(encode(Pingresp(), MQTT_5)):
                    return
                yield number


@pytest.mark.parametrize("line", ["d-tree"], indirect=True)
def test_a_broker_whose_disk_is_full_answers_no_client_for_what_it_did_not_store(
    line: Line,
) -> None:
    a, listener = line.brokers["a"], line.subscriber_at_c()
    a.until(subscriptions=2)
    line.brokers["b"].process.send_signal(signal.SIGSTOP)  # so that a keeps all that comes
    limit = (300_000, resource.RLIM_INFINITY)
    resource.prlimit(a.process.pid, resource.RLIMIT_FSIZE, limit)
    answered = list(answered_pings(a.port, "kept"))
    assert a.end() == 1
    assert "a.journal cannot be written" in a.complaints()
    assert len(answered) > 100
    assert len(line.stored("a")) == len(answered)
    listener.vanish()


@pytest.mark.parametrize("line", ["d-tree"], indirect=True)
def test_a_broker_whose_store_was_damaged_says_what_is_lost_and_delivers_the_rest(
    line: Line,
) -> None:
    publish_while_c_hangs(line, "kept", count=COUNT)
    said = {row["message"] for row in line.rows("published")}
    eventually(lambda: said <= line.acknowledged_to_a())
    for name in ("b", "c"):
        assert line.brokers[name].end(signal.SIGKILL) == -signal.SIGKILL
    journal = line.store / "b.journal"
    data = bytearray(journal.read_bytes())
    victim = [frame for frame in frames_in(bytes(data)) if isinstance(frame.record, Kept)][7]
    data[victim.stop - 1] ^= 4
    journal.write_bytes(data)
    line.restart("c")
    listener = line.subscriber_at_c()
    line.restart("b")
    eventually(lambda: len(payloads(listener, "kept")) >= COUNT - 1, ARRIVE_WITHIN_S)
    assert f"1 of {COUNT} messages is lost" in line.brokers["b"].complaints()
    assert (line.store / "b.journal.damaged-1").read_bytes() == data
    listener.close()


# ---- a link that is cut


def cut(overlay: Overlay) -> None:
    """The emulated outage begins now, on both sides."""
    for broker in overlay.brokers.values():
        broker.origin.started_at = time.time()


def mend(overlay: Overlay) -> None:
    """It is over: before a run begins there is none."""
    for broker in overlay.brokers.values():
        broker.origin.started_at = inf


def test_what_is_durable_by_anybody_s_word_outlasts_a_partition_and_the_rest_is_accounted_for(
    tmp_path: Path,
) -> None:
    with an_overlay(
        tmp_path,
        "n1",
        "n2",
        emulate={"delay_s": 0.005, "outages": [[0.0, 3600.0]]},
        broker={"retry_every_s": 0.2, "exhausted": "drop"},
        policy=[{"topic": "by-policy", "durable": True}],
    ) as overlay:
        listener = PahoClient(overlay.port("n2"), "listener")
        listener.subscribe("by-publisher", "by-policy", "by-nobody")
        listener.subscribe("by-subscriber", durable="true")
        overlay.until_known(4)
        five = PahoClient(overlay.port("n1"), "five")
        three = PahoClient(overlay.port("n1"), "three", paho.MQTTv311)
        cut(overlay)
        for number in range(COUNT):
            five.publish("by-publisher", str(number), durable="true")
            for topic in ("by-policy", "by-subscriber", "by-nobody"):
                three.publish(topic, str(number))
        eventually(lambda: len(rows(tmp_path / "traces", "dropped")) >= COUNT)
        assert listener.messages == []
        mend(overlay)
        for topic in ("by-publisher", "by-policy", "by-subscriber"):
            eventually(lambda t=topic: len(payloads(listener, t)) >= COUNT, ARRIVE_WITHIN_S)  # type: ignore[misc]
            assert payloads(listener, topic) == list(range(COUNT))
        assert payloads(listener, "by-nobody") == []
        for client in (listener, five, three):
            client.close()
    lost = rows(tmp_path / "traces", "dropped")
    assert len(lost) == COUNT
    assert {(row["reason"], *row["destinations"]) for row in lost} == {("unacknowledged", "n2")}
