"""`random`: who is asked when there are too few links, and what is shed when there are too many?"""

from __future__ import annotations

from itertools import combinations, pairwise

from support.known import known

from tidings.linking.options import LinkingOptions
from tidings.linking.partial_view import PartialView

OTHERS = [f"c{number:02}" for number in range(1, 21)]


def linker(**settings) -> PartialView:
    return PartialView(LinkingOptions(**{"degree": 3, "spare_links": 2, **settings}))


def chain(*names: str) -> list[tuple[str, str, float]]:
    return [(a, b, 0.1) for a, b in pairwise(names)]


def mesh(*names: str) -> list[tuple[str, str, float]]:
    return [(a, b, 0.1) for a, b in combinations(names, 2)]


def star(name: str, others: list[str]) -> list[tuple[str, str, float]]:
    return [(name, other, 0.1) for other in others]


def test_links_that_are_up_stay_and_as_many_as_are_missing_are_added() -> None:
    wishes = linker().wishes(known("b1", ("b1", "c01", 0.1), *chain(*OTHERS)), 0.0)
    assert "c01" in wishes.wanted
    assert len(wishes.wanted) == 3
    assert {*wishes.wanted} <= {*OTHERS}


def test_a_broker_with_enough_links_wants_no_others() -> None:
    for degree in (3, 4, 5):
        links = [*star("b1", OTHERS[:degree]), *chain(*OTHERS)]
        wishes = linker().wishes(known("b1", *links), 0.0)
        assert (wishes.wanted, wishes.shed) == (tuple(OTHERS[:degree]), ())


def test_brokers_choose_differently() -> None:
    chosen = {
        linker().wishes(known(name, ("a0", name, 0.1), ("a0", "c01", 0.1), *chain(*OTHERS)), 0.0)
        for name in ("b1", "b2", "b3", "b4", "b5", "b6")
    }
    assert len({wishes.wanted for wishes in chosen}) > 3


def test_who_was_asked_is_asked_until_it_is_linked_or_cannot_be_reached() -> None:
    links, asking = [("b1", "c01", 0.1), *chain(*OTHERS)], linker(shuffle_every_s=1.0)
    first = asking.wishes(known("b1", *links), 0.0).wanted
    for now in (1.0, 2.0, 3.0):  # the passive view is another one each time
        assert asking.wishes(known("b1", *links), now).wanted == first
    gone = next(name for name in first if name != "c01")
    second = asking.wishes(known("b1", *links, refused=[gone]), 4.0).wanted
    assert gone not in second
    assert len({*first} & {*second}) == 2


def test_members_with_room_are_asked_before_those_that_are_full() -> None:
    full, roomy = [f"f{n}" for n in range(8)], ["r1", "r2"]
    links = [*mesh(*full), ("f0", "r1", 0.1), ("r1", "r2", 0.1), ("b1", "f0", 0.1)]
    assert linker().wishes(known("b1", *links), 0.0).wanted == ("f0", *roomy)


def test_where_nobody_has_room_somebody_full_is_asked() -> None:
    full = [f"f{n}" for n in range(8)]
    wanted = linker().wishes(known("b1", *mesh(*full), ("b1", "f0", 0.1)), 0.0).wanted
    assert len(wanted) == 3


def test_the_passive_view_is_small_and_another_one_after_each_interval() -> None:
    asking, seen = linker(passive=5, shuffle_every_s=10.0), []
    everybody = [*chain(*OTHERS), ("b1", "c01", 0.1)]
    for now in (0.0, 9.0, 10.0, 20.0):
        asking.wishes(known("b1", *everybody, refused=asking._asked), now)
        seen.append(tuple(asking._passive))
    assert [len(view) for view in seen] == [5, 5, 5, 5]
    assert seen[0] == seen[1]
    assert len({*seen}) == 3


def test_with_nobody_left_in_the_passive_view_the_next_one_is_waited_for() -> None:
    asking = linker(passive=1, shuffle_every_s=10.0)
    links = [("b1", "c01", 0.1), *chain(*OTHERS)]
    wishes = asking.wishes(known("b1", *links), 3.0)
    assert len(wishes.wanted) == 2
    assert wishes.again_at == 13.0
    assert len(asking.wishes(known("b1", *links), 13.0).wanted) == 3


def test_a_broker_with_too_many_links_sheds_one_to_the_neighbour_that_has_the_most() -> None:
    links = [*star("b1", OTHERS[:6]), *chain(*OTHERS[:6]), ("c03", "c20", 0.1)]
    wishes = linker().wishes(known("b1", *links), 0.0)
    assert wishes.shed == ("c03",)
    assert wishes.wanted == ("c01", "c02", "c04", "c05", "c06")


def test_a_link_that_holds_the_overlay_together_is_never_shed() -> None:
    wishes = linker().wishes(known("b1", *star("b1", OTHERS)), 0.0)
    assert (wishes.wanted, wishes.shed) == (tuple(OTHERS), ())
    links = [*star("b1", OTHERS), ("c04", "c05", 0.1)]
    assert linker().wishes(known("b1", *links), 0.0).shed in (("c04",), ("c05",))


def test_a_link_that_a_person_has_written_down_is_never_shed() -> None:
    links = [*star("b1", OTHERS), ("c04", "c05", 0.1)]
    wishes = linker().wishes(known("b1", *links, configured=["c04"]), 0.0)
    assert wishes.shed == ("c05",)


def test_of_those_that_have_too_many_the_fullest_sheds_first() -> None:
    links = [*star("b1", OTHERS[:7]), *star("b2", OTHERS[:6]), *chain(*OTHERS[:7])]
    assert len(linker().wishes(known("b1", *links), 0.0).shed) == 1
    waiting = linker(patience_s=2.0)
    wishes = waiting.wishes(known("b2", *links), 5.0)
    assert (wishes.shed, wishes.again_at) == ((), 7.0)
    assert len(waiting.wishes(known("b2", *links), 7.0).shed) == 1


def test_nothing_is_kept_about_members_that_are_gone() -> None:
    asking = linker()
    asking.wishes(known("b1", ("b1", "c01", 0.1), *chain(*OTHERS)), 0.0)
    assert asking.wishes(known("b1"), 1.0).wanted == ()
    assert asking._passive == asking._asked == []
    assert asking._healing._missed_since == {}
