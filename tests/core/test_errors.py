"""An error says what is accepted, and which known name was probably meant."""

from typing import Any

import pytest

from tidings.core.document import culprit, field_names
from tidings.core.errors import ConfigError, FileError, one_of, some_of
from tidings.live.config import parse as parse_broker
from tidings.scenarios.read import parse as parse_scenario
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario


def of_scenario(document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        set_up(parse_scenario(document, "s.toml", "."))
    return str(caught.value)


def of_broker(document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_broker({"name": "n1"} | document, "b.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("document", "meant"),
    [
        ({"link": {"loss_ratio": 0.1}}, "links"),
        ({"links": {"los_ratio": 0.1}}, "loss_ratio"),
        ({"loss_ratio": 0.1}, "links.loss_ratio"),
        ({"links": {"strategy": "dcrd"}}, "broker.strategy"),
        ({"broker": {"dcrd": {"odrer": 1}}}, "order"),
        ({"broker": {"strategy": "dtree"}}, "d-tree"),
        ({"broker": {"scheduling": "urgent"}}, "urgency"),
        ({"broker": {"exhausted": "retri"}}, "retry"),
        ({"topology": {"kind": "fullmesh"}}, "full-mesh"),
        ({"topology": {"kind": "full-mesh", "borkers": 3}}, "brokers"),
        ({"policy": [{"topic": "a", "deadline": 3}]}, "deadline_ms"),
        ({"policy": [{"topic": "a", "strategy": "dtree"}]}, "d-tree"),
        ({"faults": {"schedule": [{"broker": "B07", "from_s": 1, "to_s": 2}]}}, "b07"),
    ],
)
def test_a_misspelt_name_in_a_scenario_is_met_with_the_one_meant(
    document: dict[str, Any], meant: str
) -> None:
    said = of_scenario(document)
    assert said.endswith(f". Did you mean '{meant}'?")
    assert ".." not in said


@pytest.mark.parametrize(
    ("document", "meant"),
    [
        ({"mqttport": 1}, "mqtt_port"),
        ({"neighbor": []}, "neighbour"),
        ({"neighbour": [{"name": "n2", "prot": 1}]}, "port"),
        ({"broker": {"stategy": "dcrd"}}, "strategy"),
        ({"broker": {"strategy": "rtree"}}, "r-tree"),
        ({"broker": {"scheduling": "fiffo"}}, "fifo"),
    ],
)
def test_a_misspelt_name_in_a_broker_file_is_met_with_the_one_meant(
    document: dict[str, Any], meant: str
) -> None:
    assert of_broker(document).endswith(f". Did you mean '{meant}'?")


def test_no_field_is_offered_that_no_file_has() -> None:
    said = of_scenario({"xyzzy": 1})
    assert said.endswith("workload, faults, dynamics, live.")
    assert "policies" not in of_scenario({"broker": {"xyzzy": 1}})
    assert "policies" not in of_broker({"broker": {"xyzzy": 1}})
    assert "links.loss_ratio" in field_names(Scenario)


def test_what_is_missing_is_said_without_the_whole_document() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_broker({"mqtt_port": 1883}, "b.toml")
    said = "b.toml: name is missing, but accepted is: a document with the field name."
    assert str(caught.value) == said


def test_of_many_brokers_a_few_are_named_and_the_rest_is_counted() -> None:
    said = of_scenario(
        {
            "topology": {"kind": "full-mesh", "brokers": 40},
            "workload": {
                "publisher": [{"broker": "Kyoto", "topic": "a"}],
                "subscriber": [{"broker": "b01", "topic": "a"}],
            },
        }
    )
    assert said.endswith("one of b01, b02, b03, b04, b05, b06, b07, b08 and 32 more.")
    assert some_of(["a", "b"], 2) == "a, b"
    assert some_of(["a", "b", "c"], 2) == "a, b and 1 more"


def test_one_of_ends_with_a_question_only_if_something_is_near() -> None:
    assert one_of(["fifo", "rl"], "magic") == "one of fifo, rl"
    assert one_of(["fifo", "rl"], "fifi") == "one of fifo, rl. Did you mean 'fifo'?"
    assert one_of(["fifo"], 3) == "one of fifo"


def test_a_file_that_is_not_there_is_named_with_who_named_it() -> None:
    said = "x.gml: No such file or directory (named by s.toml: topology.path)."
    assert str(FileError("x.gml", "No such file or directory", "s.toml: topology.path")) == said


@pytest.mark.parametrize(
    ("field", "parameter"),
    [
        ("links.loss_ratio", "links.loss_ratio"),
        ("faults.schedule[2].broker", "faults.schedule"),
        ("brokers", "topology.brokers"),
        ("run.seconds", None),
    ],
)
def test_a_fault_is_laid_to_the_parameter_that_brought_it_in(
    field: str, parameter: str | None
) -> None:
    parameters = {"links.loss_ratio": 2, "faults.schedule": [], "topology.brokers": 0}
    assert culprit(field, parameters) == parameter
