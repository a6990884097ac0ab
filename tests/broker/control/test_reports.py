"""Reports of links grow old, are renewed, and are forgotten; nonsense in them is left out."""

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.builders import LINE, TRIANGLE, Net, a_broker, connected
from support.values import replace

from tidings.broker.control import link_state as linkstate
from tidings.broker.control.link_state import RENEWALS, LinkState, aged, nonsense
from tidings.broker.effects import Effect, Warn
from tidings.broker.frames import Frame, Links
from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View

LIFETIME_S = 16.0


def a_state(name: str = "b1", lifetime_s: float = LIFETIME_S) -> LinkState:
    return LinkState(View(name), incarnation=1, change=0.1, lifetime_s=lifetime_s)


def said(origin: str, version: int, *near: str, age_s: float = 0.0, incarnation: int = 1) -> Links:
    estimates = tuple((n, LinkEstimate(0.01)) for n in near)
    return Links(1, origin, incarnation, version, estimates, age_s)


# ---- against a dictionary


class Reports(RuleBasedStateMachine):
    """Two listeners hear reports of three brokers, of any age, and tell each other what they
    believe. The oracle knows when each report was really made."""

    names = st.sampled_from(["b1", "b2"])
    origins = st.sampled_from(["o1", "o2", "o3"])

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0  # times are whole, so that sums are exact
        self.states = {name: a_state(name) for name in ("b1", "b2")}
        self.newest: dict[tuple[str, str], tuple[int, int]] = {}
        self.fresh: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}  # made at, links
        self.made: dict[tuple[str, int, int], tuple[float, tuple[str, ...]]] = {}

    @rule(
        name=names,
        origin=origins,
        incarnation=st.integers(1, 2),
        version=st.integers(1, 6),
        near=st.lists(st.sampled_from(["o1", "o2", "o3", "b1", "b2"]), unique=True),
        age_s=st.integers(0, 20).map(float),
    )
    def hear(
        self, name: str, origin: str, incarnation: int, version: int, near: list[str], age_s: float
    ) -> None:
        """An origin makes each version once; hearing it again, it is what it was."""
        key = (origin, incarnation, version)
        links = tuple(sorted(n for n in near if n != origin))
        made_at, links = self.made.setdefault(key, (self.now - age_s, links))
        age_s = self.now - made_at
        frame = said(origin, version, *links, age_s=age_s, incarnation=incarnation)
        assert self.states[name].apply(frame, self.now) == self._take(name, *key)

    @rule(sender=names, travel_s=st.integers(0, 3).map(float))
    def pass_on(self, sender: str, travel_s: float) -> None:
        """All that one believes is told to the other, and takes a while."""
        receiver = "b2" if sender == "b1" else "b1"
        frames = self.states[sender].all(self.now)
        assert [f.origin for f in frames] == sorted(o for n, o in self.fresh if n == sender)
        self.let_time_pass(travel_s)
        for frame in frames:
            key = (frame.origin, frame.incarnation, frame.version)
            heard = aged(frame, travel_s)
            assert heard.age_s == self.now - self.made[key][0], "it became younger or older"
            assert self.states[receiver].apply(heard, self.now) == self._take(receiver, *key)

    @rule(seconds=st.integers(1, 9).map(float))
    def let_time_pass(self, seconds: float) -> None:
        """A broker wakes when it has something to forget, and at other times too."""
        for _ in range(int(seconds)):
            self.now += 1.0
            for state in self.states.values():
                if state.expires_at <= self.now:
                    state.expire(self.now)
        self.fresh = {k: r for k, r in self.fresh.items() if self.now < r[0] + LIFETIME_S}

    def _take(self, name: str, origin: str, incarnation: int, version: int) -> bool:
        made_at, links = self.made[origin, incarnation, version]
        known = self.newest.get((name, origin), (0, 0))
        if known != (0, 0) and self.now >= self.made[origin, *known][0] + 2 * LIFETIME_S:
            known = (0, 0)  # after so long, a lower number is a new beginning
        if self.now - made_at >= LIFETIME_S or (incarnation, version) <= known:
            return False
        self.newest[name, origin] = (incarnation, version)
        self.fresh[name, origin] = (made_at, links)
        return True

    @invariant()
    def the_view_is_what_is_fresh_and_undenied(self) -> None:
        for name, state in self.states.items():
            told = {o: set(links) for (n, o), (_, links) in self.fresh.items() if n == name}
            expected = {
                a: {b for b in near if b not in told or a in told[b]} for a, near in told.items()
            }
            assert {a: set(near) for a, near in state.view.links.items()} == expected
            assert state.expires_at <= min(self._ends(name), default=inf)  # never too late

    def _ends(self, name: str) -> Iterator[float]:
        """When reports will be used no more, and forgotten when they are not used."""
        for (listener, origin), number in self.newest.items():
            made_at = self.made[origin, *number][0]
            used = (listener, origin) in self.fresh
            end_at = made_at + (1 if used else 2) * LIFETIME_S
            if listener == name and end_at > self.now:
                yield end_at


