"""Brokers that join by one member, and what strangers, liars and impostors can do to them."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import LoopThread, PahoClient, eventually, free_ports

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import PROTOCOL, Frame, Hello, Links
from tidings.core.links.estimates import LinkEstimate
from tidings.linking import LINKERS
from tidings.live.config import parse
from tidings.live.links import connecting, dialling
from tidings.live.server import LiveBroker


class Joiners:
    """Brokers in one background event loop, which know nobody but members."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._loop = folder, LoopThread()
        self._all: list[LiveBroker] = []

    def start(self, name: str, *members: int, **fields: Any) -> LiveBroker:
        async def starting() -> LiveBroker:
            broker = LiveBroker(parse(document, name))
            await broker.start()
            return broker

        by = {"member": [{"port": port} for port in members]} if members else {}
        first = {} if members else {"broker": {"linking": "random"}}
        document = {
            "name": name,
            "mqtt_port": 0,
            "traces": str(self._folder / str(len(self._all))),
            **by,
            **first,
            **fields,
        }
        self._all.append(self._loop.run(starting()))
        return self._all[-1]

    def stop(self, broker: LiveBroker) -> None:
        self._all.remove(broker)
        self._loop.run(broker.stop())

    def soon(self, act: Any, *arguments: Any) -> None:
        """Does something to a broker where its own thread is."""

        async def acting() -> None:
            act(*arguments)

        self._loop.run(acting())

    def close(self) -> None:
        for broker in list(self._all):
            self.stop(broker)
        self._loop.close()


@pytest.fixture
def joiners(tmp_path: Path) -> Iterator[Joiners]:
    joiners = Joiners(tmp_path)
    yield joiners
    joiners.close()


