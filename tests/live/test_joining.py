"""Processes that join an overlay by one member, leave it, and are killed: what clients notice."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from support.broker_processes import BrokerProcess
from support.live import PahoClient, eventually, free_ports
from support.pages import ROOT, toml_blocks

from tidings.broker.settings import Settings
from tidings.live.config import BrokerConfig, Member

[NEWCOMER] = [b for b in toml_blocks(ROOT / "docs/guide/run-a-broker.md") if "newcomer" in b]
DURABLE = {"durable": "true"}


class Members:
    """Three brokers: the first knows nobody, the others the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.link_ports = dict(zip(("n1", "n2", "n3"), free_ports(3), strict=True))
        by_first = (Member(port=self.link_ports["n1"]),)
        self.brokers = {
            name: BrokerProcess(
                BrokerConfig(
                    name=name,
                    mqtt_port=free_ports(1)[0],
                    link_port=port,
                    member=() if name == "n1" else by_first,
                    broker=Settings(linking="random"),
                    traces=str(folder / "traces"),
                    flush_s=0.1,
                ),
                folder,
            )
            for name, port in self.link_ports.items()
        }
        for broker in self.brokers.values():
            broker.start()
        for name in self.brokers:
            self.until_linked(name, *self.brokers.keys() - {name})

    def until_linked(self, name: str, *others: str) -> None:
        self.brokers[name].until_linked(*others)

    def newcomer(self, member: str = "n1") -> BrokerProcess:
        """One that is still to be started, by the five lines of the guide, with ports of ours."""
        [port] = free_ports(1)
        newcomer = BrokerProcess(BrokerConfig(name="newcomer", mqtt_port=port), self._folder)
        text = NEWCOMER.replace("1884", str(port)).replace("7001", str(self.link_ports[member]))
        newcomer.path.write_text(text)
        return newcomer

    def client(self, name: str) -> PahoClient:
        return PahoClient(self.brokers[name].port)


def heard(client: PahoClient) -> dict[str, set[int]]:
    """What a client has got, by topic."""
    got: dict[str, set[int]] = {}
    for topic, payload in list(client.messages):
        got.setdefault(topic, set()).add(int(payload))
    return got


@pytest.fixture
def members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Members:
    monkeypatch.chdir(tmp_path)  # the smallest file names no folder for traces
    return Members(tmp_path)


def test_five_lines_are_enough_for_messages_to_flow_both_ways(
    members: Members, record_property: pytest.RecordProperty
) -> None:
    there = members.client("n3")
    there.subscribe("from/newcomer")
    newcomer = members.newcomer()
    started_at = time.monotonic()
    newcomer.start()
    newcomer.until(ready="newcomer")
    ready_at = time.monotonic()
    here = PahoClient(newcomer.port)
    here.subscribe("from/n3")

    def both() -> bool:
        there.publish("from/n3")
        here.publish("from/newcomer")
        return bool(there.messages and here.messages)

    eventually(both)
    after_s, start_s = time.monotonic() - ready_at, ready_at - started_at
    record_property("messages_flow_after_s", after_s)
    print(f"it listened after {start_s:.2f} s, and messages flowed {after_s:.2f} s later")
    assert after_s < 15.0, "0.1 s where nothing else runs"
    newcomer.until_linked("n1", "n2", "n3")
    assert newcomer.end() == 0
    for client in (here, there):
        client.close()


def test_a_broker_that_leaves_loses_no_durable_message(members: Members) -> None:
    newcomer = members.newcomer("n2")
    newcomer.start()
    newcomer.until_linked("n1", "n2", "n3")
    there, speaker = members.client("n3"), members.client("n1")
    # Who is cut off while it speaks may not read its last messages, so two clients.
    here, speaks_here = PahoClient(newcomer.port), PahoClient(newcomer.port)
    there.subscribe("from/newcomer", **DURABLE)
    here.subscribe("from/n1", **DURABLE)
    here.subscribe("from/newcomer")
    newcomer.until(subscriptions=3)
    members.brokers["n1"].until(subscriptions=3)
    for number in range(300):
        speaks_here.publish("from/newcomer", str(number), **DURABLE)
        speaker.publish("from/n1", str(number), **DURABLE)
        if number == 100:
            eventually(lambda: "from/newcomer" in heard(here))
            newcomer.process.send_signal(signal.SIGTERM)
    assert newcomer.process.wait(60) == 0
    eventually(lambda: here.disconnected)
    for number in range(300, 350):
        speaker.publish("from/n1", str(number), **DURABLE)
    for name in members.brokers:
        members.until_linked(name, *members.brokers.keys() - {name})
    read = heard(here)["from/newcomer"]  # by the newcomer, before it left
    eventually(lambda: heard(there).get("from/newcomer", set()) >= read)
    newcomer.start()
    newcomer.until_linked("n1", "n2", "n3")
    back = PahoClient(newcomer.port)
    back.subscribe("from/n1", **DURABLE)
    before = heard(here).get("from/n1", set())
    eventually(lambda: before | heard(back).get("from/n1", set()) == set(range(350)))
    for client in (there, back, speaker, here, speaks_here):
        client.close()


def test_a_member_that_was_killed_is_found_again_when_it_is_back(members: Members) -> None:
    members.brokers["n1"].end(signal.SIGKILL)
    members.until_linked("n2", "n3")
    members.until_linked("n3", "n2")
    members.brokers["n1"].start()
    for name in members.brokers:
        members.until_linked(name, *members.brokers.keys() - {name})
    listener, speaker = members.client("n1"), members.client("n3")
    listener.subscribe("t")

    def heard() -> bool:
        speaker.publish("t")
        return bool(listener.messages)

    eventually(heard)
    for client in (listener, speaker):
        client.close()
