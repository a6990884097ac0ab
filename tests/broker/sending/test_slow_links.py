"""Real brokers over a link of limited rate that queues whatever it is given, as a kernel would."""

from __future__ import annotations

from heapq import heappush
from itertools import pairwise
from statistics import median
from typing import Any

import pytest
from support.builders import DELAY_S, Net, a_message, pinned

from tidings.broker.broker import Broker
from tidings.broker.control.link_state import LinkState
from tidings.broker.effects import Send
from tidings.broker.frames import Data, Links
from tidings.broker.sending.link import LinkEnd
from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.pace import ENOUGH
from tidings.core.trace import Acknowledged, Delivered, Dropped, Forwarded
from tidings.routing.base import View

RATE = 125_000.0  # bytes per second: 1 Mbit/s
S_PER_BYTE = 1 / RATE


class SlowNet(Net):
    """All frames of a direction leave one after another, small ones too; none is refused."""

    def __init__(self, rate: float = RATE) -> None:
        super().__init__()
        self.rate, self._free_at = rate, {}  # type: ignore[var-annotated]

    def _send(self, sender: str, send: Send) -> None:
        self.said.append((self.now, sender, send.neighbour, send.frame))
        way = (sender, send.neighbour)
        free_at = max(self.now, self._free_at.get(way, 0.0)) + send.size_bytes / self.rate
        self._free_at[way] = free_at
        event = (free_at + self.delay_s, next(self._serial), *way, send.frame)
        heappush(self._events, event)

    def say(self, size_bytes: int, times: int, every_s: float) -> None:
        for _ in range(times):
            self.tell("b1", "publish", a_message("t", bytes(size_bytes)))
            self.run(every_s)

    @property
    def link(self) -> LinkEnd:
        return self.brokers["b1"]._links["b2"]


def slow(rate: float = RATE, **settings: Any) -> SlowNet:
    """b1 and b2, where somebody listens."""
    net, checked = SlowNet(rate), pinned(**{"estimates": "measured", "trace": "hops", **settings})
    for name, other in (("b1", "b2"), ("b2", "b1")):
        net.add(Broker(name, checked, {other: None}))
    net.connect("b1", "b2")
    net.subscribe("b2")
    net.run(1.0)
    return net


def trips(net: SlowNet) -> list[float]:
    return [row.round_trip_s for row in net.rows_of(Acknowledged)]


