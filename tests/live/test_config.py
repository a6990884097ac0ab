"""A broker's configuration: what is wrong with it is said in one paragraph, before it listens."""

from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from tidings.core.errors import ConfigError
from tidings.core.links.conditions import Conditions
from tidings.core.links.estimates import LinkEstimate
from tidings.files.toml import read_toml
from tidings.live.config import BrokerConfig, Emulate, Estimate, Neighbour, load, parse
from tidings.testbed.broker_files import to_toml

JOINING: dict[str, Any] = {"name": "n1", "member": [{"port": 7001}]}
NEIGHBOUR = {"name": "n2", "port": 7002}


def test_the_smallest_file_is_a_name() -> None:
    assert parse({"name": "n1"}, "x") == BrokerConfig(name="n1", source="x")


@pytest.mark.parametrize(
    ("document", "field", "accepted"),
    [
        ({}, "name", "the field name"),
        ({"name": ""}, "name", "regex"),
        ({"name": "a/b"}, "name", "regex"),
        ({"name": "a b"}, "name", "regex"),
        ({"name": "n1\n"}, "name", "regex"),
        ({"name": "n1", "neighbour": [{"name": "a/b", "port": 1}]}, "neighbour", "regex"),
        ({"name": "n1", "source": "x"}, "source", "one of the fields"),
        ({"name": "n1", "broker": {"policies": [{}]}}, "broker.policies", "[[policy]]"),
        ({"name": "n1", "mqtt": {"max_connections": 0}}, "mqtt.max_connections", ">= 1"),
        ({"name": "n1", "mqtt_prot": 1}, "mqtt_prot", "mqtt_port"),
        ({"name": "n1", "mqtt_port": 70_000}, "mqtt_port", "<= 65535"),
        ({"name": "n1", "run": ".hidden"}, "run", "regex"),
        ({"name": "n1", "neighbour": [{"name": "n2"}]}, "neighbour[0]", "port"),
        ({"name": "n2", "neighbour": [NEIGHBOUR]}, "neighbour[0].name", "not this broker's"),
        ({"name": "n1", "neighbour": [NEIGHBOUR] * 2}, "neighbour[1].name", "of its own"),
        (
            {"name": "n1", "neighbour": [NEIGHBOUR], "broker": {"estimates": "pinned"}},
            "neighbour[0].estimate",
            "delay_ms",
        ),
        (
            {"name": "n1", "neighbour": [NEIGHBOUR | {"emulate": {"outages": [[5.0, 2.0]]}}]},
            "neighbour[0].emulate.outages",
            "sorted",
        ),
        (
            {
                "name": "n1",
                "neighbour": [NEIGHBOUR | {"emulate": {"delay_steps": [[5, 1], [5, 2]]}}],
            },
            "neighbour[0].emulate.delay_steps",
            "later",
        ),
        (
            {"name": "n1", "neighbour": [NEIGHBOUR | {"emulate": {"delay_steps": [[5, -1]]}}]},
            "neighbour[0].emulate.delay_steps",
            ">= 0",
        ),
        (
            {
                "name": "n1",
                "neighbour": [NEIGHBOUR | {"emulate": {"delay_steps": [[5, 1]], "repeat_s": 5}}],
            },
            "neighbour[0].emulate.repeat_s",
            "after the last step (5 s)",
        ),
        (
            JOINING | {"broker": {"linking": "configured"}},
            "broker.linking",
            "one of full-mesh, nearest, random",
        ),
        (JOINING | {"broker": {"linking": "nearst"}}, "broker.linking", "nearest"),
        (JOINING | {"broker": {"estimates": "pinned"}}, "broker.estimates", "measured"),
        (JOINING | {"host": "0.0.0.0"}, "address", "host:port"),
        (JOINING | {"host": "0.0.0.0", "address": "a b:7"}, "address", "host:port"),
        (JOINING | {"member": [{"port": 7001}] * 2}, "member[1]", "once"),
        (JOINING | {"member": [{"port": 0}]}, "member[0].port", ">= 1"),
        (JOINING | {"member": [{"host": "a b", "port": 1}]}, "member[0].host", "host's name"),
        ({"name": "n1", "policy": [{"topic": "a/#/b"}]}, "policy[0].topic", "last level"),
        ({"name": "n1", "broker": {"strategy": "x"}}, "broker.strategy", "d-tree"),
        ({"name": "n1", "policy": [{"topic": "a", "strategy": "x"}]}, "policy.strategy", "d-tree"),
    ],
)
def test_a_fault_is_named_with_its_field_and_what_is_accepted(
    document: dict[str, Any], field: str, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(document, "broker.toml")
    assert caught.value.source == "broker.toml"
    assert field in caught.value.field
    assert accepted in str(caught.value)


def test_a_broker_with_a_member_chooses_its_links_by_chance_unless_it_says_how() -> None:
    assert parse(JOINING, "x").broker.linking == "random"
    assert parse(JOINING, "x").links_itself
    assert parse(JOINING | {"broker": {"linking": "nearest"}}, "x").broker.linking == "nearest"
    first_of_all = parse({"name": "n1", "broker": {"linking": "random"}}, "x")
    assert first_of_all.links_itself
    assert not parse({"name": "n1"}, "x").links_itself


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "127.0.0.1:7005"),
        ({"host": "::1"}, "[::1]:7005"),
        ({"address": "turin.example.net"}, "turin.example.net:7005"),
        ({"address": "turin.example.net:1"}, "turin.example.net:1"),
        ({"host": "0.0.0.0", "address": "[2001:db8::7]:9"}, "[2001:db8::7]:9"),
    ],
)
def test_others_are_told_where_to_find_a_broker(fields: dict[str, Any], told: str) -> None:
    assert parse(JOINING | fields, "x").told_address(7005) == told


