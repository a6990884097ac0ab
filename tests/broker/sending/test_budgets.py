"""A link that takes longer than messages allow is told of at once, and once."""

from heapq import heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import LINE, TRIANGLE, Net, a_parcel, pinned
from support.values import replace

from tidings.broker.broker import Broker
from tidings.broker.effects import Send
from tidings.broker.frames import Data, Links, Probe
from tidings.broker.sending.budgets import MOST_LIMITS, LinkBudgets, limits_of
from tidings.core.message import Budget
from tidings.core.parcel import Parcel

KEEP_S = 30.0


def planned(*limits_s: float, me: str = "b1") -> Parcel:
    """A parcel whose link from here may take so long, one destination for each limit."""
    owed = [f"d{n}" for n in range(len(limits_s))]
    return replace(
        a_parcel(*owed),
        plan=tuple((me, name) for name in owed),
        budgets=tuple(Budget(name, s, (0.0,)) for name, s in zip(owed, limits_s, strict=True)),
    )


def noted(*limits_s: float, at: float = 0.0) -> LinkBudgets:
    budgets = LinkBudgets(KEEP_S)
    budgets.note(planned(*limits_s), "b1", at)
    return budgets


# ---- limits


def test_a_link_may_take_what_was_expected_and_its_share_of_the_margin() -> None:
    parcel = replace(
        a_parcel("b3"), plan=(("b1", "b2", "b3"),), budgets=(Budget("b3", 0.5, (0.25, 2.0)),)
    )
    assert list(limits_of(parcel, "b1")) == [0.75]
    assert list(limits_of(parcel, "b2")) == [2.5]
    assert list(limits_of(parcel, "b3")) == list(limits_of(parcel, "b9")) == []


@pytest.mark.parametrize(
    ("plan", "budgets"),
    [
        ((("b1", "b2", "b3"),), (Budget("b3", 0.5, ()),)),  # too short
        ((("b1", "b2", "b3"),), (Budget("b2", 0.5, (0.1, 0.1)),)),  # of another destination
        ((), (Budget("b3", 0.5, (0.1,)),)),
        (((), ("b3",)), (Budget("b3", 0.5, (0.1,)),)),
        ((("b2", "b3"),), (Budget("b3", 0.5, (0.1,)),)),  # not by way of here
    ],
)
def test_budgets_that_fit_no_plan_set_no_limit(
    plan: tuple[tuple[str, ...], ...], budgets: tuple[Budget, ...]
) -> None:
    parcel = replace(a_parcel("b3"), plan=plan, budgets=budgets)
    assert list(limits_of(parcel, "b1")) == []


@pytest.mark.parametrize(
    ("told_s", "delay_s", "crossed"),
    [
        (0.010, 0.049, False),
        (0.010, 0.050, False),  # what it may take, it may take
        (0.010, 0.051, True),
        (0.050, 0.051, True),
        (0.051, 0.052, False),  # the source knows that it is over
        (0.051, 0.010, False),
    ],
)
def test_a_limit_is_crossed_when_the_delay_is_above_it_and_was_not_when_last_told(
    told_s: float, delay_s: float, crossed: bool
) -> None:
    assert noted(0.050).crossed(told_s, delay_s, 1.0) == crossed
    assert not LinkBudgets(KEEP_S).crossed(told_s, delay_s, 1.0)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 60)), max_size=12),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(60, 100),
)
def test_crossing_equals_looking_at_every_limit_of_late(
    notes: list[tuple[int, int]], told_s: int, delay_s: int, now: int
) -> None:
    budgets, used_at = LinkBudgets(KEEP_S), dict[int, int]()
    for limit_s, at in sorted(notes, key=lambda note: note[1]):
        budgets.note(planned(float(limit_s)), "b1", float(at))
        used_at[limit_s] = at
    alive = [limit_s for limit_s, at in used_at.items() if at >= now - KEEP_S]
    expected = any(told_s <= limit_s < delay_s for limit_s in alive)
    assert budgets.crossed(float(told_s), float(delay_s), float(now)) == expected


def test_a_limit_that_no_message_uses_any_more_ages_out() -> None:
    budgets = noted(0.050, at=0.0)
    assert budgets.crossed(0.0, 0.1, KEEP_S)
    assert not budgets.crossed(0.0, 0.1, KEEP_S + 0.001)
    budgets.note(planned(0.050), "b1", 40.0)
    assert budgets.crossed(0.0, 0.1, 40.0 + KEEP_S)


def test_there_are_never_more_limits_than_memory_is_meant_for() -> None:
    budgets = noted(0.001)
    for n in range(3 * MOST_LIMITS):
        budgets.note(planned(1.0 + n), "b1", 1.0)
        if n % 50 == 0:
            budgets.note(planned(0.001), "b1", 1.0)  # what is in use stays
    assert len(budgets._limits) == MOST_LIMITS
    assert budgets.crossed(0.0, 0.002, 1.0)
    assert not budgets.crossed(1.0, 2.0, 1.0)  # the oldest went


def test_one_message_with_more_limits_than_are_kept_does_no_harm() -> None:
    budgets = noted(*(1.0 + n for n in range(2 * MOST_LIMITS)))
    assert len(budgets._limits) == MOST_LIMITS


# ---- brokers