class Peer:
    """The other end of a link, which says what a test wants."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._decoder = connection, Decoder()
        self.heard: list[Hello | Frame] = []
        self.closed = False

    @classmethod
    def dial(cls, broker: LiveBroker) -> Peer:
        return cls(socket.create_connection(("127.0.0.1", broker.link_port), timeout=30))

    def say(self, *frames: Hello | Frame) -> None:
        self._socket.sendall(b"".join(map(encode, frames)))

    def hears(self, what: type[Hello | Frame], more: int = 1) -> bool:
        """Reads what is there; has it heard as many of these?"""
        while not self.closed and select.select([self._socket], [], [], 0)[0]:
            try:
                data = self._socket.recv(65_536)
            except ConnectionResetError:
                data = b""
            self.heard += self._decoder.feed(data)
            self.closed = not data
        return len([frame for frame in self.heard if isinstance(frame, what)]) >= more

    def is_closed(self) -> bool:
        self.hears(Hello)
        return self.closed

    def refusals(self) -> list[str]:
        return [f.refusal for f in self.heard if isinstance(f, Hello) and f.refusal]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


def accepted(listener: socket.socket) -> Peer:
    return Peer(listener.accept()[0])


def linked(broker: LiveBroker) -> set[str]:
    return set(broker.links.up())


@pytest.mark.parametrize("linking", sorted(LINKERS.keys() - {"configured"}))
def test_a_newcomer_that_knows_one_member_is_linked_with_all_and_messages_flow(
    joiners: Joiners, linking: str
) -> None:
    """There are so few brokers that every linker wants them all."""
    how = {"broker": {"linking": linking}}
    first = joiners.start("n1", **how)
    brokers = [first] + [joiners.start(f"n{n}", first.link_port, **how) for n in (2, 3, 4)]
    names = {"n1", "n2", "n3", "n4"}
    for broker in brokers:
        eventually(lambda b=broker: linked(b) == names - {b.broker.name})  # type: ignore[misc]
    listener, speaker = PahoClient(first.mqtt_port), PahoClient(brokers[-1].mqtt_port)
    listener.subscribe("t")

    def heard() -> bool:
        speaker.publish("t")
        return bool(listener.messages)

    eventually(heard)
    for client in (listener, speaker):
        client.close()


def test_who_leaves_is_gone_and_nothing_is_kept_of_it(joiners: Joiners) -> None:
    first = joiners.start("n1")
    second = joiners.start("n2", first.link_port)
    eventually(lambda: linked(first) == {"n2"} and linked(second) == {"n1"})
    joiners.stop(second)
    eventually(lambda: not linked(first))
    assert first.driver.wires == {}
    third = joiners.start("n3", first.link_port)
    eventually(lambda: linked(first) == {"n3"})
    eventually(lambda: linked(third) == {"n1"})


def test_a_link_that_the_broker_wants_no_longer_ends_at_both_ends(joiners: Joiners) -> None:
    first = joiners.start("n1")
    peer = Peer.dial(first)
    peer.say(Hello("n0", PROTOCOL))
    eventually(lambda: linked(first) == {"n0"})
    joiners.soon(first.driver.close_link, "n0")
    eventually(peer.is_closed)
    eventually(lambda: not linked(first) and not first.driver.wires)
    peer.close()


@pytest.mark.parametrize(("name", "survives"), [("a", "theirs"), ("z", "ours")])
def test_of_two_connections_that_crossed_the_one_that_the_smaller_name_dialled_survives(
    joiners: Joiners, listener: socket.socket, name: str, survives: str
) -> None:
    broker = joiners.start("n5", listener.getsockname()[1])
    ours = accepted(listener)
    ours.say(Hello(name, PROTOCOL))
    eventually(lambda: linked(broker) == {name})
    theirs = Peer.dial(broker)
    theirs.say(Hello(name, PROTOCOL))
    kept, closed = (theirs, ours) if survives == "theirs" else (ours, theirs)
    eventually(closed.is_closed)
    eventually(lambda: kept.hears(Links))  # what is known is told over the one that is left
    assert linked(broker) == {name}
    assert not kept.is_closed()
    assert not ours.refusals() + theirs.refusals(), "nobody has made a mistake"
    for peer in (ours, theirs):
        peer.close()


def test_a_second_broker_of_one_name_is_turned_away_and_both_logs_say_so(
    joiners: Joiners, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    member = joiners.start("n1")
    joiners.start("twin", member.link_port)
    eventually(lambda: linked(member) == {"twin"})
    connection = member.links.linked["twin"]
    joiners.start("twin", member.link_port)

    def said(*words: str) -> bool:
        return any(all(w in r.getMessage() for w in words) for r in caplog.records)

    eventually(lambda: said("a link connection from", "'twin' is connected already, from 127"))
    eventually(lambda: said("n1 (127.0.0.1:", "turns this broker away: 'twin' is connected"))
    assert member.links.linked["twin"] is connection


def test_nobody_takes_over_a_link_that_has_been_there_for_a_while(
    joiners: Joiners, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "RACE_S", 0.0)
    broker = joiners.start("n5", listener.getsockname()[1])
    genuine = accepted(listener)
    genuine.say(Hello("a", PROTOCOL))
    eventually(lambda: linked(broker) == {"a"})
    impostor = Peer.dial(broker)
    impostor.say(Hello("a", PROTOCOL))
    eventually(impostor.is_closed)
    assert "connected already" in impostor.refusals()[0]
    assert not genuine.is_closed()
    for peer in (genuine, impostor):
        peer.close()


@pytest.mark.parametrize("name", ["n1", "a/b", "", "x" * 251, "two\nlines"])
def test_a_stranger_needs_a_name_that_a_broker_can_have(joiners: Joiners, name: str) -> None:
    broker = joiners.start("n1")
    stranger = Peer.dial(broker)
    stranger.say(Hello(name, PROTOCOL))
    eventually(stranger.is_closed)
    assert stranger.refusals()
    assert not linked(broker)
    stranger.close()


def test_a_list_of_members_that_names_oneself_does_no_harm(
    joiners: Joiners, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    [port] = free_ports(1)
    first = joiners.start("n1", port, link_port=port)
    eventually(lambda: "is this broker itself" in caplog.text)
    assert not linked(first)
    second = joiners.start("n2", port)
    eventually(lambda: linked(first) == {"n2"})
    eventually(lambda: linked(second) == {"n1"})
    assert caplog.text.count("is this broker itself") == 1
    assert "closed" not in caplog.text, "it has not refused itself"


def test_a_member_that_dies_within_its_hello_is_asked_again(
    joiners: Joiners, listener: socket.socket
) -> None:
    broker = joiners.start("n1", listener.getsockname()[1])
    for length in (0, 3, 7):
        dying = listener.accept()[0]
        dying.sendall(encode(Hello("n2", PROTOCOL))[:length])
        dying.close()
    peer = accepted(listener)
    peer.say(Hello("n2", PROTOCOL))
    eventually(lambda: linked(broker) == {"n2"})
    peer.close()


def test_a_member_that_was_not_there_when_others_were_is_found_later(
    joiners: Joiners, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows nobody itself, so that nobody else could tell of it."""
    monkeypatch.setattr(dialling, "UNHURRIED_S", 0.1)
    [port] = free_ports(1)
    first = joiners.start("n1")
    second = joiners.start("n2", first.link_port, port)
    eventually(lambda: linked(second) == {"n1"})
    joiners.start("n3", link_port=port)
    eventually(lambda: linked(second) == {"n1", "n3"})


def test_nothing_grows_with_the_strangers_that_come_and_go(joiners: Joiners) -> None:
    broker = joiners.start("n1")
    for number in range(300):
        stranger = Peer.dial(broker)
        if number % 3:
            stranger.say(Hello(f"stranger{number}", PROTOCOL))
            if number % 3 == 1:
                eventually(lambda p=stranger: p.hears(Hello) and linked(broker))  # type: ignore[misc]
        else:
            stranger._socket.sendall(encode(Hello("half", PROTOCOL))[:5])
        stranger.close()
    eventually(lambda: not linked(broker) and not broker.links.busy())
    assert not broker.driver.wires
    assert not broker.links.notices._lost_at
    assert not broker.driver.silent