def test_a_policy_becomes_the_contract_of_its_topics() -> None:
    config = parse({"name": "n1", "policy": [{"topic": "a/#", "deadline_ms": 50}]}, "x")
    (policy,) = config.settings().policies
    assert (policy.topic, policy.contract.deadline_s) == ("a/#", 0.05)


def test_what_is_written_for_another_process_reads_back_the_same(tmp_path: Path) -> None:
    written = BrokerConfig(
        name='n"1"\\',
        neighbour=(
            Neighbour(
                name="grün",
                port=1,
                estimate=Estimate(delay_ms=1e-05),
                emulate=Emulate(
                    rate_bytes_per_s=inf,
                    outages=((1.0, 2.5), (3.0, 4e20)),
                    delay_steps=((0.0, 0.1), (60.0, 1e-05)),
                    repeat_s=120.0,
                ),
            ),
        ),
        started_at=1_763_251_200.123456,
    )
    path = tmp_path / "broker.toml"
    path.write_text(to_toml(replace(written, source="")), encoding="utf-8")
    assert load(path) == replace(written, source=str(path))
    assert read_toml(path)["started_at"] == written.started_at


CONDITIONS: dict[str, Any] = {
    # one for each field, other than its default
    "delay_s": 0.1,
    "loss_ratio": 0.2,
    "rate_bytes_per_s": 3.0,
    "failure_probability": 0.4,
    "failure_epoch_s": 5.0,
    "outages": ((6.0, 7.0),),
    "delay_steps": ((8.0, 0.9),),
    "repeat_s": 10.0,
    "s_per_byte": 0.11,
    "deviation_s_per_byte": 0.12,
}


@pytest.mark.parametrize("field", Conditions.__struct_fields__)
def test_each_condition_of_a_link_reaches_the_physics_through_the_file(
    tmp_path: Path, field: str
) -> None:
    conditions = Conditions(**{"delay_s": 0.0, field: CONDITIONS[field]})
    emulate = Emulate.of(conditions, processing_s=0.13)
    neighbour = Neighbour(name="n2", port=1, emulate=emulate)
    path = tmp_path / "broker.toml"
    path.write_text(to_toml(BrokerConfig(name="n1", neighbour=(neighbour,))))
    read = load(path).neighbour[0].emulate
    assert read == emulate
    assert read.conditions() == conditions
    assert read.processing_s == 0.13


def test_an_estimate_is_the_same_after_both_changes_of_units() -> None:
    believed = LinkEstimate(0.25, 0.9, 2e-06, 1e-06, 0.8)
    stated = Estimate.of(believed)
    assert astuple(stated) == pytest.approx((250.0, 0.9, 0.8, 2.0, 1.0))
    assert astuple(stated.link_estimate()) == pytest.approx(astuple(believed))


def test_no_field_is_offered_that_a_file_cannot_have() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"name": "n1", "nmae": "n1"}, "broker.toml")
    assert "flush_s" in caught.value.accepted
    assert "source" not in caught.value.accepted
