"""Which links a broker asks the world for: the linker's wishes, carried out without haste."""

from __future__ import annotations

from itertools import count, pairwise

import pytest

from tidings.broker.broker import Broker
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.effects import Close, Effect, Open
from tidings.broker.frames import Links
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate
from tidings.linking import LINKERS
from tidings.linking.base import Known, Wishes

SOME = LinkEstimate(0.010)


_transmissions = count(1)


def a_broker(linking: str = "full-mesh", seeds: tuple[str, ...] = ()) -> Broker:
    settings = Settings(linking=linking).checked("test")
    return Broker("b1", settings, {}, whereabouts=Whereabouts(seeds, "here:1"))


def asked(effects: list[Effect], kind: type[Open] | type[Close] = Open) -> list[str]:
    return [effect.neighbour for effect in effects if isinstance(effect, kind)]


def a_report(origin: str, *near: str, version: int = 1, address: str = "") -> Links:
    links = tuple((neighbour, SOME) for neighbour in near)
    return Links(next(_transmissions), origin, 1, version, links, 0.0, address)


def test_a_broker_that_knows_one_member_asks_for_it_at_once() -> None:
    broker = a_broker(seeds=("b7",))
    assert broker.wake_at() <= 0.0
    assert asked(broker.tick(0.0)) == ["b7"]
    assert asked(broker.tick(1.0)) == [], "the world has been asked"


def test_with_configured_links_the_world_is_asked_for_nothing() -> None:
    settings = Settings()
    broker = Broker("b1", settings, {"b2": None}, whereabouts=Whereabouts(("b7",)))
    assert asked(broker.tick(0.0)) == []


def test_members_that_report_are_asked_for_at_the_address_they_tell() -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 0.5)
    effects = broker.receive("b7", a_report("b8", "b7", address="there:9"), 0.6)
    effects += broker.tick(0.6)
    assert Open("b8", "there:9") in effects


def test_who_refuses_is_asked_again_ever_more_slowly() -> None:
    broker, now, asked_at = a_broker(seeds=("b7",)), 0.0, []
    while now < 300.0:
        if asked(broker.tick(now)):
            asked_at.append(now)
            broker.link_refused("b7", now)
        now = max(now + 0.01, min(broker.wake_at(), 300.0))
    pauses = [later - earlier for earlier, later in pairwise(asked_at)]
    assert pauses[:8] == pytest.approx([0.5, 1, 2, 4, 8, 16, 32, 60], abs=0.1)


def test_a_world_that_never_answers_has_refused() -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    later = [at for at in range(1, 40) if asked(broker.tick(float(at)))]
    assert later == [16, 32], "15 s each, and the pauses"


def test_a_link_that_flaps_is_not_opened_at_the_pace_of_its_flapping() -> None:
    broker, opened, now = a_broker(seeds=("b7",)), 0, 0.0
    while now < 60.0:
        if asked(broker.tick(now)):
            opened += 1
            broker.link_up("b7", now)
            broker.link_down("b7", now + 0.05)
        now += 0.1
    assert 4 <= opened <= 10


def test_a_link_that_was_opened_and_is_wanted_no_longer_is_closed_and_a_foreign_one_is_not() -> (
    None
):
    broker = a_broker("full-mesh", seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 0.1)
    broker.link_up("b9", 0.1)  # it has dialled
    effects = broker.receive("b7", a_report("b7", "b1"), 0.2)
    effects += broker.receive("b7", a_report("b8", "b7"), 0.2)
    effects += broker.tick(0.2)
    assert asked(effects) == ["b8"]
    broker.link_up("b8", 0.3)
    # b8 says that it leaves: it reports no links any more
    effects = broker.receive("b7", a_report("b8", version=2), 10.0)
    effects += broker.tick(10.0)
    assert asked(effects, Close) == ["b8"]


def test_who_leaves_is_looked_for_by_nobody() -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 0.1)
    broker.receive("b7", a_report("b7", "b1"), 0.2)
    broker.tick(0.3)
    said = broker.leave(1.0)
    [farewell] = [e.frame for e in said if isinstance(getattr(e, "frame", None), Links)]
    assert (farewell.origin, farewell.links) == ("b1", ())