class Roads(Net):
    """Every link has a delay of its own, which a test may change."""

    def __init__(self) -> None:
        super().__init__()
        self.delays_s: dict[frozenset[str], float] = {}

    def _send(self, sender: str, send: Send) -> None:
        self.said.append((self.now, sender, send.neighbour, send.frame))
        delay_s = self.delays_s.get(frozenset((sender, send.neighbour)), self.delay_s)
        event = (self.now + delay_s, next(self._serial), sender, send.neighbour, send.frame)
        heappush(self._events, event)

    def said_of_itself(self, origin: str, since: float) -> list[tuple[float, Links]]:
        """What a broker told of its own links, each version once."""
        told = {
            frame.version: (at, frame)
            for at, sender, _, frame in reversed(self.said)
            if isinstance(frame, Links) and sender == frame.origin == origin and at > since
        }
        return [told[version] for version in sorted(told)]

    def speak(self, times: int, every_s: float = 0.05, **contract: Any) -> None:
        for _ in range(times):
            self.publish("b1", **contract)
            self.run(every_s)


QUIET = {"advertise_every_s": 1e6, "report_lifetime_s": 1e6}  # nothing is told for other reasons


def roads(
    *links: tuple[str, str], strategy: str = "qos-path", straight_s: float = 0.0, **settings: Any
) -> Roads:
    """b1, b2 and b3, where somebody listens."""
    net = Roads()
    net.delays_s[frozenset(("b1", "b3"))] = straight_s
    options = {"estimates": "measured", "strategy": strategy, "probe_every_s": 2.0, **QUIET}
    options["delay_window_s"] = 0.0  # as Harmony has it: every sample counts
    checked = pinned(**{**options, **settings})
    for name in ("b1", "b2", "b3"):
        near = [b if a == name else a for a, b in links if name in (a, b)]
        net.add(Broker(name, checked, dict.fromkeys(near)))
    for a, b in links:
        net.connect(a, b)
    net.subscribe("b3")
    net.run(1.0)
    return net


SLOW = frozenset(("b2", "b3"))


def test_a_budget_is_told_of_at_the_instant_it_is_exceeded_and_once() -> None:
    """D = 100 ms, two links of 10 ms: each may take 50 ms. The second goes up to 60 ms."""
    net = roads(*LINE)
    net.speak(20, deadline_s=0.1)
    assert net.said_of_itself("b2", since=1.0) == []
    jumped_at, net.delays_s[SLOW] = net.now, 0.060
    link, over_at = net.brokers["b2"]._links["b3"], 0.0
    for _ in range(200):
        net.publish("b1", deadline_s=0.1)
        for _ in range(10):
            net.run(0.005)
            if not over_at and link.delay_s > 0.050:
                over_at = net.now
    told = net.said_of_itself("b2", since=1.0)
    assert len(told) == 1
    at, report = told[0]
    assert dict(report.links)["b3"].delay_s > 0.050
    assert over_at - 0.006 < at <= over_at
    assert at - jumped_at < 0.5  # six samples: 60 - 50 * 0.75**6 > 50


def test_without_a_deadline_or_a_strategy_that_has_budgets_nothing_is_told() -> None:
    for strategy, contract in (("qos-path", {}), ("best-path", {"deadline_s": 0.1})):
        net = roads(*LINE, strategy=strategy)
        net.speak(20, **contract)
        net.delays_s[SLOW] = 0.080
        net.speak(100, **contract)
        assert net.said_of_itself("b2", since=1.0) == []


def test_probes_alone_find_it_too() -> None:
    net = roads(*LINE)
    net.publish("b1", deadline_s=0.1)
    net.run(0.2)
    asked, net.delays_s[SLOW] = len(net.frames(Probe, "b2", "b3")), 0.080
    net.run(20.0)
    [(_, report)] = net.said_of_itself("b2", since=1.0)
    assert dict(report.links)["b3"].delay_s > 0.050
    assert len(net.frames(Data, "b2", "b3")) == 1
    assert len(net.frames(Probe, "b2", "b3")) > asked


def test_a_limit_that_is_no_longer_in_use_is_not_told_of() -> None:
    net = roads(*LINE)
    net.publish("b1", deadline_s=0.1)
    net.run(40.0)  # longer than a path stays without being looked at
    net.delays_s[SLOW] = 0.080
    net.run(40.0)
    assert net.said_of_itself("b2", since=1.0) == []


def test_the_source_leaves_the_path_as_soon_as_it_hears_of_it() -> None:
    """b1 to b3 over b2 takes 20 ms, straight 26 ms; D = 50 ms, so each link may take 25 ms."""
    net = roads(*TRIANGLE, straight_s=0.026)
    net.speak(20, deadline_s=0.05)
    straight = len(net.frames(Data, "b1", "b3"))
    net.delays_s[SLOW] = 0.040
    net.speak(40, deadline_s=0.05)
    [(told_at, _)] = net.said_of_itself("b2", since=2.0)
    later = [
        (receiver, at)
        for at, sender, receiver, frame in net.said
        if sender == "b1" and isinstance(frame, Data) and at > told_at + net.delay_s
    ]
    assert len(later) > 20
    assert {receiver for receiver, _ in later} == {"b3"}
    assert len(net.frames(Data, "b1", "b3")) > straight


def test_what_was_told_and_gets_worse_again_is_told_again_when_another_limit_is_crossed() -> None:
    net = roads(*LINE)
    net.speak(20, deadline_s=0.3)
    net.delays_s[SLOW] = 0.200
    net.speak(60, deadline_s=0.3)
    first = net.said_of_itself("b2", since=1.0)
    assert first
    net.delays_s[SLOW] = 0.260
    net.speak(60, deadline_s=0.3)
    again = net.said_of_itself("b2", since=first[-1][0])
    assert again
    delays_s = [dict(report.links)["b3"].delay_s for _, report in (*first, *again)]
    assert delays_s == sorted(delays_s)
    assert len(delays_s) < 10  # not with every message
