"""What came in time, late, or not at all is counted while a run goes on."""

from math import inf

import pytest
from rich.console import Console

from tidings.cli.screens.up import RunProgress, so_far
from tidings.core.contract import BEST_EFFORT, Contract, Subscription, TopicPolicy, subscription_id
from tidings.live.clock import wall_clock
from tidings.testbed.punctuality import NOT_FOLLOWED, PATIENCE_S, Punctuality
from tidings.testbed.traffic import Traffic


def a_wish(broker: str, client: str, topic: str, deadline_s: float = inf, where: str = ""):
    wish_id = subscription_id(broker, client, topic)
    return Subscription(wish_id, broker, topic, where, Contract(deadline_s))


def counts(found: Punctuality) -> tuple[int, int, int]:
    return found.on_time, found.late, found.lost


def test_a_message_is_judged_by_the_tighter_of_both_deadlines() -> None:
    wishes = [a_wish("b2", "c", "t", 2.0), a_wish("b3", "c", "t", 9.0)]
    found = Punctuality(wishes, ())
    number = found.expect("t", Contract(5.0), (), now=100.0)
    found.arrived(number, 2.0, now=102.5)
    found.arrived(number, 9.0, now=104.0)
    assert counts(found) == (1, 1, 0)
    number = found.expect("t", Contract(5.0), (), now=200.0)
    found.arrived(number, 9.0, now=205.5)
    assert counts(found) == (1, 2, 0)
    assert found.ratio() == pytest.approx(1 / 3)


def test_what_is_missing_at_its_deadline_is_lost_until_it_comes_late() -> None:
    found = Punctuality([a_wish("b2", "c", "t", 2.0), a_wish("b3", "c", "t", 3.0)], ())
    number = found.expect("t", BEST_EFFORT, (), now=0.0)
    assert found.ratio() is None
    found.arrived(number, 2.0, now=1.0)
    found.settle(now=2.5)
    assert counts(found) == (1, 0, 0)  # the other may still be in time
    found.settle(now=3.5)
    assert counts(found) == (1, 0, 1)
    found.arrived(number, 3.0, now=4.0)
    assert counts(found) == (1, 1, 0)
    found.arrived(number, 3.0, now=5.0)  # a second copy
    assert counts(found) == (1, 1, 0)


def test_without_a_deadline_patience_is_long() -> None:
    found = Punctuality([a_wish("b2", "c", "#")], ())
    number = found.expect("t", BEST_EFFORT, (), now=0.0)
    found.settle(now=PATIENCE_S - 1)
    found.arrived(number, inf, now=PATIENCE_S - 1)
    assert counts(found) == (1, 0, 0)
    found.expect("t", BEST_EFFORT, (), now=100.0)
    found.settle(now=101.0 + PATIENCE_S)
    assert counts(found) == (1, 0, 1)


def test_a_policy_gives_the_deadline_that_the_publisher_does_not_state() -> None:
    policies = [TopicPolicy("t/#", Contract(1.0)), TopicPolicy("#", Contract(9.0))]
    found = Punctuality([a_wish("b2", "c", "#")], policies)
    for contract, delay_s in ((BEST_EFFORT, 2.0), (Contract(3.0), 2.0)):
        found.arrived(found.expect("t/1", contract, (), now=0.0), inf, now=delay_s)
    assert counts(found) == (1, 1, 0)


def test_only_who_wants_a_message_is_waited_for() -> None:
    wishes = [
        a_wish("b2", "c", "t", 1.0, "colour == 'blue'"),
        a_wish("b3", "c", "t", 1.0, "colour == 'red'"),
        a_wish("b3", "c", "t/#", 1.0),  # the same client: it gets one copy
    ]
    found = Punctuality(wishes, ())
    assert found.expect("other", BEST_EFFORT, (), now=0.0) == NOT_FOLLOWED
    found.expect("t", BEST_EFFORT, (("colour", "red"),), now=0.0)
    found.settle(now=2.0)
    assert counts(found) == (0, 0, 1)
    found.expect("t", BEST_EFFORT, (("colour", "blue"),), now=10.0)
    found.settle(now=12.0)
    assert counts(found) == (0, 0, 3)


def test_a_message_of_somebody_else_is_not_judged() -> None:
    found = Punctuality([a_wish("b2", "c", "t", 1.0)], ())
    found.arrived(int.from_bytes(b"hello me"), 1.0, now=0.0)
    found.arrived(NOT_FOLLOWED, 1.0, now=0.0)
    assert counts(found) == (0, 0, 0)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_person_sees_it_while_it_runs(width: int) -> None:
    traffic = Traffic(wall_clock())
    assert so_far(traffic, {}) == "0 published, 0 received"
    traffic.published, found = 1203, traffic.punctuality
    found.on_time, found.late, found.lost = 4750, 31, 7
    said = so_far(traffic, {"no-route": 3, "expired": 12})
    assert said == (
        "1,203 published, 0 received, 99.2 % on time, 31 late, 7 lost; "
        "dropped: 12 expired, 3 no-route"
    )
    console = Console(width=width, record=True, quiet=False, file=None)
    progress = RunProgress(console, wall_clock(), inf)
    assert progress.show(traffic, {"no-route": 3, "expired": 12})
    with console.capture() as shown:
        console.print(progress._bar.get_renderable())
    assert {"1,203", "99.2", "31", "12"} <= set(shown.get().split())
