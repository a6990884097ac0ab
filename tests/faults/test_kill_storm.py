"""Brokers of a mesh are killed again and again, two of them at once, and no message is lost that
one of them has accepted."""

from __future__ import annotations

import random
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from support.broker_processes import BrokerProcess
from support.live import PahoClient, eventually, free_ports

from tidings.broker.settings import Settings
from tidings.core.policy import Policy
from tidings.live.config import BrokerConfig, Neighbour
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_5, Connect, Pingreq, Pingresp, Publish

NEAR = {"a": "be", "b": "acd", "c": "bd", "d": "bce", "e": "ad"}
# Who is dead at the same time. Never c: its subscriber would have to subscribe again, and would not
# be owed what came before. While b and d are dead, c hears from nobody: a dies with what it keeps.
WAVES = ["a", "b", "d", "e", "e", "bda"]
SEED = 5  # of their order
MEANWHILE = 20  # messages that others accept while brokers are dead
AFTERWARDS = 40  # messages that are accepted before the next wave
TOGETHER = 4  # messages of a publisher, behind which it pings
PAUSE_S = 0.15  # until the next: the storm is about deaths, not about load
TRY_EVERY_S = 0.01  # to connect, so that a broker is given messages as soon as it listens
WITHIN_S = 120.0  # killed brokers accept messages again, and in the end all have arrived
TOPIC = "storm"
PINGRESP = encode(Pingresp(), MQTT_5)


class Accepted(NamedTuple):
    """A message that a broker answers for: it has answered the ping behind it."""

    number: int
    broker: str


class Publishers:
    """One at each broker, in a thread; each connects again when its broker is back."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.accepted: list[Accepted] = []
        self._more, self._ended, self._numbers = threading.Condition(), threading.Event(), count()
        self._threads = [
            threading.Thread(target=self._keep_publishing, args=place) for place in ports.items()
        ]

    def until_accepted(self, further: int, brokers: Iterable[str]) -> None:
        """Waits for so many messages from now on, and for at least one at each of these brokers."""
        known = len(self.accepted)

        def enough() -> bool:
            new = self.accepted[known:]
            return len(new) >= further and {a.broker for a in new}.issuperset(brokers)

        with self._more:
            found = self._more.wait_for(enough, WITHIN_S)
        assert found, f"{self.accepted[known:]} is all that was accepted in {WITHIN_S} s"

    @contextmanager
    def publishing(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def _keep_publishing(self, broker: str, port: int) -> None:
        while not self._ended.wait(TRY_EVERY_S):
            with suppress(OSError):  # the broker is dead, or not back yet
                self._publish(broker, port)

    def _publish(self, broker: str, port: int) -> None:
        """For as long as the broker answers."""
        with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as speaker:
            speaker.sendall(encode(Connect(MQTT_5, f"speaker-{broker}"), MQTT_5))
            answered = speaker.recv(1_000).startswith(b"\x20")
            while answered:
                numbers = list(islice(self._numbers, TOGETHER))
                said = [encode(Publish(TOPIC, str(n).encode()), MQTT_5) for n in numbers]
                speaker.sendall(b"".join([*said, encode(Pingreq(), MQTT_5)]))
                if answered := speaker.recv(1_000) == PINGRESP:
                    self._note(Accepted(number, broker) for number in numbers)
                    answered = not self._ended.wait(PAUSE_S)

    def _note(self, accepted: Iterable[Accepted]) -> None:
        with self._more:
            self.accepted += accepted
            self._more.notify_all()


def a_mesh(folder: Path) -> dict[str, BrokerProcess]:
    """Brokers that have just started, all links up."""
    links = dict(zip(NEAR, free_ports(len(NEAR)), strict=True))
    mqtt = dict(zip(NEAR, free_ports(len(NEAR)), strict=True))
    # On a busy machine brokers may take longer to be back than late takers are waited for.
    settings = Settings(strategy="d-tree", retry_every_s=0.2, late_takers_s=600.0)
    brokers = {
        name: BrokerProcess(
            BrokerConfig(
                name=name,
                mqtt_port=mqtt[name],
                link_port=links[name],
                neighbour=tuple(Neighbour(name=n, port=links[n]) for n in near),
                broker=settings,
                policy=(Policy(topic=TOPIC, durable=True),),
                traces=str(folder / "traces"),
            ),
            folder,
        )
        for name, near in NEAR.items()
    }
    for broker in brokers.values():
        broker.start()
    for name, near in NEAR.items():
        brokers[name].until(links=list(near))
    return brokers


def missing(accepted: list[Accepted], arrived: list[int], kills: list[tuple[int, str]]) -> str:
    """What was accepted and has not arrived, in words; empty if there is nothing.

    `kills` are brokers, each with the number of messages that had been accepted before.
    """
    there = set(arrived)
    lines = [
        f"{said.number}, accepted at {said.broker} after kills of "
        + (", ".join(name for before, name in kills if before <= place) or "nobody")
        for place, said in enumerate(accepted)
        if said.number not in there
    ]
    repeated = len(arrived) - len(there)
    head = f"{len(lines)} of {len(accepted)} are missing, {repeated} came again:"
    return "\n".join([head, *lines]) if lines else ""


def test_no_accepted_message_is_lost_however_brokers_die(tmp_path: Path) -> None:
    brokers = a_mesh(tmp_path)
    listener = PahoClient(brokers["c"].port, "listener")
    listener.subscribe(TOPIC)
    for broker in brokers.values():
        broker.until(subscriptions=1)
    publishers = Publishers({name: broker.port for name, broker in brokers.items()})
    kills: list[tuple[int, str]] = []
    with publishers.publishing():
        publishers.until_accepted(AFTERWARDS, NEAR)
        for wave in random.Random(SEED).sample(WAVES, len(WAVES)):
            alive = set(NEAR)
            for name in wave:
                kills.append((len(publishers.accepted), name))
                code = brokers[name].end(signal.SIGKILL)
                assert code == -signal.SIGKILL, brokers[name].complaints()  # it lived till now
                alive.remove(name)
                publishers.until_accepted(MEANWHILE, alive)
            for name in wave:
                brokers[name].start()
            publishers.until_accepted(AFTERWARDS, wave)

    def lost() -> str:
        arrived = [int(payload) for _, payload in list(listener.messages)]
        return missing(publishers.accepted, arrived, kills)

    with suppress(AssertionError):  # what is missing says more
        eventually(lambda: not lost(), WITHIN_S)
    assert not lost(), lost()
    listener.close()
    for broker in brokers.values():
        broker.end(signal.SIGKILL)
