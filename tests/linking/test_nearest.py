"""`nearest`: which links are wanted, explored, kept and given up?"""

from __future__ import annotations

from itertools import combinations
from math import inf

from support.known import known

from tidings.linking.base import Wishes
from tidings.linking.nearest import Nearest
from tidings.linking.options import LinkingOptions


def nearest(**settings) -> Nearest:
    return Nearest(LinkingOptions(**{"degree": 2, "explore": 1, "spare_links": 99, **settings}))


# Four brokers close to each other, and farther from b1, which is none of their nearest.
CROWD = [(a, b, 0.001) for a, b in combinations(["c1", "c2", "c3", "c4"], 2)]
SPOKES = [("b1", f"c{n}", 0.010 * n) for n in range(1, 5)]


def with_company(*names: str) -> list[tuple[str, str, float]]:
    """Each of these has two neighbours that are nearer than any other broker."""
    return [(name, f"{name}-{other}", 0.001) for name in names for other in ("x", "y")]


def test_the_nearest_are_wanted_and_others_are_given_up() -> None:
    linker = nearest(explore=0)
    wishes = linker.wishes(known("b1", *CROWD, *SPOKES), 0.0)
    assert wishes.wanted == ("c1", "c2")


def test_what_was_measured_is_remembered_when_the_link_is_down() -> None:
    linker = nearest(explore=0)
    linker.wishes(known("b1", *CROWD, *SPOKES), 0.0)
    without = [spoke for spoke in SPOKES if spoke[1] != "c1"]
    assert "c1" in linker.wishes(known("b1", *CROWD, *without), 1.0).wanted


def test_the_nearest_of_those_that_are_up_stays_until_a_better_one_is_up() -> None:
    linker = nearest(degree=1, explore=0)
    linker.wishes(known("b1", *CROWD, *SPOKES), 0.0)
    without = [spoke for spoke in SPOKES if spoke[1] != "c1"]
    assert linker.wishes(known("b1", *CROWD, *without), 1.0).wanted == ("c1", "c2")
    assert linker.wishes(known("b1", *CROWD, *SPOKES), 2.0).wanted == ("c1",)


def test_a_member_that_is_a_little_nearer_replaces_nobody() -> None:
    linker = nearest(explore=0, improvement=0.2)
    for delay_s, expected in ((0.110, "c3"), (0.081, "c3"), (0.079, "c4"), (0.099, "c4")):
        links = [("b1", "c1", 0.010), ("b1", "c3", 0.100), ("b1", "c4", delay_s)]
        assert linker.wishes(known("b1", *CROWD, *links), 0.0).wanted == ("c1", expected)


def test_the_member_with_the_shortest_path_is_explored_first() -> None:
    linker = nearest(degree=1)
    links = [("b1", "b2", 0.030), ("b2", "b3", 0.020), ("b2", "b4", 0.010), ("b2", "b5", 0.015)]
    assert linker.wishes(known("b1", *links), 0.0).wanted == ("b2", "b4")


def test_an_exploration_that_was_up_long_enough_makes_room_for_the_next() -> None:
    linker = nearest(degree=1)
    links = [("b1", "b2", 0.010), *[(a, b, 0.005) for a, b in combinations(["b2", "b4", "b5"], 2)]]
    links += with_company("b4", "b5")
    names = [f"{name}-{other}" for name in ("b4", "b5") for other in ("x", "y")]

    def wishes(now: float) -> Wishes:
        return linker.wishes(known("b1", *links, refused=names), now)

    first = wishes(0.0).wanted
    [explored] = {*first} - {"b2"}
    links.append(("b1", explored, 0.011))
    assert (wishes(1.0).wanted, wishes(1.0).again_at) == (first, 6.0)
    assert wishes(5.9).wanted == first
    [next_one] = {"b4", "b5"} - {explored}
    assert wishes(6.0).wanted == ("b2", next_one)


def test_nobody_is_explored_who_cannot_be_nearer() -> None:
    # b2 is near; b3 is 100 ms away, and what is within 10 ms of it is no nearer than 90 ms.
    links = [("b1", "b2", 0.010), ("b1", "b3", 0.100), ("b3", "b4", 0.010), *with_company("b2")]
    linker = nearest(degree=1)
    assert "b4" not in linker.wishes(known("b1", *links), 0.0).wanted
    nearer = [*links, ("b3", "b5", 0.095)]
    wanted = nearest(degree=1, explore=9).wishes(known("b1", *nearer), 0.0).wanted
    assert "b5" in wanted
    assert "b4" not in wanted


def test_a_member_that_cannot_be_reached_is_not_waited_for() -> None:
    linker = nearest(degree=1)
    links = [("b1", "b2", 0.030), ("b2", "b3", 0.020), ("b2", "b4", 0.010)]
    assert "b4" in linker.wishes(known("b1", *links), 0.0).wanted
    assert linker.wishes(known("b1", *links, refused=["b4"]), 1.0).wanted == ("b2", "b3")


def test_a_member_that_cannot_be_measured_is_given_up() -> None:
    linker = nearest(degree=1)
    links = [("b1", "b2", 0.030), ("b2", "b3", 0.020), ("b2", "b4", 0.010)]
    assert "b4" in linker.wishes(known("b1", *links), 0.0).wanted
    assert linker.wishes(known("b1", *links), 60.0).wanted == ("b2", "b3")


