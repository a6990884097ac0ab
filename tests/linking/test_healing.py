"""Who dials a part of the overlay that has been cut off, and when?"""

from __future__ import annotations

from support.known import known

from tidings.linking.healing import PARTS_AT_ONCE, Healing
from tidings.linking.surroundings import surroundings

# b1, b2 and b3 are together; c1 and c2 are; d1 is alone.
APART = (("b1", "b2", 0.1), ("b2", "b3", 0.1), ("c1", "c2", 0.1))


def wanted_by(name: str, *links, at=(0.0,), patience_s=1.0, **more) -> tuple[str, ...]:
    """What this broker wants at the last of these instants."""
    healing, about = Healing(patience_s), known(name, *links, **more)
    for now in at:
        found = healing.bridgeheads(about, surroundings(about), now)
    return found.wanted


def test_one_member_of_each_part_is_dialled() -> None:
    assert wanted_by("b1", *APART, at=(0.0, 1.0), members=["d1"]) == ("c1", "d1")


def test_a_member_that_cannot_be_reached_leaves_its_part_to_the_next_name() -> None:
    assert wanted_by("b1", *APART, at=(0.0, 1.0), refused=["c1"]) == ("c2",)
    assert wanted_by("b1", *APART, at=(0.0, 1.0), refused=["c1", "c2"]) == ()


def test_nobody_is_dialled_before_reports_had_time_to_come() -> None:
    assert wanted_by("b1", *APART, at=(0.0, 0.9)) == ()


def test_the_first_name_of_those_together_dials_first_and_each_other_one_a_little_later() -> None:
    assert wanted_by("b2", *APART, at=(0.0, 1.9)) == ()
    assert wanted_by("b2", *APART, at=(0.0, 2.0)) == ("c1",)
    assert wanted_by("b3", *APART, at=(0.0, 2.9)) == ()
    assert wanted_by("b3", *APART, at=(0.0, 3.0)) == ("c1",)


def test_a_broker_without_a_link_waits_for_nothing() -> None:
    assert wanted_by("d1", *APART, members=["d1"]) == ("b1", "c1")


def test_few_parts_are_dialled_at_a_time() -> None:
    alone = [f"d{number}" for number in range(9)]
    assert wanted_by("b1", members=alone) == tuple(alone[:PARTS_AT_ONCE])


def test_patience_begins_anew_when_a_member_was_within_reach_meanwhile() -> None:
    healing, apart = Healing(1.0), known("b1", *APART)
    whole = known("b1", *APART, ("b3", "c1", 0.1))
    for about, now in ((apart, 0.0), (whole, 0.5), (apart, 0.9)):
        healing.bridgeheads(about, surroundings(about), now)
    assert healing.bridgeheads(apart, surroundings(apart), 1.5).wanted == ()
    assert healing.bridgeheads(apart, surroundings(apart), 1.9).wanted == ("c1",)


def test_it_says_when_its_patience_ends() -> None:
    healing, about = Healing(1.0), known("b2", *APART)
    assert healing.bridgeheads(about, surroundings(about), 7.0).again_at == 9.0


def test_a_link_of_our_own_that_is_down_leads_nowhere_whatever_the_other_end_reports() -> None:
    stale = known("b1", *APART, ("b1", "c1", 0.1))
    about = known("b1", *APART)
    lied = type(about)(
        me="b1",
        members=about.members,
        configured=(),
        linked=about.linked,
        links=stale.links,
    )
    healing = Healing(1.0)
    healing.bridgeheads(lied, surroundings(lied), 0.0)
    assert healing.bridgeheads(lied, surroundings(lied), 1.0).wanted == ("c1",)