Reports.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestReports = Reports.TestCase


# ---- age


def test_passing_a_report_on_does_not_make_it_young() -> None:
    one, other = a_state("b1"), a_state("b2")
    one.apply(said("b3", 1, "b1", age_s=5.0), 100.0)
    [told] = one.all(104.0)
    assert told.age_s == 9.0
    other.apply(aged(told, 1.0), 1000.0)  # another clock
    assert other.expires_at == 1006.0
    other.expire(1005.9)
    assert "b3" in other.view.links
    other.expire(1006.0)
    assert "b3" not in other.view.links


@pytest.mark.parametrize("age_s", [LIFETIME_S, LIFETIME_S + 1, 1e300, inf, -1.0, nan])
def test_a_report_that_is_too_old_or_of_no_age_is_not_taken(age_s: float) -> None:
    state = a_state()
    assert not state.apply(said("b2", 1, "b1", age_s=age_s), 100.0)
    assert state.view.links == {}
    assert state.apply(said("b2", 1, "b1"), 100.0)


def test_what_nobody_renews_disappears_and_an_old_version_does_not_come_back() -> None:
    state = a_state()
    state.apply(said("b2", 5, "b1", "b3"), 0.0)
    version = state.view.version
    state.expire(LIFETIME_S)
    assert (state.view.links, state.expires_at) == ({}, 2 * LIFETIME_S)
    assert state.view.version > version
    assert state.all(LIFETIME_S) == []
    assert not state.apply(said("b2", 4, "b1"), LIFETIME_S)
    assert not state.apply(said("b2", 5, "b1", "b3"), LIFETIME_S)
    assert state.view.links == {}
    assert state.apply(said("b2", 6, "b1"), LIFETIME_S)
    assert sorted(state.view.links["b2"]) == ["b1"]


def test_a_renewal_keeps_a_report_alive_and_changes_no_view() -> None:
    state = a_state()
    state.apply(said("b2", 1, "b1"), 0.0)
    version, links = state.view.version, state.view.links
    for turn in range(1, 20):
        now = turn * LIFETIME_S / RENEWALS
        state.expire(now)
        assert state.apply(said("b2", 1 + turn, "b1"), now)
        state.expire(state.expires_at)
        assert state.expires_at == now + LIFETIME_S
    assert state.view.version == version
    assert state.view.links is links


def test_our_own_report_is_renewed_three_times_in_its_lifetime_changed_or_not() -> None:
    state, mine = a_state(), {"b2": LinkEstimate(0.01)}
    assert state.renew_at() == inf
    assert state.advertise(mine, 0.0) is not None
    version = state.view.version
    assert state.renew_at() == LIFETIME_S / RENEWALS
    assert state.advertise(mine, state.renew_at() - 0.1) is None
    again = state.advertise(mine, state.renew_at())
    assert again is not None
    assert (again.version, again.age_s) == (2, 0.0)
    assert state.renew_at() == 2 * LIFETIME_S / RENEWALS
    assert state.view.version == version


def test_our_own_report_is_never_too_old_for_ourselves() -> None:
    state = a_state()
    state.advertise({"b2": LinkEstimate(0.01)}, 0.0)
    state.apply(said("b2", 1, "b1"), 1.0)
    state.expire(10 * LIFETIME_S)
    assert sorted(state.view.links) == ["b1"]


def test_where_nothing_is_measured_reports_live_for_ever() -> None:
    state = a_state(lifetime_s=inf)
    state.apply(said("b2", 1, "b1", age_s=1e9), 0.0)
    state.advertise({"b2": LinkEstimate(0.01)}, 0.0)
    assert state.expires_at == state.renew_at() == inf
    state.expire(1e12)
    assert sorted(state.view.links) == ["b1", "b2"]


# ---- brokers


def measured(*links: tuple[str, str], **settings: Any) -> Net:
    fast = {"probe_every_s": 1.0, "probe_timeout_s": 0.5, "advertise_every_s": 2.0}
    return connected(
        *links, **{"estimates": "measured", "report_lifetime_s": 30.0, **fast, **settings}
    )


def test_each_broker_renews_its_report_and_all_others_keep_it() -> None:
    net = measured(*LINE)
    net.run(5.0)
    before = {frame.version for frame in net.frames(Links) if frame.origin == "b1"}
    net.run(100.0)
    after = {frame.version for frame in net.frames(Links) if frame.origin == "b1"}
    assert len(after - before) == 10  # every third of 30 s
    for broker in net.brokers.values():
        assert sorted(broker._view.links) == ["b1", "b2", "b3"]


