"""A scenario is a file that reads like a setup table, and whose mistakes are found at the door."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.scenarios import SMALL, a_scenario

from tidings.core.document import changed
from tidings.core.errors import ConfigError
from tidings.scenarios.read import load, parse
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario

LISTED = {
    "publisher": [{"broker": "b1", "topic": "a/b"}],
    "subscriber": [{"broker": "b2", "topic": "a/#"}],
}


def test_every_parameter_has_a_default_so_that_an_empty_file_is_a_scenario() -> None:
    scenario = parse({}, "empty.toml", "")
    assert len(set_up(scenario).overlay.brokers) == 20
    assert scenario.settings().strategy == "d-tree"
    assert scenario.run.seconds == 60.0


def test_a_topology_without_a_kind_is_a_full_mesh() -> None:
    scenario = parse({"topology": {"brokers": 12}}, "f.toml", "")
    assert len(set_up(scenario).overlay.links) == 66


def test_a_file_is_read_with_changes_on_top(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[run]\nseed = 3\n[links]\nloss_ratio = 0.1\n")
    scenario = load(path, {"links.loss_ratio": 0.2, "broker.strategy": "direct"})
    assert scenario.run.seed == 3
    assert scenario.links.loss_ratio == 0.2
    assert scenario.settings().strategy == "direct"
    assert scenario.source == str(path)


MISTAKES: list[tuple[str, Any, str, str]] = [
    ("run.seconds", 0, "run.seconds", "> 0"),
    ("run.seconds", float("inf"), "run.seconds", "<="),
    ("run.seconds", float("nan"), "run.seconds", "> 0"),
    ("run.start_s", -1, "run.start_s", ">= 0"),
    ("run.drain_s", float("inf"), "run.drain_s", "<="),
    ("run.seed", 1.5, "run.seed", "int"),
    ("run.sed", 1, "run.sed", "one of the fields name, seed"),
    ("runn", {}, "runn", "one of the fields run, topology"),
    ("links.loss_ratio", 1.1, "links.loss_ratio", "<= 1"),
    ("links.loss_ratio", "some", "links.loss_ratio", "float"),
    ("links.rate_kbit_per_s", 0, "links.rate_kbit_per_s", "> 0"),
    ("links.failure_probability", -0.1, "links.failure_probability", ">= 0"),
    ("links.failure_epoch_s", 0, "links.failure_epoch_s", "> 0"),
    ("links.processing_ms", -1, "links.processing_ms", ">= 0"),
    ("links.ack", "never", "links.ack", "travels"),
    ("broker.strategy", "magic", "broker.strategy", "d-tree, dcrd, direct"),
    ("broker.transmissions", 0, "broker.transmissions", "int >= 1"),
    ("broker.estimates", "guessed", "broker.estimates", "pinned"),
    ("broker.trace", "all", "broker.trace", "outcomes"),
    ("broker.policies", [], "broker.policies", "[[policy]]"),
    ("source", "other.toml", "source", "no such field"),
    ("folder", "there", "folder", "no such field"),
    ("topology.kind", "ring", "kind", "full-mesh, random-degree"),
    ("topology.brokers", 0, "brokers", ">= 1"),
    ("topology.broker", 5, "broker", "brokers, delay_ms"),
    ("topology.delay_ms", [5, 1], "delay_ms", "low <= high"),
    ("topology", 5, "topology", "a table"),
    ("workload.topics", 0, "workload.topics", ">= 1"),
    ("workload.topics", 5, "workload.topics", "at most one topic per broker (4)"),
    ("workload.rate_per_s", float("inf"), "workload.rate_per_s", "<="),
    ("workload.rate_per_s", 0, "workload.rate_per_s", "> 0"),
    ("workload.arrivals", "bursty", "workload.arrivals", "poisson"),
    ("workload.subscribe_probability", [0.5], "workload.subscribe_probability", "length 2"),
    ("workload.subscribe_probability", [0.5, 0.1], "workload.subscribe_probability", "low <= high"),
    ("workload.deadline_factor", 0, "workload.deadline_factor", "> 0"),
    ("workload.late", "keep", "workload.late", "deliver, drop"),
    ("workload.publisher", [{"broker": "b1", "topic": "t"}], "workload", "both or neither"),
    ("faults.link_outage_s", 0, "faults.link_outage_s", "> 0"),
    ("faults.broker_failures_per_hour", -1, "faults.broker_failures_per_hour", ">= 0"),
    ("live.mqtt_port", 70_000, "live.mqtt_port", "65000"),
    ("live.host", 5, "live.host", "str"),
    ("policy", [{"topic": "a/#/b"}], "policy[0].topic", "topic filter"),
    ("policy", [{"topic": "a", "strategy": "magic"}], "policy.strategy", "d-tree"),
    ("policy", [{"topic": "a", "deadline_ms": 0}], "policy[0].deadline_ms", "> 0"),
    ("policy", [{"price": 1}], "policy[0]", "the field topic"),
]


@pytest.mark.parametrize(("dotted", "value", "field", "accepted"), MISTAKES)
def test_a_mistake_is_named_with_file_field_value_and_what_is_accepted(
    dotted: str, value: Any, field: str, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        set_up(parse(changed(SMALL, {dotted: value}), "my.toml", ""))
    assert caught.value.source.startswith("my.toml")
    assert caught.value.field == field
    assert accepted in caught.value.accepted
    assert "\n" not in str(caught.value)


LISTING_MISTAKES: list[tuple[str, dict[str, Any], str, str]] = [
    ("publisher", {"broker": "b9", "topic": "t"}, "publisher[1].broker", "b1, b2, b3, b4"),
    ("publisher", {"broker": "b1", "topic": "a/#"}, "publisher[1].topic", "wildcard"),
    ("publisher", {"broker": "b1", "topic": ""}, "publisher[1].topic", "empty"),
    ("publisher", {"broker": "b1"}, "publisher[1]", "the field topic"),
    ("publisher", {"broker": "b1", "topic": "t", "rate": 1}, "publisher[1].rate", "rate_per_s"),
    ("publisher", {"broker": "b1", "topic": "t", "rate_per_s": 0}, "publisher[1].rate_per_s", ">"),
    ("subscriber", {"broker": "b9", "topic": "t"}, "subscriber[1].broker", "b1, b2, b3, b4"),
    ("subscriber", {"broker": "b1", "topic": "a/#/b"}, "subscriber[1].topic", "character 3"),
    ("subscriber", {"broker": "b1", "topic": "t", "where": "x <"}, "subscriber[1].where", "where"),
    ("subscriber", {"broker": "b1", "topic": "t", "price": -1}, "subscriber[1].price", ">= 0"),
    (
        "subscriber",
        {"broker": "b2", "topic": "a/#", "name": "s1"},
        "subscriber[1].name",
        "no other",
    ),
]


@pytest.mark.parametrize(("table", "row", "field", "accepted"), LISTING_MISTAKES)
def test_a_mistake_in_a_listed_workload_is_named_with_its_row(
    table: str, row: dict[str, Any], field: str, accepted: str
) -> None:
    workload = {**LISTED, table: [*LISTED[table], row]}
    with pytest.raises(ConfigError) as caught:
        set_up(a_scenario(workload=workload))
    assert caught.value.field == f"workload.{field}"
    assert accepted in caught.value.accepted


FAULT_MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"from_s": 1, "to_s": 2}, "broker", "one of b1"),
    ({"from_s": 1, "to_s": 2, "broker": "b9"}, "broker", "one of b1"),
    ({"from_s": 1, "to_s": 2, "link": ["b1", "b9"]}, "link", "two ends"),
    ({"from_s": 1, "to_s": 2, "link": ["b1", "b2"], "broker": "b1"}, "broker", "not both"),
    ({"from_s": 2, "to_s": 2, "broker": "b1"}, "to_s", "after from_s (2)"),
    ({"from_s": -1, "to_s": 2, "broker": "b1"}, "from_s", ">= 0"),
]


@pytest.mark.parametrize(("fault", "field", "accepted"), FAULT_MISTAKES)
def test_a_mistake_in_the_schedule_of_faults_is_named_with_its_row(
    fault: dict[str, Any], field: str, accepted: str
) -> None:
    good = {"from_s": 1, "to_s": 2, "link": ["b2", "b1"]}
    with pytest.raises(ConfigError) as caught:
        set_up(a_scenario(faults={"schedule": [good, fault]}))
    assert caught.value.field == f"faults.schedule[1].{field}"
    assert accepted in caught.value.accepted


def test_the_digest_follows_what_could_change_the_result_and_nothing_else() -> None:
    scenario = a_scenario()
    assert set_up(a_scenario()).digest == set_up(scenario).digest
    moved = structs.replace(scenario, source="elsewhere.toml", folder="there")
    assert set_up(moved).digest == set_up(scenario).digest
    assert set_up(a_scenario({"live.mqtt_port": 1999})).digest == set_up(scenario).digest
    for dotted, value in (
        ("run.seed", 2),
        ("links.loss_ratio", 0.1),
        ("broker.strategy", "r-tree"),
        ("policy", [{"topic": "a"}]),
        ("topology.brokers", 5),
        ("workload.deadline_factor", 2.0),
    ):
        assert set_up(a_scenario({dotted: value})).digest != set_up(scenario).digest, dotted


def test_every_table_of_the_file_is_a_field_of_the_scenario() -> None:
    tables = {"run", "topology", "links", "broker", "policy", "workload", "faults", "dynamics"}
    assert tables | {"live"} == set(Scenario.__struct_fields__) - {"source", "folder", "explicit"}