def test_a_report_tells_where_its_broker_takes_links() -> None:
    broker = a_broker(seeds=("b7",))
    broker.link_up("b7", 0.0)
    effects = broker.tick(0.0) + broker.tick(0.5)
    told = [e.frame for e in effects if isinstance(getattr(e, "frame", None), Links)]
    assert all(frame.address == "here:1" for frame in told)


def test_a_member_list_with_lies_in_it_costs_attempts_and_nothing_else() -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 0.1)
    effects: list[Effect] = []
    for number in range(200):
        lie = a_report(f"lie{number}", "b7", version=number + 1, address="nowhere:0")
        effects += broker.receive("b7", lie, 0.2)
    attempts, now = 0, 0.2
    while now < 600.0:
        for neighbour in asked(broker.tick(now)):
            attempts += 1
            broker.link_refused(neighbour, now)
        now += 0.5
    assert 200 <= attempts <= 200 * 12, "until their reports were too old, ever more slowly"
    assert broker.wake_at() > now - 1.0


def test_a_member_whose_name_is_found_is_a_seed_and_its_link_counts_as_asked_for() -> None:
    broker = a_broker()
    assert asked(broker.tick(0.0)) == []
    broker.member_found("b7", 1.0)
    broker.link_up("b7", 1.1)
    assert asked(broker.tick(1.1)) == []
    broker.receive("b7", a_report("b7", "b1"), 1.2)
    broker.link_down("b7", 20.0)
    assert asked(broker.tick(20.0)) == ["b7"]
    broker.link_refused("b7", 20.1)
    assert [at for at in range(21, 4000) if asked(broker.tick(float(at)))], "never forgotten"


def test_a_member_that_is_found_while_there_are_links_is_asked_for_if_it_is_wanted() -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 0.1)
    broker.member_found("b8", 0.2)
    assert broker.wake_at() <= 0.2
    assert asked(broker.tick(0.2)) == ["b8"]


def test_where_a_broker_is_reached_may_be_known_only_when_it_listens() -> None:
    broker = a_broker(seeds=("b7",))
    broker.reached_at("elsewhere:2")
    broker.link_up("b7", 0.0)
    effects = broker.tick(0.0) + broker.tick(0.5)
    told = [e.frame for e in effects if isinstance(getattr(e, "frame", None), Links)]
    assert {frame.address for frame in told} == {"elsewhere:2"}


class Counting:
    """Wants all members, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []

    def wishes(self, known: Known, now: float) -> Wishes:
        self.asked_at.append(now)
        return Wishes(tuple(known.members))


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    linker = Counting()
    monkeypatch.setitem(LINKERS, "full-mesh", lambda options: linker)
    return linker


def test_news_of_others_waits_and_nothing_new_is_not_looked_at_again(counting: Counting) -> None:
    broker = a_broker(seeds=("b7",))
    broker.tick(0.0)
    broker.link_up("b7", 1.0)
    broker.tick(1.0)
    looked = len(counting.asked_at)
    for number in range(1, 5):
        now = 1.0 + number / 10
        broker.receive("b7", a_report("b8", "b7", version=number, address=f"at:{number}"), now)
        broker.receive("b7", a_report("b9", "b7", *["b8"] * (number % 2), version=number), now)
        broker.tick(now)
    assert counting.asked_at[looked:] == []
    assert broker.wake_at() <= 1.5
    assert asked(broker.tick(1.5)) == ["b8", "b9"]
    assert counting.asked_at[looked:] == [1.5]
    for refused in ("b8", "b9"):
        broker.link_refused(refused, 1.6)
    broker.tick(1.6)
    looked = len(counting.asked_at)
    broker.tick(1.65)
    assert len(counting.asked_at) == looked


def test_what_happens_to_the_broker_itself_is_looked_at_at_once(counting: Counting) -> None:
    broker = a_broker(seeds=("b7", "b8"))
    broker.tick(0.0)
    for now, step in (
        (1.0, lambda: broker.link_up("b7", 1.0)),
        (1.1, lambda: broker.link_up("b8", 1.1)),
        (1.2, lambda: broker.link_down("b7", 1.2)),
        (1.3, lambda: broker.link_down("b8", 1.3)),
    ):
        step()
        assert broker.wake_at() <= now
        broker.tick(now)
        assert counting.asked_at[-1] == now
