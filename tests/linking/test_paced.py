"""How often does a linker look at the overlay?"""

from __future__ import annotations

from math import inf

from support.known import known

from tidings.linking.base import Known, Wishes
from tidings.linking.paced import Paced

LINKS = (("b1", "b2", 0.1), ("b2", "b3", 0.1))


class Everybody:
    """Wants all members, and counts how often it is asked."""

    def __init__(self, again_at: float = inf) -> None:
        self.asked, self.again_at = 0, again_at

    def wishes(self, known: Known, now: float) -> Wishes:
        self.asked += 1
        return Wishes(tuple(known.members), again_at=self.again_at)


def test_news_of_others_waits_and_it_is_said_until_when() -> None:
    linker = Paced(Everybody(), 0.5)
    assert linker.wishes(known("b1", *LINKS, version=1), 1.0).wanted == ("b2", "b3")
    more = known("b1", *LINKS, ("b3", "b4", 0.1), version=2)
    assert linker.wishes(more, 1.1) == Wishes(("b2", "b3"), again_at=1.5)
    assert linker.wishes(more, 1.5).wanted == ("b2", "b3", "b4")


def test_what_happens_to_this_broker_itself_is_looked_at_at_once() -> None:
    inner = Everybody()
    linker = Paced(inner, 0.5)
    linker.wishes(known("b1", *LINKS, version=1), 1.0)
    for about in (
        known("b1", *LINKS, ("b1", "b3", 0.1), version=1),
        known("b1", *LINKS, ("b1", "b3", 0.1), refused=["b4"], version=1),
        known("b1", *LINKS, ("b1", "b3", 0.1), configured=["b5"], version=1),
        known("b1", version=1),  # without any link there is no time to lose
        known("b1", version=1),
    ):
        asked = inner.asked
        linker.wishes(about, 1.1)
        assert inner.asked == asked + 1


def test_nothing_new_is_not_looked_at_again() -> None:
    inner = Everybody()
    linker = Paced(inner, 0.5)
    about = known("b1", *LINKS, version=7)
    answers = [linker.wishes(about, now) for now in (1.0, 2.0, 900.0)]
    assert inner.asked == 1
    assert answers[0] == answers[2]


def test_views_without_a_version_are_looked_at_again() -> None:
    inner = Everybody()
    linker = Paced(inner, 0.5)
    for now in (1.0, 2.0):
        linker.wishes(known("b1", *LINKS), now)
    assert inner.asked == 2


def test_it_looks_again_when_the_linker_wants_to_be_asked() -> None:
    inner = Everybody(again_at=1.2)
    linker = Paced(inner, 0.5)
    about = known("b1", *LINKS, version=7)
    assert linker.wishes(about, 1.0).again_at == 1.2
    linker.wishes(about, 1.2)
    assert inner.asked == 2
