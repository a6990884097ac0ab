"""Neighbours that nobody has named before, and what is left of them when they are gone: nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import DELAY_S, Net, a_parcel, takers
from support.steps import History, Step
from support.traces_of import held_by, mentions

from tidings.broker.broker import Broker
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.frames import Ack, Links
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate
from tidings.core.trace import Carried, Dropped
from tidings.routing.options import HarmonyOptions

LIFETIME_S = 2.0
NAMES = ("b1", "b2", "b3", "b4", "b5")


def a_stranger(name: str, incarnation: int = 1, **changes: Any) -> Broker:
    """A broker that knows nobody, and may meet anybody."""
    wanted: dict[str, Any] = {
        "report_lifetime_s": LIFETIME_S,
        "probe_every_s": 0.2,
        "probe_timeout_s": 0.1,
        "advertise_every_s": 0.2,
        "remember_s": 3.0,
        "late_takers_s": 0.5,
        "harmony": HarmonyOptions(recheck_s=0.1, improvement=0.0),
    }
    return made(name, Settings(**(wanted | changes)).checked("test"), incarnation)


def made(name: str, settings: Settings, incarnation: int) -> Broker:
    return Broker(name, settings, {}, incarnation, whereabouts=Whereabouts())


def strangers(*names: str, **changes: Any) -> Net:
    net = Net()
    if changes.get("estimates") == "pinned":
        net.known = LinkEstimate(DELAY_S)
    for name in names:
        net.add(a_stranger(name, **changes))
    return net


@pytest.mark.parametrize("estimates", ["pinned", "measured"])
def test_brokers_that_have_never_heard_of_each_other_carry_messages_once_they_are_linked(
    estimates: str,
) -> None:
    net = strangers("b1", "b2", "b3", estimates=estimates)
    wish = net.subscribe("b3")
    net.connect("b1", "b2")
    net.connect("b2", "b3")
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]


def test_a_link_that_is_gone_is_replaced_by_another_and_messages_take_that() -> None:
    net = strangers("b1", "b2", "b3", estimates="pinned")
    wish = net.subscribe("b3")
    net.connect("b1", "b2")
    net.connect("b2", "b3")
    net.run(1.0)
    net.disconnect("b2", "b3")
    message = net.publish("b1")
    net.run(0.1)
    assert net.delivered == []
    net.connect("b1", "b3")
    net.run(2.0)
    assert net.delivered == [(wish, message)]


def test_what_waited_for_a_neighbour_that_is_gone_goes_another_way() -> None:
    net = strangers("b1", "b2", "b3", estimates="pinned")
    wish = net.subscribe("b3")
    net.connect("b1", "b3")
    net.connect("b1", "b2")
    net.connect("b2", "b3")
    net.run(1.0)
    net.tell("b1", "link_ready", "b3", 0.0)  # nothing leaves over the direct link
    message = net.publish("b1")
    net.run(0.1)
    assert net.delivered == []
    net.disconnect("b1", "b3")
    net.run(2.0)
    assert net.delivered == [(wish, message)]


def test_without_leave_to_move_a_stranger_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no link to b9"):
        Broker("b1", Settings(), {"b2": None}).link_up("b9", 0.0)


def test_the_last_words_over_a_link_that_is_gone_are_not_heard() -> None:
    b1 = a_stranger("b1")
    b1.link_up("b2", 0.0)
    b1.link_down("b2", 1.0)
    assert b1.receive("b2", Ack((1,)), 1.0) == []
    assert b1.link_ready("b2", 1_000.0, 1.0) == []
    assert b1.link_down("b2", 1.0) == []


def test_what_a_link_has_carried_is_recorded_before_it_is_forgotten() -> None:
    net = strangers("b1", "b2", estimates="pinned")
    net.connect("b1", "b2")
    net.run(0.5)
    net.disconnect("b1", "b2")
    said = len([frame for _, sender, _, frame in net.said if sender == "b1"])
    assert sum(row.frames for row in net.rows_of(Carried) if row.broker == "b1") == said


def test_a_report_of_a_link_to_us_is_no_nonsense_where_strangers_may_come() -> None:
    b1 = a_stranger("b1")
    b1.link_up("b2", 0.0)
    heard = Links(1, "b3", 1, 1, (("b1", LinkEstimate(DELAY_S)),))
    assert not [e for e in b1.receive("b2", heard, 0.1) if "nonsense" in str(e)]


def test_a_message_for_a_client_that_has_left_meanwhile_is_counted() -> None:
    net = strangers("b1", "b2", estimates="pinned")
    wish = net.subscribe("b2")
    net.connect("b1", "b2")
    net.run(1.0)
    message = net.publish("b1")
    net.tell("b2", "unsubscribe", wish)
    net.run(1.0)
    assert [(r.message, r.reason) for r in net.rows_of(Dropped)] == [(message, "unwanted")]


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd", "qos-multipath", "multipath", "flooding"])
def test_nothing_that_a_broker_holds_speaks_of_one_that_is_gone_for_long(strategy: str) -> None:
    net = strangers("b1", "b2", "departed", strategy=strategy)
    net.subscribe("departed")
    net.subscribe("b2")
    net.connect("b1", "b2")
    net.connect("b1", "departed")
    net.run(1.0)
    for _ in range(3):
        net.publish("b1")
        net.publish("departed")
        net.run(0.2)
    assert mentions(net.brokers["b1"], "departed") > 0
    net.disconnect("b1", "departed")
    del net.brokers["departed"]
    net.run(20 * LIFETIME_S)
    for name in ("b1", "b2"):  # what a router last worked out goes when it is next asked
        net.publish(name)
    net.run(20 * LIFETIME_S)
    assert not mentions(net.brokers["b1"], "departed")
    assert not mentions(net.brokers["b2"], "departed")


def test_durable_wishes_of_a_broker_that_is_not_heard_are_kept_for_longer() -> None:
    net = strangers("b1", "b2", unheard_s=60.0)
    wish = net.subscribe("b2", durable=True)
    net.connect("b1", "b2")
    net.run(1.0)
    net.disconnect("b1", "b2")
    net.run(10 * LIFETIME_S)
    message = net.publish("b1")
    net.connect("b1", "b2")
    net.run(3.0)
    assert (wish, message) in net.delivered
    net.disconnect("b1", "b2")
    del net.brokers["b2"]
    net.run(60.0 + 10 * LIFETIME_S)
    assert net.brokers["b1"].subscriptions == 0


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd", "qos-multipath"])
def test_a_link_that_flaps_ten_times_a_second_leaves_no_heap_behind(strategy: str) -> None:
    net = strangers("b1", "b2", "b3", strategy=strategy)
    wish = net.subscribe("b2")
    net.connect("b1", "b3")
    net.connect("b3", "b2")
    sizes, said = [], []
    for number in range(60):
        net.connect("b1", "b2")
        net.run(0.05)
        said.append(net.publish("b1"))
        net.run(0.01)
        net.disconnect("b1", "b2")
        net.run(0.04)
        if number % 20 == 19:
            sizes.append(len(held_by(net.brokers["b1"])))
    net.run(5.0)
    assert sorted(net.delivered) == [(wish, message) for message in sorted(said)]
    assert sizes[2] - sizes[1] < 5 * 20, "what is remembered of a message are a few numbers"
    net.run(4 * LIFETIME_S)
    rested = strangers("b1", "b2", "b3", strategy=strategy)
    rested.subscribe("b2")
    rested.connect("b1", "b3")
    rested.connect("b3", "b2")
    rested.run(4 * LIFETIME_S)
    for name in ("b1", "b2", "b3"):
        left, fresh = held_by(net.brokers[name]), held_by(rested.brokers[name])
        assert len(left) < len(fresh) + 100


# ---- after anything

KINDS = ["link"] * 4 + ["join"] * 2 + ["cut", "wish", "unwish", "say", "crash", "leave"]
STEPS = st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(NAMES))


@pytest.mark.parametrize("estimates", ["measured", "pinned"])
@pytest.mark.parametrize("strategy", ["dcrd", "d-tree", "qos-path", "multipath"])
@settings(max_examples=15, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_after_any_changes_all_tables_are_those_of_brokers_that_saw_none_of_them(
    strategy: str, estimates: str, steps: list[Step]
) -> None:
    net, fresh = after(steps, strategy, estimates)
    for name in net.brokers:
        assert tables(net.brokers[name]) == tables(fresh.brokers[name])
        if estimates == "pinned":  # else the order of ways may follow what was measured
            routes = [routes_from(each.brokers[name], strategy, each.now) for each in (net, fresh)]
            assert routes[0] == routes[1]
    assert len(net.delivered) == len(set(net.delivered)) or any(s[0] == "crash" for s in steps)


@pytest.mark.parametrize("strategy", ["dcrd", "d-tree", "qos-path", "multipath"])
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=300, max_size=400))
def test_after_a_long_history_a_broker_is_as_large_as_one_that_had_none(
    strategy: str, steps: list[Step]
) -> None:
    net, fresh = after(steps, strategy, "measured")
    for name in net.brokers:
        left, rested = held_by(net.brokers[name]), held_by(fresh.brokers[name])
        assert len(left) < len(rested) + 200, "less than an object for each step"


def after(steps: list[Step], strategy: str, estimates: str) -> tuple[Net, Net]:
    """Brokers that went through this, once they are quiet, and new ones in the same places."""
    net = strangers(*NAMES, strategy=strategy, estimates=estimates)
    chosen = net.brokers["b1"].settings
    history = History(net, 0.05, lambda name, incarnation: made(name, chosen, incarnation))
    history.go_through(steps)
    net.run(4 * LIFETIME_S)
    fresh = strangers(*sorted(net.brokers), strategy=strategy, estimates=estimates)
    for name in history.wishes:
        fresh.subscribe(name)
    for ends in sorted(history.links):
        fresh.connect(*ends)
    fresh.run(4 * LIFETIME_S)
    return net, fresh


def routes_from(broker: Broker, strategy: str, now: float) -> dict[str, Any]:
    """What a strategy's own tables come to: where messages would go from here."""
    router = broker._strategies.get(strategy)
    assert router is not None
    found = {}
    for name in sorted({*NAMES} - {broker.name}):
        parcel = a_parcel(name, path=(broker.name,), born_at=now)
        route = router.route(parcel, broker._view, now)
        if strategy == "qos-path":  # a flow keeps its path while no other is better
            found[name] = ([len(path) for hop in route.hops for path in hop.plan], route.stranded)
        else:
            found[name] = ([(hop.neighbour, hop.plan) for hop in route.hops], route.stranded)
    return found


def tables(broker: Broker) -> dict[str, Any]:
    """What a broker knows of others, apart from what was measured and how it is numbered."""
    view = broker._view
    return {
        "neighbours": (view.neighbours, view.severed),
        "links": {a: sorted(near) for a, near in view.links.items() if near},
        "wishes": takers(broker),
        "ends": sorted(broker._links),
    }
