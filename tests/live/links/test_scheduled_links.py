"""Links that are there only while whoever started the brokers says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import LoopThread, Overlay, eventually, free_ports

from tidings.broker.effects import Send
from tidings.broker.frames import Probe

NAMES = ("n1", "n2")
EMULATED = {"delay_s": 0.05}


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture
def pair(loop: LoopThread, tmp_path: Path) -> Iterator[Overlay]:
    ports = dict(zip(NAMES, free_ports(2), strict=True))
    overlay = Overlay(loop, {name: document(name, ports, tmp_path) for name in NAMES})
    for name in NAMES:
        overlay.start(name)
    yield overlay
    for name in list(overlay.brokers):
        overlay.stop(name)


def document(name: str, ports: dict[str, int], folder: Path) -> dict[str, Any]:
    near = {"awaited": False, "emulate": EMULATED, "estimate": {"delay_ms": 50}}
    return {
        "name": name,
        "mqtt_port": 0,
        "link_port": ports[name],
        "neighbour": [{"name": n, "port": ports[n], **near} for n in NAMES if n != name],
        "broker": {"estimates": "pinned"},
        "traces": str(folder / "traces"),
    }


def told(loop: LoopThread, act: Callable[..., None], *arguments: Any) -> None:
    async def acting() -> None:
        act(*arguments)

    loop.run(acting())


def link(loop: LoopThread, pair: Overlay, up: bool = True) -> None:
    for name, other in (NAMES, NAMES[::-1]):
        links = pair.brokers[name].links
        told(loop, links.link if up else links.unlink, other)


def linked(pair: Overlay) -> list[str]:
    return [near for broker in pair.brokers.values() for near in broker.links.up()]


def test_a_link_is_there_while_it_is_said_to_be(loop: LoopThread, pair: Overlay) -> None:
    assert not linked(pair)
    for _ in range(3):
        link(loop, pair)
        eventually(lambda: linked(pair) == ["n2", "n1"])
        believed = pair.brokers["n1"].broker._links["n2"]
        assert believed.delay_s == pytest.approx(0.05), "as the file says of this link"
        link(loop, pair, up=False)
        assert not linked(pair), "at once"
        assert not pair.brokers["n1"].broker._links, "no neighbour is kept that is not awaited"
    eventually(lambda: not any(broker.links.busy() for broker in pair.brokers.values()))


def test_what_is_under_way_on_a_link_that_is_gone_does_not_arrive(
    loop: LoopThread, pair: Overlay
) -> None:
    link(loop, pair)
    eventually(lambda: linked(pair) == ["n2", "n1"])
    driver = pair.brokers["n1"].driver
    wire = driver.wires["n2"]
    emulation = wire.emulation
    assert emulation is not None
    told(loop, wire.send, Send("n2", Probe(1), 64, 1), driver.clock())
    link(loop, pair, up=False)
    assert not emulation._held
    link(loop, pair)
    eventually(lambda: linked(pair) == ["n2", "n1"])
    assert driver.wires["n2"].emulation is emulation, "the weather of a link goes on"


def test_however_fast_a_link_comes_and_goes_the_last_word_holds(
    loop: LoopThread, pair: Overlay
) -> None:
    for number in range(40):
        link(loop, pair, up=number % 2 == 0)
    assert not linked(pair)
    eventually(lambda: not any(broker.links.busy() for broker in pair.brokers.values()))
    assert not pair.brokers["n1"].links._dialling._kept
    link(loop, pair)
    eventually(lambda: linked(pair) == ["n2", "n1"])


def test_a_link_to_somebody_who_is_not_there_is_made_when_he_is(
    loop: LoopThread, pair: Overlay
) -> None:
    pair.stop("n2")
    told(loop, pair.brokers["n1"].links.link, "n2")
    pair.start("n2")
    eventually(lambda: linked(pair) == ["n2", "n1"])
