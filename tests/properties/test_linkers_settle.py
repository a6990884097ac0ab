"""Whatever joins, crashes and is cut off: links settle, and those who know each other are together.

The model (`support/moving_overlay.py`) does what linkers wish, all at once and on old news.
"""

from __future__ import annotations

from math import hypot

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.moving_overlay import MovingOverlay

from tidings.core.graphs.joined import least_forest, pair
from tidings.linking import LINKERS
from tidings.linking.options import LinkingOptions
from tidings.linking.surroundings import surroundings

NAMES = [f"b{number:02}" for number in range(14)]
DEGREE, SPARE = 3, 3
OPTIONS = LinkingOptions(degree=DEGREE, spare_links=SPARE, passive=8, measure_s=2.0)
ALL = LinkingOptions(degree=DEGREE, spare_links=99, measure_s=2.0, improvement=0.0, in_vain=1000)

# Coordinates on a coarse grid make many ties; on a fine one none.
places = st.sampled_from([1, 1000]).flatmap(
    lambda grain: st.lists(
        st.tuples(st.integers(0, 4 * grain), st.integers(0, 4 * grain)),
        min_size=len(NAMES),
        max_size=len(NAMES),
    ).map(lambda drawn: [(x / grain, y / grain) for x, y in drawn])
)
events = st.lists(
    st.tuples(st.sampled_from(["join", "crash", "split", "meet"]), st.integers(0, 99)), max_size=12
)
patient = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def overlay(linker: str, options: LinkingOptions, at: list[tuple[float, float]]) -> MovingOverlay:
    def delay_s(a: str, b: str) -> float:
        (x, y), (u, v) = at[NAMES.index(a)], at[NAMES.index(b)]
        return 0.001 + 0.010 * hypot(x - u, y - v)

    return MovingOverlay(lambda: LINKERS[linker](options), delay_s)


def happen(moving: MovingOverlay, kind: str, number: int) -> None:
    """One event, as far as it can be, and then some rounds."""
    here = sorted(moving.members)
    away = [name for name in NAMES if name not in moving.members]
    if kind == "join" and away:
        moving.join(away[number % len(away)], *here[number % max(1, len(here)) :][:2])
    elif kind == "crash" and len(here) > 1:
        moving.crash(here[number % len(here)])
    elif kind == "split":
        moving.split(NAMES[: number % len(NAMES)], NAMES[number % len(NAMES) :])
    elif kind == "meet":
        moving.split()
    for _ in range(number % 7):
        moving.round()


def moved(linker: str, options: LinkingOptions, at, happens) -> MovingOverlay:
    """Five brokers, to which this happens; then they are left alone."""
    moving = overlay(linker, options, at)
    moving.join(NAMES[0])
    for name in NAMES[1:5]:
        moving.join(name, NAMES[0])
    for kind, number in happens:
        happen(moving, kind, number)
    moving.split()
    moving.settle()
    return moving


def assert_together(moving: MovingOverlay) -> None:
    """Those who know each other, as members or as seeds, reach each other."""
    for name, member in moving.members.items():
        known = {other for other in member.members() if other in moving.members}
        assert known <= moving.reached(name)


@pytest.mark.parametrize("linker", ["full-mesh", "nearest", "random"])
@patient
@given(at=places, happens=events)
def test_links_settle_and_those_who_know_each_other_are_together(linker, at, happens) -> None:
    moving = moved(linker, OPTIONS, at, happens)
    assert_together(moving)
    for name, member in moving.members.items():
        wishes = member.linker.wishes(moving.known(name), moving.now)
        assert {*wishes.wanted} - {*member.refused} <= {*moving.linked(name)}
        assert wishes.shed == ()


@patient
@given(at=places, happens=events)
def test_degrees_are_within_bounds_under_random(at, happens) -> None:
    moving = moved("random", OPTIONS, at, happens)
    for name, degree in moving.degrees().items():
        others = len(moving.reached(name)) - 1
        assert min(DEGREE, others) <= degree <= DEGREE + SPARE


@patient
@given(at=places, happens=events)
def test_the_nearest_equal_brute_force_when_all_have_been_measured(at, happens) -> None:
    moving = moved("nearest", ALL, at, happens)
    moving.settle()
    for name in moving.members:
        near = surroundings(moving.known(name))
        true = {b: moving._delay_s(name, b) for b in moving.reached(name) if b != name}
        least = sorted(true.values())[:DEGREE]
        linked = moving.linked(name)
        assert sorted(true[b] for b in linked)[: len(least)] == pytest.approx(least)
        forest = least_forest(near)
        for other in linked:
            back = sorted(d for d in near[other].values())[:DEGREE]
            wanted = true[other] <= least[-1] or true[other] <= back[-1]
            assert wanted or pair(name, other) in forest


@pytest.mark.parametrize("linker", ["nearest", "random"])
@patient
@given(at=places, happens=events)
@example(  # a member that has been refused is forgotten while it waits to be tried again
    at=[(0.0, 0.0)] * len(NAMES),
    happens=[
        ("join", 0),
        ("join", 1),
        ("crash", 1),
        ("crash", 2),
        ("join", 1),
        ("join", 0),
        ("crash", 1),
        ("crash", 14),
    ],
)
def test_what_is_kept_does_not_grow_with_the_members_ever_met(linker, at, happens) -> None:
    moving = moved(linker, OPTIONS, at, happens)
    for member in moving.members.values():
        assert names_in(member.linker) <= {
            *member.members(),
            *moving.linked(member.name),
            member.name,
        }


@pytest.mark.parametrize("linker", ["nearest", "random"])
def test_what_a_linker_keeps_is_seen(linker: str) -> None:
    moving = overlay(linker, OPTIONS, [(0.0, 0.0)] * len(NAMES))
    moving.join("b00")
    for name in NAMES[1:5]:
        moving.join(name, "b00")
    while not any(names_in(member.linker) for member in moving.members.values()):
        moving.round()
        assert moving.now < 60.0


def names_in(thing: object) -> set[str]:
    """All names of brokers in whatever a linker keeps, compiled or not."""
    if isinstance(thing, str):
        return {thing} & {*NAMES}
    if isinstance(thing, dict):
        return names_in([*thing, *thing.values()])
    if isinstance(thing, (list, tuple, set)):
        return set().union(*map(names_in, thing))
    if not type(thing).__module__.startswith("tidings.linking"):
        return set()
    fields = [name for name in dir(thing) if not name.startswith("__")]
    return names_in([each for f in fields if not callable(each := getattr(thing, f))])


@pytest.mark.parametrize("linker", ["nearest", "random"])
def test_sixty_brokers_that_join_by_one_seed_do_not_leave_it_with_all_the_links(linker) -> None:
    moving = MovingOverlay(lambda: LINKERS[linker](OPTIONS), lambda a, b: 0.005)
    moving.join("b00")
    for number in range(1, 60):
        moving.join(f"b{number:02}", "b00")
        moving.round()
    moving.settle()
    assert moving.reached("b00") == {*moving.members}
    assert max(moving.degrees().values()) <= DEGREE + SPARE