def test_a_broker_with_too_few_links_seeks_as_many_as_are_missing() -> None:
    links = [("b1", "b2", 0.030), *[("b2", f"c{n}", 0.010 * n) for n in range(1, 9)]]
    wanted = nearest(degree=4).wishes(known("b1", *links), 0.0).wanted
    assert wanted == ("b2", "c1", "c2", "c3")


def test_after_many_vain_explorations_it_rests_and_then_begins_again() -> None:
    linker = nearest(degree=1, in_vain=2, measure_s=0.0, remember_s=100.0)
    names = [f"a{number}" for number in range(9)]
    others = [(a, b, 0.005) for a, b in combinations(names, 2)]
    mine, explored = ["a0"], []
    for now in (0.0, 1.0, 2.0, 3.0, 4.0, 90.0, 110.0):
        links = [("b1", name, 0.010 if name == "a0" else 0.011) for name in mine]
        mine = [*linker.wishes(known("b1", *links, *others), now).wanted]
        explored.append(len(mine) - 1)
    assert explored == [1, 1, 0, 0, 0, 0, 1]


def test_a_link_without_which_others_are_out_of_reach_is_kept() -> None:
    far = [("b1", "d1", 0.9), *with_company("d1")]
    wishes = nearest(explore=0).wishes(known("b1", *CROWD, *SPOKES, *far), 0.0)
    assert wishes.wanted == ("c1", "c2", "d1")


def test_of_two_links_that_hold_it_together_both_ends_give_up_the_same_one() -> None:
    # Two triangles with two links between them; each of the four ends has nearer neighbours.
    left = [("a1", "a2", 0.01), ("a2", "a3", 0.01), ("a1", "a3", 0.01)]
    right = [("b1", "b2", 0.01), ("b2", "b3", 0.01), ("b1", "b3", 0.01)]
    between = [("a1", "b1", 0.5), ("a2", "b2", 0.4)]
    wanted = {
        name: nearest(explore=0).wishes(known(name, *left, *right, *between), 0.0).wanted
        for name in ("a1", "a2", "b1", "b2")
    }
    assert ["b1" in wanted["a1"], "a1" in wanted["b1"]] == [False, False]
    assert ["b2" in wanted["a2"], "a2" in wanted["b2"]] == [True, True]


def test_a_link_that_the_other_end_would_open_again_is_kept() -> None:
    lonely = [("b1", "d1", 0.9), ("c1", "d1", 0.8)]  # d1 has no others
    assert "d1" in nearest(explore=0).wishes(known("b1", *CROWD, *SPOKES, *lonely), 0.0).wanted


def test_too_many_links_are_shed_the_farthest_first_and_never_to_the_nearest() -> None:
    linker = nearest(explore=0, spare_links=1)
    wishes = linker.wishes(known("b1", *CROWD, *SPOKES), 0.0)
    assert (wishes.wanted, wishes.shed) == (("c1", "c2"), ("c4",))


def test_a_member_that_is_full_is_passed_over_until_it_has_room() -> None:
    linker = nearest(degree=1, spare_links=3, explore=0)
    linker.wishes(known("b1", *CROWD, *SPOKES), 0.0)
    spokes = [spoke for spoke in SPOKES if spoke[1] != "c1"]
    full = [*CROWD, *spokes, ("c1", "d1", 0.001)]
    assert linker.wishes(known("b1", *full), 1.0).wanted == ("c2",)
    assert linker.wishes(known("b1", *CROWD, *spokes), 2.0).wanted == ("c1", "c2")


def test_a_new_life_is_measured_anew() -> None:
    linker = nearest(degree=1)
    links = [
        ("b1", "b2", 0.010),
        ("b1", "b3", 0.100),
        ("b2", "b3", 0.009),
        *with_company("b2", "b3"),
    ]
    linker.wishes(known("b1", *links, lives={"b3": 1}), 0.0)
    apart = [link for link in links if link[:2] != ("b1", "b3")]
    names = [name for a, b, _ in links for name in (a, b) if name not in ("b1", "b2", "b3")]
    asked = {"refused": names}
    assert "b3" not in linker.wishes(known("b1", *apart, lives={"b3": 1}, **asked), 1.0).wanted
    assert "b3" in linker.wishes(known("b1", *apart, lives={"b3": 2}, **asked), 2.0).wanted


def test_nothing_is_kept_about_members_that_are_gone() -> None:
    linker = nearest(explore=9, measure_s=0.0)
    links = [("b1", f"c{n}", 0.01 * n) for n in range(1, 9)]
    links += [("c1", f"d{n}", 0.01 * n) for n in range(1, 9)]
    linker.wishes(known("b1", *links), 0.0)
    assert linker.wishes(known("b1"), 1.0).wanted == ()
    kept = [linker._delays.all(), linker._chosen, linker._exploring.names()]
    assert [len(each) for each in kept] == [0, 0, 0]
    assert linker._exploring._up_since == linker._healing._missed_since == {}


def test_it_says_when_a_delay_is_to_be_measured_again() -> None:
    linker = nearest(remember_s=100.0)
    wishes = linker.wishes(known("b1", ("b1", "b2", 0.1)), 3.0)
    assert 103.0 <= wishes.again_at < inf