def test_what_a_broker_said_before_it_was_cut_off_does_not_outlive_its_lifetime() -> None:
    """b3 falls silent behind b2; b1 hears that b2 has lost it, and forgets its report in time."""
    net = measured(*LINE)
    net.run(1.0)
    silent_at = net.now
    net.loses = lambda sender, receiver, frame: "b3" in (sender, receiver)
    net.run(29.0 - 10.0)
    links = net.brokers["b1"]._view.links
    assert "b3" not in links["b2"]  # b2 noticed
    net.run(silent_at + 30.0 - net.now + 0.1)
    assert sorted(net.brokers["b1"]._view.links) == ["b1", "b2"]


def test_a_broker_that_comes_back_after_it_was_forgotten_is_believed_again() -> None:
    net = measured(*LINE)
    net.loses = lambda sender, receiver, frame: "b3" in (sender, receiver)
    net.run(100.0)
    assert sorted(net.brokers["b1"]._view.links) == ["b1", "b2"]
    net.loses = lambda sender, receiver, frame: False
    net.run(5.0)
    for broker in net.brokers.values():
        assert sorted(broker._view.links) == ["b1", "b2", "b3"]


def test_a_report_that_is_repeated_for_want_of_an_answer_grows_old_on_the_way() -> None:
    """b1's first word to b2 is lost for eight seconds."""

    def loses(sender: str, receiver: str, frame: Frame) -> bool:
        return isinstance(frame, Links) and (sender, receiver) == ("b1", "b2") and net.now < 9.0

    net = measured(("b1", "b2"))
    net.run(1.0)
    net.loses = loses
    net.disconnect("b1", "b2")
    net.connect("b1", "b2")
    net.run(20.0)
    repeated = {}
    for at, sender, _, frame in net.said:
        if isinstance(frame, Links) and sender == "b1":
            repeated.setdefault((frame.transmission), []).append((at, frame.age_s))
    longest = max(repeated.values(), key=len)
    assert len(longest) > 2
    born = [at - age_s for at, age_s in longest]
    assert born == pytest.approx([born[0]] * len(born))


# ---- nonsense


MAD = [
    LinkEstimate(-0.1),
    LinkEstimate(nan),
    LinkEstimate(inf),
    LinkEstimate(0.1, nan),
    LinkEstimate(0.1, 1.5),
    LinkEstimate(0.1, s_per_byte=-1.0),
    LinkEstimate(0.1, deviation_s_per_byte=nan),
    LinkEstimate(0.1, availability=-0.1),
    LinkEstimate(0.1, availability=nan),
]


def warnings(effects: list[Effect]) -> list[str]:
    return [effect.text for effect in effects if isinstance(effect, Warn)]


@pytest.mark.parametrize("mad", MAD)
def test_an_estimate_that_cannot_be_is_left_out_and_the_rest_is_used(mad: LinkEstimate) -> None:
    state = a_state()
    heard = Links(1, "b2", 1, 1, (("b1", LinkEstimate(0.01)), ("b3", mad)))
    assert state.apply(heard, 0.0)
    assert state.view.links == {"b2": {"b1": LinkEstimate(0.01)}}
    assert "b2" in nonsense(heard, "b1", ("b2", "b3"))
    assert "b3" in nonsense(heard, "b1", ("b2", "b3"))
    assert nonsense(said("b2", 1, "b1"), "b1", ("b2",)) == ""
    assert "b1" in nonsense(said("b2", 1, "b1"), "b1", ("b3",))  # there is no such link


def test_a_link_to_oneself_is_none() -> None:
    state, heard = a_state(), said("b2", 1, "b1", "b2")
    state.apply(heard, 0.0)
    assert sorted(state.view.links["b2"]) == ["b1"]
    assert nonsense(heard, "b1", ("b2",)) != ""


def test_a_link_of_which_the_other_end_knows_nothing_is_not_used() -> None:
    state = a_state()
    state.apply(said("b2", 1, "b1", "b3"), 0.0)
    assert "b3" in state.view.links["b2"]  # b3 was not heard yet
    state.apply(said("b3", 1, "b4"), 0.0)
    assert "b3" not in state.view.links["b2"]
    state.apply(said("b3", 2, "b4", "b2"), 0.0)
    assert "b3" in state.view.links["b2"]


def test_nobody_can_claim_a_link_to_us_that_we_do_not_have() -> None:
    state = a_state()
    state.advertise({"b2": LinkEstimate(0.01)}, 0.0)
    state.apply(said("b9", 1, "b1"), 0.0)
    assert state.view.links["b9"] == {}