@pytest.mark.parametrize("size_bytes", [500, 5_000, 50_000])
def test_a_link_that_is_offered_twice_its_rate_is_kept_busy_and_messages_wait_in_the_queue(
    size_bytes: int,
) -> None:
    net, message_s = slow(), size_bytes / RATE
    net.say(size_bytes, times=400, every_s=message_s / 2)
    quiet_s = 2 * DELAY_S
    assert len(net.link.outbox) > 30
    later = trips(net)[len(trips(net)) // 2 :]
    assert max(later) < 3 * message_s + 2 * (quiet_s + 0.010)
    begun, ended = net.rows_of(Forwarded)[0].recorded_at, net.rows_of(Acknowledged)[-1].recorded_at
    carried = len(trips(net)) * size_bytes / RATE
    assert carried / (ended - begun) > min(0.9, message_s / (message_s + quiet_s))


@pytest.mark.parametrize("every_s", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("transmissions", [1, 3])
def test_large_messages_are_neither_repeated_nor_given_up(
    transmissions: int, every_s: float
) -> None:
    """Each takes 0.4 s, where small frames are answered after 20 ms."""
    net = slow(transmissions=transmissions)
    net.say(50_000, times=20, every_s=every_s)
    net.run(20.0)
    assert len(net.frames(Data, "b1", "b2")) == len(net.rows_of(Delivered)) == 20
    assert not net.rows_of(Dropped)


def test_now_and_then_a_large_message_among_small_ones_is_waited_for() -> None:
    net = slow(transmissions=3)
    for _ in range(5):
        net.say(50, times=30, every_s=0.02)
        net.say(50_000, times=1, every_s=1.0)
    assert len(net.frames(Data, "b1", "b2")) == len(net.rows_of(Delivered)) == 155


def test_the_rate_is_measured_and_told_to_the_overlay_soon() -> None:
    net = slow()
    net.say(5_000, times=100, every_s=0.020)
    assert net.link.outgoing_s_per_byte == pytest.approx(S_PER_BYTE, rel=0.05)
    assert net.link.delay_s == pytest.approx(DELAY_S, rel=0.2)
    told = [dict(frame.links)["b2"] for frame in net.frames(Links, "b1", "b2") if frame.links]
    assert told[-1].s_per_byte == pytest.approx(S_PER_BYTE, rel=0.05)
    assert told[-1].deviation_s_per_byte < 0.1 * S_PER_BYTE


def test_a_message_is_as_old_as_it_is_though_the_other_direction_was_never_measured() -> None:
    net = slow()
    net.say(50_000, times=40, every_s=0.2)
    net.run(20.0)
    before = len(net.rows_of(Delivered))
    net.say(50_000, times=1, every_s=1.0)
    (delivered,) = net.rows_of(Delivered)[before:]
    # A rate that changes by less than a tenth is not told to the other end.
    assert delivered.age_s == pytest.approx(50_000 / RATE + DELAY_S, rel=0.1)


def test_until_there_are_enough_samples_the_rate_is_not_claimed() -> None:
    net = slow()
    net.say(5_000, times=ENOUGH, every_s=0.020)
    assert net.link.outgoing_s_per_byte == 0.0
    assert all(
        estimate.s_per_byte == 0.0 for frame in net.frames(Links) for _, estimate in frame.links
    )


def test_a_link_that_becomes_longer_is_not_taken_for_a_slow_one() -> None:
    net = slow(rate=1e9)
    net.say(300, times=100, every_s=0.010)
    net.delay_s = 0.1
    net.say(300, times=500, every_s=0.010)
    assert net.link.outgoing_s_per_byte == 0.0
    assert net.link.delay_s == pytest.approx(0.1, rel=0.05)
    assert len(net.rows_of(Delivered)) >= 580


def test_a_fast_and_long_link_is_not_held_back_for_long() -> None:
    """10 MB/s, 200 ms there and back: the first window would let 80 KB pass in a second."""
    net = slow(rate=1e7)
    net.delay_s = 0.1
    net.run(10.0)
    net.say(10_000, times=2_000, every_s=0.001)
    net.run(3.0)
    assert len(net.rows_of(Delivered)) == 2_000


def test_a_busy_link_that_becomes_ten_times_longer_is_kept_busy_again_after_a_few_probes() -> None:
    size_bytes = 5_000
    net, every_s = slow(queue_parcels=100_000), size_bytes / RATE / 2
    net.say(size_bytes, times=int(3 / every_s), every_s=every_s)
    net.delay_s = 10 * DELAY_S
    net.say(size_bytes, times=int(20 / every_s), every_s=every_s)
    before = len(net.rows_of(Delivered))
    net.say(size_bytes, times=int(5 / every_s), every_s=every_s)
    assert (len(net.rows_of(Delivered)) - before) * size_bytes / RATE > 0.85 * 5


def test_a_link_that_becomes_faster_is_made_use_of() -> None:
    net = slow()
    net.say(5_000, times=100, every_s=0.020)
    net.run(5.0)
    net.rate = 10 * RATE
    net.say(5_000, times=400, every_s=0.005)
    net.run(1.0)
    assert net.link.outgoing_s_per_byte == pytest.approx(S_PER_BYTE / 10, rel=0.1)
    assert len(net.rows_of(Delivered)) == 500


def test_pinned_estimates_and_their_window_stay_as_they_are() -> None:
    net = SlowNet()
    start = LinkEstimate(DELAY_S, 1.0, S_PER_BYTE)
    for name, other in (("b1", "b2"), ("b2", "b1")):
        net.add(Broker(name, pinned(), {other: start}))
    net.connect("b1", "b2")
    net.subscribe("b2")
    net.run(1.0)
    net.say(5_000, times=100, every_s=0.020)
    assert net.link.window_bytes == pinned().window_bytes
    assert net.link.estimate == start


def test_acknowledged_parcels_leave_in_the_order_of_the_policy_not_of_the_kernel() -> None:
    """A dear message that comes last overtakes all that waits, but for the few on the link."""
    net = slow(scheduling="eb")
    net.say(5_000, times=60, every_s=0.020)
    dear = a_message("t", bytes(5_000), price=100.0)
    net.tell("b1", "publish", dear)
    said_at = net.now
    net.run(1.0)
    (arrived_at,) = [row.recorded_at for row in net.rows_of(Delivered) if row.message == dear.id]
    assert arrived_at - said_at < 3 * 5_000 / RATE + DELAY_S
    gaps = [b.recorded_at - a.recorded_at for a, b in pairwise(net.rows_of(Delivered)[-20:])]
    assert median(gaps) == pytest.approx(5_000 / RATE, rel=0.1)


# ---- telling the overlay


@pytest.mark.parametrize(
    ("told", "now", "news"),
    [
        (LinkEstimate(0.01), LinkEstimate(0.01, 1.0, 8e-6, 0.0), True),
        (LinkEstimate(0.01, 1.0, 8e-6), LinkEstimate(0.01, 1.0, 8.5e-6), False),
        (LinkEstimate(0.01, 1.0, 8e-6), LinkEstimate(0.01, 1.0, 9e-6), True),
        (LinkEstimate(0.01, 1.0, 8e-6), LinkEstimate(0.01, 1.0, 8e-6, 5e-7), False),
        (LinkEstimate(0.01, 1.0, 8e-6), LinkEstimate(0.01, 1.0, 8e-6, 1e-6), True),
        (LinkEstimate(0.01, 1.0, 8e-6, 1e-6), LinkEstimate(0.01), True),
    ],
)
def test_a_rate_is_told_when_it_has_changed_by_enough(
    told: LinkEstimate, now: LinkEstimate, news: bool
) -> None:
    state = LinkState(View("b1"), 1, 0.1, lifetime_s=180.0)
    state.advertise({"b2": told}, 0.0)
    assert (state.advertise({"b2": now}, 1.0) is not None) == news
