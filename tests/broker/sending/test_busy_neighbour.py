"""A neighbour that answers late because its host is busy is not a broken link."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import DELAY_S, TRIANGLE, Net, connected
from support.prospects import Known

from tidings.broker.frames import Data
from tidings.broker.sending.link import LinkEnd
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate

BURST = 20


def settled(**settings: Any) -> Net:
    """A triangle with default settings, in which b1 has spoken to b3 for a second."""
    net = connected(*TRIANGLE, settle_s=3.0, **{"estimates": "measured", **settings})
    net.subscribe("b3")
    net.run(1.0)
    for _ in range(20):
        net.publish("b1")
        net.run(0.05)
    net.said.clear()
    net.delivered.clear()
    return net


def burst(net: Net, busy_s: float) -> None:
    """b1 has much to say at once, and for so long nobody reads it: what is sent meanwhile is
    handled when that is over, and not lost."""
    until = net.now + busy_s
    for _ in range(BURST):
        net.delay_s = DELAY_S + until - net.now
        net.publish("b1")
        net.run(0.001)
    while net.now < until:
        net.delay_s = DELAY_S + until - net.now
        net.run(0.001)
    net.delay_s = DELAY_S
    net.run(5.0)


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd"])
@pytest.mark.parametrize("busy_s", [0.020, 0.040, 0.060])
def test_late_answers_give_no_copies_beyond_the_first(strategy: str, busy_s: float) -> None:
    net = settled(strategy=strategy)
    burst(net, busy_s)
    assert len(net.delivered) == BURST
    sent = [frame.envelope.message.id for frame in net.frames(Data)]
    assert len(set(sent)) == BURST
    again = {message for message in sent if sent.count(message) > 1}
    assert len(again) <= 1, "one is tried another way; its late answer speaks for the others"


def test_without_grace_every_one_of_them_is_sent_again() -> None:
    net = settled(grace_s=0.0)
    burst(net, 0.060)
    assert len(net.frames(Data)) >= 2 * BURST


def test_on_a_dark_link_only_the_first_moment_waits() -> None:
    net = settled(strategy="dcrd")
    net.loses = lambda sender, receiver, frame: {sender, receiver} == {"b1", "b3"}
    for number in range(20):
        net.publish("b1")
        net.run(0.030)
        if number >= 3:
            assert len(net.delivered) >= number - 2, "a timeout and two links behind"


# ---- links that are shorter than hosts are quick


def a_link(delay_s: float, **settings: Any) -> LinkEnd:
    return LinkEnd("b2", Settings(**settings), LinkEstimate(delay_s), Known())


def test_the_overlay_is_told_no_delay_that_is_chance() -> None:
    told = a_link(0.0002).told(exactly=False)
    assert told is not None
    assert told.delay_s == Settings().least_delay_s
    assert a_link(0.0002).delay_s == 0.0002, "a message is no older for that"
    assert a_link(0.020).told(exactly=False) == LinkEstimate(0.020)
    assert a_link(0.0002, estimates="pinned").told(exactly=False) == LinkEstimate(0.0002)
    assert a_link(0.0002, least_delay_s=0.0).told(exactly=False) == LinkEstimate(0.0002)


def told_s(link: LinkEnd, exactly: bool = False) -> float:
    told = link.told(exactly)
    assert told is not None
    return told.delay_s


def test_a_delay_that_differs_by_less_than_answers_vary_is_no_news() -> None:
    link, now = a_link(0.010), 0.0
    link.advertised(LinkEstimate(0.010))
    for round_trip_s in 10 * (0.030, 0.150, 0.090):
        link.meter.answered(round_trip_s, 0.0, now := now + 1.0)
    assert told_s(link) == 0.010
    assert told_s(link, exactly=True) > 0.030
    for _ in range(40):
        link.meter.answered(0.200, 0.0, now := now + 1.0)
    assert told_s(link) == pytest.approx(0.100, rel=0.05), "it stays so: the link is longer"
