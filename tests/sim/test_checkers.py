"""Each law that every run must keep, broken by hand."""

from math import inf

import pytest
from support.builders import a_message, a_parcel

from tidings.core.errors import CheckFailed
from tidings.core.trace import Dropped, Published, Subscribed
from tidings.sim.checkers import Checker

MESSAGE = a_message(id=1)


def a_publication(at: float = 0.0, message: int = 1) -> Published:
    return Published(at, "b1", message, "t", 0, 1.0, 1.0, "d-tree", "")


def a_wish(subscription: str, active: bool = True) -> Subscribed:
    return Subscribed(0.0, home(subscription), subscription, "t", "", inf, 1.0, active)


def home(subscription: str) -> str:
    return subscription.partition("/")[0]


def a_checker(*interested: str) -> Checker:
    """The account of a run in which message 1 was published, and these subscriptions want it."""
    checker = Checker("mesh.toml", 42)
    for subscription in interested:
        checker.subscribed(a_wish(subscription))
    checker.expect(1, tuple(sorted({home(subscription) for subscription in interested})))
    checker.published(a_publication())
    return checker


def test_a_run_in_which_all_is_delivered_is_lawful() -> None:
    checker = a_checker("b2/x:t", "b3/y:t")
    checker.delivered(MESSAGE, ("b2/x:t",))
    checker.delivered(MESSAGE, ("b3/y:t",))
    checker.finish([])
    assert (checker.publications, checker.deliveries) == (1, 2)


def test_nothing_is_delivered_that_was_not_published() -> None:
    with pytest.raises(CheckFailed, match="never published"):
        a_checker("b2/x:t").delivered(a_message(id=2), ("b2/x:t",))


@pytest.mark.parametrize("others", [(), ("b3/y:t",)])
def test_nothing_is_delivered_twice_to_one_subscription(others: tuple[str, ...]) -> None:
    checker = a_checker("b2/x:t", *others)  # with others, the message is not settled yet
    checker.delivered(MESSAGE, ("b2/x:t",))
    with pytest.raises(CheckFailed, match="twice"):
        checker.delivered(MESSAGE, ("b2/x:t",))


@pytest.mark.parametrize("others", [(), ("b3/y:t",)])
def test_a_broker_that_restarted_may_deliver_again_but_it_counts_once(
    others: tuple[str, ...],
) -> None:
    checker = a_checker("b2/x:t", *others)
    checker.delivered(MESSAGE, ("b2/x:t",))
    checker.restarted("b2")
    checker.delivered(MESSAGE, ("b2/x:t",))
    assert checker.deliveries == 1
    if others:
        checker.delivered(MESSAGE, others)
        with pytest.raises(CheckFailed, match="twice"):
            checker.delivered(MESSAGE, others)


def test_no_message_is_published_twice() -> None:
    for checker in (a_checker(), a_checker("b2/x:t")):
        with pytest.raises(CheckFailed, match="published twice"):
            checker.published(a_publication(1.0))


def test_nothing_vanishes() -> None:
    checker = a_checker("b2/x:t", "b3/y:t")
    checker.delivered(MESSAGE, ("b2/x:t",))
    with pytest.raises(CheckFailed, match=r"to b3/y:t vanished"):
        checker.finish([])


def test_what_a_publisher_s_broker_has_not_heard_of_yet_cannot_vanish() -> None:
    """A subscription is made a moment before a publication elsewhere: it is in the audience, but
    nothing is owed to its broker."""
    checker = Checker("mesh.toml", 42)
    checker.subscribed(a_wish("b2/x:t"))
    checker.expect(1, ())
    checker.published(a_publication())
    checker.finish([])


def test_a_client_at_the_publisher_s_own_broker_is_always_known() -> None:
    checker = Checker("mesh.toml", 42)
    checker.subscribed(a_wish("b1/x:t"))
    checker.published(a_publication())
    with pytest.raises(CheckFailed, match="to b1/x:t vanished"):
        checker.finish([])


def test_whoever_subscribes_while_a_message_is_on_its_way_may_get_it_and_need_not() -> None:
    for served in ((), ("b2/y:t",)):
        checker = Checker("mesh.toml", 42)
        checker.subscribed(a_wish("b2/x:t"))
        checker.expect(1, ("b2", "b3"))
        checker.published(a_publication())
        checker.subscribed(a_wish("b3/y:t"))
        checker.delivered(MESSAGE, ("b2/x:t",))
        if served:
            checker.delivered(MESSAGE, ("b3/y:t",))
            with pytest.raises(CheckFailed, match="twice"):
                checker.delivered(MESSAGE, ("b3/y:t",))
        checker.finish([])


def test_what_was_dropped_for_its_broker_did_not_vanish() -> None:
    checker = a_checker("b2/x:t", "b3/y:t")
    checker.dropped(Dropped(1.0, "b1", 1, "expired", ("b2", "b3")))
    checker.finish([])


def test_what_was_dropped_for_another_broker_or_message_does_not_count() -> None:
    checker = a_checker("b2/x:t")
    checker.dropped(Dropped(1.0, "b1", 1, "expired", ("b3",)))
    checker.dropped(Dropped(1.0, "b1", 9, "expired", ("b2",)))
    with pytest.raises(CheckFailed, match="vanished"):
        checker.finish([])


def test_what_is_in_flight_at_the_end_did_not_vanish() -> None:
    checker = a_checker("b2/x:t")
    checker.finish([a_parcel("b2", message=MESSAGE)])
    with pytest.raises(CheckFailed, match="vanished"):
        a_checker("b2/x:t").finish([a_parcel("b3", message=MESSAGE)])


@pytest.mark.parametrize(
    "path",
    [
        ("b1",),
        ("b1", "b2"),  # back over the link it came by
        ("b3", "b2", "b1", "b2"),  # b2 goes on with another neighbour
        ("b2", "b1", "b3", "b2"),
        ("b3", "b4", "b3", "b2"),
    ],
)
def test_a_copy_may_come_back_and_go_another_way(path: tuple[str, ...]) -> None:
    a_checker("b4/x:t").sent(path[-1], "b4", path)


@pytest.mark.parametrize(
    "path", [("b1", "b2", "b1"), ("b1", "b2", "b3", "b1"), ("b3", "b1", "b2", "b1", "b4", "b1")]
)
def test_no_copy_crosses_a_link_twice_in_the_same_direction(path: tuple[str, ...]) -> None:
    checker = a_checker("b4/x:t")
    with pytest.raises(CheckFailed, match=r"crosses the link b1 → b2 again: .* → b1 → b2\."):
        checker.sent("b1", "b2", path)
    checker.sent("b1", "b9", path)  # the other direction, and other links, are free
    checker.sent("b2", "b9", (*path, "b2"))


def test_a_broken_law_names_the_scenario_and_the_seed() -> None:
    with pytest.raises(CheckFailed, match=r"mesh\.toml, seed 42: "):
        a_checker("b2/x:t").finish([])


def test_what_is_accounted_for_is_closed_in_the_end_and_what_is_not_stays_open() -> None:
    checker = Checker("old", 1)
    checker.subscribed(a_wish("b2/s:t"))
    for at, message in ((0.0, 1), (1.0, 2), (2_000.0, 3)):
        checker.expect(message, ("b2",))
        checker.published(a_publication(at, message))
        if message != 2:
            checker.dropped(Dropped(at, "b1", message, "no-route", ("b2",)))
    assert 1 in checker._complete
    with pytest.raises(CheckFailed, match="message 2 to b2/s:t vanished"):
        checker.finish([])