@pytest.mark.parametrize("mad", MAD)
def test_a_broker_that_hears_nonsense_says_so_and_goes_on(mad: LinkEstimate) -> None:
    broker = a_broker("b1", ("b2",))
    heard = Links(9, "b2", 1, 9, (("b1", LinkEstimate(0.01)), ("b3", mad)))
    assert len(warnings(broker.receive("b2", heard, 1.0))) == 1
    assert broker._view.links["b2"] == {"b1": LinkEstimate(0.01)}
    assert warnings(broker.receive("b2", heard, 1.1)) == []  # a repeat is not read again
    assert warnings(broker.receive("b2", said("b3", 1, "b2"), 1.2)) == []


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd", "best-path", "qos-path", "qos-multipath"])
def test_a_liar_does_not_stop_messages_of_any_strategy(strategy: str) -> None:
    """b3 claims mad links to everybody, under versions that nobody can outdo."""
    net = connected(*TRIANGLE, strategy=strategy)
    wish = net.subscribe("b2")
    net.run(1.0)
    for number, mad in enumerate(MAD):
        links = tuple((name, mad) for name in ("b1", "b2", "b3", "b9"))
        net.tell("b1", "receive", "b3", Links(2**50 + number, "b3", 2**40, 2**40 + number, links))
    net.run(1.0)
    message = net.publish("b1", deadline_s=1.0)
    net.run(1.0)
    assert net.delivered == [(wish, message)]


@pytest.mark.parametrize("mad", MAD)
def test_what_the_other_end_says_of_a_link_is_not_taken_over_if_it_is_mad(
    mad: LinkEstimate,
) -> None:
    """Its direction of the link says how long bytes that come in take."""
    net = connected(("b1", "b2"), estimates="measured")
    net.subscribe("b1")
    net.run(1.0)
    net.tell("b1", "receive", "b2", Links(2**50, "b2", 2**40, 1, (("b1", mad),)))
    assert net.brokers["b1"]._links["b2"].s_per_byte == 0.0
    net.publish("b2")
    net.run(1.0)
    assert len(net.delivered) == 1


def test_a_warning_names_few_and_no_name_is_endless() -> None:
    mad = [(f"b{n}\n" * 100, LinkEstimate(-1.0)) for n in range(1_000)]
    text = nonsense(Links(0, "b2", 1, 1, tuple(mad)), "b1", ("b2",))
    assert len(text) < 500
    assert "\n" not in text


def test_names_that_were_heard_once_make_room_for_others_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Meanwhile b2 renews its report, so that there is always something in use."""
    monkeypatch.setattr(linkstate, "MOST_ORIGINS", 20)
    state = a_state()
    taken = [state.apply(said("b2", 1, "b1"), 0.0)]
    taken += [state.apply(said(f"ghost{n}", 1), 0.0) for n in range(20)]
    assert taken == [True] * 20 + [False]
    for second in range(1, int(2 * LIFETIME_S) + 1):
        assert not state.apply(said("b3", 1, "b2"), second - 0.5)
        assert state.apply(said("b2", 1 + second, "b1"), float(second))
        if state.expires_at <= second:
            state.expire(float(second))
    assert state.apply(said("b3", 1, "b2"), 2 * LIFETIME_S)


def test_what_is_forgotten_without_having_been_used_changes_no_view() -> None:
    state = a_state()
    state.apply(said("b3", 1, "b1"), 0.0)
    state.apply(said("b2", 1, "b1"), 10.0)
    state.expire(LIFETIME_S)
    state.apply(said("b2", 2, "b1"), 20.0)
    version = state.view.version
    while state.expires_at < 20.0 + LIFETIME_S:  # it may be looked for in vain
        state.expire(state.expires_at)
    assert state.expires_at == 20.0 + LIFETIME_S
    assert state.view.version == version


def test_a_broker_that_was_flooded_with_names_comes_to_know_new_brokers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linkstate, "MOST_ORIGINS", 20)
    net = measured(("b1", "b2"), later=(("b2", "b3"),))
    for n in range(20):
        net.tell("b1", "receive", "b2", replace(said(f"ghost{n}", 1), transmission=2**50 + n))
    net.connect("b2", "b3")
    net.run(5.0)
    assert "b3" not in net.brokers["b1"]._view.links
    net.run(2 * 30.0 + 10.0)  # two lifetimes, and a renewal
    assert sorted(net.brokers["b1"]._view.links) == ["b1", "b2", "b3"]


def test_availability_is_told_when_it_has_changed_by_enough() -> None:
    state = a_state()
    state.advertise({"b2": LinkEstimate(0.01, availability=0.8)}, 0.0)
    assert state.advertise({"b2": LinkEstimate(0.01, availability=0.81)}, 1.0) is None
    assert state.advertise({"b2": LinkEstimate(0.01, availability=0.9)}, 2.0) is not None
