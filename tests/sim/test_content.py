"""Messages that are wanted for what is in them: bounded delay, section 6.1."""

from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kstest, uniform

from tidings.core.contract import BEST_EFFORT
from tidings.core.errors import ConfigError
from tidings.core.predicate import parse
from tidings.scenarios.read import load
from tidings.scenarios.read import parse as parse_scenario
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.workload import Load, Publication, publications

BOUNDED = Path(__file__).parents[2] / "scenarios" / "bounded.toml"


def bounded(**content: Any) -> Scenario:
    return load(BOUNDED, {f"workload.content.{name}": value for name, value in content.items()})


def drawn(scenario: Scenario) -> Load:
    return set_up(scenario).load


def said(scenario: Scenario, index: int = 0, count: int = 2_000) -> list[Publication]:
    publisher = drawn(scenario).publishers[index]
    return list(islice(publications(scenario, index, publisher), count))


def test_publishers_are_at_the_first_brokers_and_subscribers_at_the_last() -> None:
    found = drawn(bounded())
    assert [p.broker for p in found.publishers] == ["b01", "b02", "b03", "b04"]
    assert {p.rate_per_s for p in found.publishers} == {0.25}
    homes = [wish.broker for wish in found.subscriptions]
    assert homes == [f"b{number}" for number in range(17, 33) for _ in range(10)]
    assert len({wish.id for wish in found.subscriptions}) == 160


def test_publishers_apart_say_the_same_to_the_same_subscribers() -> None:
    apart = load(BOUNDED, {"topology.publishers": 4})
    assert [p.broker for p in drawn(apart).publishers] == ["p1", "p2", "p3", "p4"]
    assert drawn(apart).subscriptions == drawn(bounded()).subscriptions
    assert said(apart) == said(bounded())


def test_attributes_are_uniform_and_a_quarter_of_the_subscribers_want_a_message() -> None:
    scenario = bounded(subscribers_per_broker=100)
    messages = said(scenario)
    for number in (0, 1):
        values = [float(message.properties[number][1]) for message in messages]
        assert kstest(values, uniform(0, 10).cdf).pvalue > 0.001
    wishes = [parse(wish.where) for wish in drawn(scenario).subscriptions]
    some = [dict(message.properties) for message in messages[:200]]
    assert set(some[0]) == {"A1", "A2"}
    wanted = sum(wish.matches(each) for each in some for wish in wishes)
    assert wanted / (len(some) * len(wishes)) == pytest.approx(0.25, abs=0.04)


def test_a_publishers_deadline_is_drawn_for_each_message_and_subscribers_state_none() -> None:
    scenario = bounded()
    contracts = [message.contract for message in said(scenario)]
    assert kstest([c.deadline_s for c in contracts], uniform(10, 20).cdf).pvalue > 0.001
    assert {(c.price, c.late) for c in contracts} == {(1.0, "drop")}
    wishes = {wish.contract for wish in drawn(scenario).subscriptions}
    assert {(w.deadline_s, w.price, w.late) for w in wishes} == {(inf, 1.0, "drop")}


def test_a_subscribers_deadline_has_its_price_and_publishers_state_none() -> None:
    scenario = bounded(deadlines="subscriber", subscribers_per_broker=100)
    assert {message.contract for message in said(scenario)} == {BEST_EFFORT}
    wishes = [wish.contract for wish in drawn(scenario).subscriptions]
    for deadline_s, price in ((10.0, 3.0), (30.0, 2.0), (60.0, 1.0)):
        alike = [w for w in wishes if (w.deadline_s, w.price) == (deadline_s, price)]
        assert len(alike) / len(wishes) == pytest.approx(1 / 3, abs=0.05)


def test_with_both_kinds_each_is_as_it_is_alone() -> None:
    both = bounded(deadlines="both")
    assert said(both) == said(bounded())
    assert drawn(both).subscriptions == drawn(bounded(deadlines="subscriber")).subscriptions


def test_what_is_said_belongs_to_the_seed_and_the_publisher() -> None:
    scenario = bounded()
    assert said(scenario) == said(scenario)
    first, other = ([m.properties for m in said(scenario, index)] for index in (0, 1))
    assert first != other
    assert said(load(BOUNDED, {"run.seed": 2})) != said(scenario)


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"links.rate_kbit_per_s": 100.0}, "links.rate_kbit_per_s", "inf"),
    ({"links.ms_per_kbyte": [100.0, 50.0]}, "links.ms_per_kbyte", "low <= high"),
    ({"links.ms_per_kbyte": [50.0, inf]}, "links.ms_per_kbyte", "low <= high"),
    ({"links.ms_per_kbyte": [0.0, 50.0]}, "links.ms_per_kbyte[0]", "> 0"),
    ({"links.ms_per_kbyte_deviation": inf}, "links.ms_per_kbyte_deviation", "milliseconds"),
    ({"links.ms_per_kbyte_deviation": -1.0}, "links.ms_per_kbyte_deviation", ">= 0"),
    ({"workload.content.publishers": 33}, "workload.content.publishers", "all 32"),
    ({"workload.content.subscriber_brokers": 33}, "workload.content.subscriber_brokers", "all 32"),
    ({"workload.content.attribute_range": [1, 0]}, "workload.content.attribute_range", "low"),
    (
        {"workload.content.publisher_deadline_s": [10, inf]},
        "workload.content.publisher_deadline_s",
        "low <= high",
    ),
    ({"workload.content.subscriber_price": [1]}, "workload.content.subscriber_price", "one price"),
    (
        {"workload.content.subscriber_price": [3, -2, 1]},
        "workload.content.subscriber_price[1]",
        ">= 0",
    ),
    ({"workload.content.rate_per_minute": 0}, "workload.content.rate_per_minute", "> 0"),
    (
        {
            "workload.publisher": [{"broker": "b01", "topic": "t"}],
            "workload.subscriber": [{"broker": "b02", "topic": "t"}],
        },
        "workload.kind",
        "topics",
    ),
]


@pytest.mark.parametrize(("changes", "field", "accepted"), MISTAKES)
def test_a_mistake_is_named(changes: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_up(load(BOUNDED, changes))
    assert caught.value.field == field
    assert accepted in caught.value.accepted


def test_a_deviation_needs_a_mean() -> None:
    with pytest.raises(ConfigError, match="ms_per_kbyte is not set"):
        set_up(parse_scenario({"links": {"ms_per_kbyte_deviation": 20}}, "s.toml", ""))
