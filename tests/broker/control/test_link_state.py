"""How every broker learns every link."""

from support.builders import LINE, TRIANGLE, connected

from tidings.broker.control.link_state import LinkState
from tidings.broker.frames import Links
from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View


def links(origin: str, version: int, *near: str, incarnation: int = 1) -> Links:
    return Links(1, origin, incarnation, version, tuple((n, LinkEstimate(0.01)) for n in near))


def a_state(lifetime_s: float = 180.0) -> LinkState:
    return LinkState(View("b1"), incarnation=1, change=0.1, lifetime_s=lifetime_s)


def test_every_broker_comes_to_know_every_link() -> None:
    net = connected(*LINE, ("b3", "b4"))
    for broker in net.brokers.values():
        known = {a: sorted(near) for a, near in broker._view.links.items()}
        assert known == {"b1": ["b2"], "b2": ["b1", "b3"], "b3": ["b2", "b4"], "b4": ["b3"]}


def test_a_newer_version_replaces_an_older_one_and_never_the_other_way() -> None:
    state = a_state()
    assert state.apply(links("b2", 2, "b1", "b3"), 0.0)
    assert not state.apply(links("b2", 1, "b1"), 0.0)
    assert not state.apply(links("b2", 2, "b1"), 0.0)
    assert sorted(state.view.links["b2"]) == ["b1", "b3"]
    assert state.apply(links("b2", 3), 0.0)
    assert state.view.links["b2"] == {}


def test_a_restarted_broker_counts_from_one_again_and_is_believed() -> None:
    state = a_state()
    state.apply(links("b2", 9, "b1", "b3"), 0.0)
    assert state.apply(links("b2", 1, "b1", incarnation=2), 0.0)
    assert not state.apply(links("b2", 10, "b3", incarnation=1), 0.0)
    assert sorted(state.view.links["b2"]) == ["b1"]


def test_what_others_say_of_this_brokers_own_links_is_ignored() -> None:
    state = a_state()
    assert not state.apply(links("b1", 99, "b7", incarnation=9), 0.0)
    assert "b1" not in state.view.links


def test_the_view_changes_its_version_with_every_news() -> None:
    state = a_state()
    versions = [state.view.version]
    state.apply(links("b2", 1, "b1"), 0.0)
    versions.append(state.view.version)
    state.neighbours_changed(("b2",), ())
    versions.append(state.view.version)
    state.advertise({"b2": LinkEstimate(0.01)}, 0.0)
    versions.append(state.view.version)
    assert len(set(versions)) == 4
    state.apply(links("b2", 1, "b1"), 0.0)
    assert state.view.version == versions[-1]


def test_only_what_changed_by_enough_is_advertised() -> None:
    state = a_state()
    first = state.advertise({"b2": LinkEstimate(0.100)}, 0.0)
    assert first is not None
    assert first.version == 1
    assert state.advertise({"b2": LinkEstimate(0.109)}, 0.0) is None
    second = state.advertise({"b2": LinkEstimate(0.111)}, 0.0)
    assert second is not None
    assert second.version == 2
    assert state.advertise({"b2": LinkEstimate(0.111, 0.995)}, 0.0) is None
    assert state.advertise({"b2": LinkEstimate(0.111, 0.98)}, 0.0) is not None


def test_slow_drift_is_told_once_it_adds_up() -> None:
    state = a_state()
    told = [state.advertise({"b2": LinkEstimate(0.100 + 0.001 * step)}, 0.0) for step in range(21)]
    assert [step for step, frame in enumerate(told) if frame] == [0, 11]


def test_a_link_that_appears_or_goes_is_always_news() -> None:
    state = a_state()
    state.advertise({"b2": LinkEstimate(0.1)}, 0.0)
    assert state.advertise({"b2": LinkEstimate(0.1), "b3": LinkEstimate(0.1)}, 0.0) is not None
    assert state.advertise({"b3": LinkEstimate(0.1)}, 0.0) is not None
    assert state.advertise({}, 0.0) is not None
    assert state.advertise({}, 0.0) is None


def test_news_travels_over_each_link_once_and_then_the_overlay_is_quiet() -> None:
    net = connected(*TRIANGLE)
    before = len(net.frames(Links))
    net.run(30.0)
    assert len(net.frames(Links)) == before
    net.disconnect("b1", "b2")
    net.run(30.0)
    # b1 and b2 each advertise: to b3 and from there to the other end
    assert len(net.frames(Links)) - before == 4


def test_a_link_that_went_down_is_routed_around_once_it_is_known() -> None:
    net = connected(*TRIANGLE)
    wish = net.subscribe("b2")
    net.run(1.0)
    net.disconnect("b1", "b2")
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]