def test_a_link_that_flaps_leaves_nothing_behind_and_is_told_of_ten_times(
    joiners: Joiners, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    broker = joiners.start("n1")
    for _ in range(100):
        peer = Peer.dial(broker)
        peer.say(Hello("n2", PROTOCOL))
        eventually(lambda: linked(broker) == {"n2"})
        peer.close()
        eventually(lambda: not linked(broker))
    assert not broker.driver.wires
    lines = [r.getMessage() for r in caplog.records if "link to n2 is" in r.getMessage()]
    assert 0 < len(lines) <= 10


def test_a_list_of_members_that_lies_costs_few_connections_at_a_time(
    joiners: Joiners, listener: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 300 members that a liar invents, some have no address, and some one that says nothing."""
    caplog.set_level("INFO")
    tarpit = socket.create_server(("127.0.0.1", 0), backlog=1_000)
    place = f"127.0.0.1:{tarpit.getsockname()[1]}"
    broker = joiners.start("n1", listener.getsockname()[1], broker={"linking": "full-mesh"})
    liar = accepted(listener)
    liar.say(Hello("liar", PROTOCOL))
    eventually(lambda: linked(broker) == {"liar"})
    addresses = [place, "", "nowhere", ":::", "\x00:1", "127.0.0.1:99999", "127.0.0.1:"]
    lies = [
        Links(1 + n, f"lie{n}", 1, 1, (("liar", LinkEstimate(0.01)),), 0.0, addresses[n % 7])
        for n in range(300)
    ]
    liar.say(*lies)
    waiting: list[socket.socket] = []
    tarpit.settimeout(1.0)
    try:
        while len(waiting) < 300:
            waiting.append(tarpit.accept()[0])
    except TimeoutError:
        pass
    assert 0 < len(waiting) <= 32
    eventually(lambda: "no link to lie1: nobody has told an address" in caplog.text)
    client = PahoClient(broker.mqtt_port)
    client.subscribe("t")  # it still answers
    client.close()
    for connection in (*waiting, tarpit):
        connection.close()
    liar.close()


def test_a_silent_peer_is_let_go_though_it_does_not_close(joiners: Joiners) -> None:
    broker = joiners.start("n1")
    peer = Peer.dial(broker)
    peer.say(Hello("n2", PROTOCOL))
    eventually(lambda: linked(broker) == {"n2"})
    joiners.soon(broker.driver.close_link, "n2")
    eventually(lambda: not linked(broker))
    eventually(lambda: not broker.links.busy())  # though the peer holds its end
    again = Peer.dial(broker)
    again.say(Hello("n2", PROTOCOL))
    eventually(lambda: linked(broker) == {"n2"})
    for each in (peer, again):
        each.close()


def test_a_broker_that_leaves_says_so_before_its_link_ends(joiners: Joiners) -> None:
    broker = joiners.start("n1")
    peer = Peer.dial(broker)
    peer.say(Hello("n2", PROTOCOL))
    eventually(lambda: linked(broker) == {"n2"})
    started_at = time.monotonic()
    joiners.stop(broker)
    assert time.monotonic() - started_at < 30
    eventually(peer.is_closed)
    reports = [frame for frame in peer.heard if isinstance(frame, Links)]
    assert reports[-1].origin == "n1"
    assert reports[-1].links == ()
    assert reports[-1].address.endswith(f":{broker.link_port}")
    peer.close()


def test_a_member_is_dialled_where_it_was_written_down_whatever_it_tells_of_itself(
    joiners: Joiners,
) -> None:
    [port] = free_ports(1)
    elsewhere = {"link_port": port, "address": "127.0.0.1:1"}
    member = joiners.start("n1", **elsewhere)
    broker = joiners.start("n2", port)
    eventually(lambda: linked(broker) == {"n1"})
    joiners.stop(member)
    eventually(lambda: not linked(broker))
    joiners.start("n1", **elsewhere)
    eventually(lambda: linked(broker) == {"n1"})


def test_more_strangers_than_a_broker_can_have_are_turned_away(
    joiners: Joiners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "MOST_LINKS", 2)
    broker = joiners.start("n1")
    peers = [Peer.dial(broker) for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.say(Hello(f"stranger{number}", PROTOCOL))
        eventually(lambda p=peer, n=number: p.is_closed() or f"stranger{n}" in linked(broker))  # type: ignore[misc]
    assert linked(broker) == {"stranger0", "stranger1"}
    assert peers[2].refusals() == ["there are 2 links already"]
    for peer in peers:
        peer.close()
