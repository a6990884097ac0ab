"""A file that is for another command is said to be."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidings.core.errors import TidingsError
from tidings.files.document_kinds import MARKS, Kind, check_kind
from tidings.files.toml import read_toml
from tidings.live.config import BrokerFile
from tidings.live.config import parse as parse_broker
from tidings.pipeline.sweep.grid import _Document, read_spec
from tidings.scenarios.read import parse as parse_scenario
from tidings.sim.scenario import Scenario

PROJECT = Path(__file__).parents[2]
BROKER = {"name": "n1", "broker": {"strategy": "d-tree"}, "run": "live"}
KINDS: dict[Kind, type[msgspec.Struct]] = {
    "a scenario": Scenario,
    "a broker's configuration": BrokerFile,
    "a sweep": _Document,
}


def said(run: Any, *arguments: Any) -> str:
    with pytest.raises(TidingsError) as caught:
        run(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mark_is_a_field_of_its_kind_and_no_mark_of_another(kind: Kind) -> None:
    marks = MARKS[kind].fields
    assert marks <= set(KINDS[kind].__struct_fields__)
    assert not any(marks & other.fields for name, other in MARKS.items() if name != kind)


@pytest.mark.parametrize("file", sorted((PROJECT / "scenarios").glob("*.toml")), ids=str)
def test_a_scenario_is_no_broker_and_no_sweep(file: Path) -> None:
    check_kind(read_toml(file), "a scenario", "x")
    named = f"{file} is a scenario, for `tidings simulate` and `tidings up`; here"
    assert said(parse_broker, read_toml(file), str(file)).startswith(named)
    assert said(read_spec, file) == f"{named} a sweep is needed."


def test_a_broker_is_no_scenario_and_no_sweep(tmp_path: Path) -> None:
    named = "b.toml is a broker's configuration, for `tidings broker`; here a scenario is needed."
    assert said(parse_scenario, BROKER, "b.toml", ".") == named
    assert said(parse_scenario, {"name": "n1"}, "b.toml", ".") == named
    (tmp_path / "b.toml").write_text('name = "n1"\nmqtt_port = 1\n')
    assert "is a broker's configuration" in said(read_spec, tmp_path / "b.toml")


@pytest.mark.parametrize("file", sorted((PROJECT / "studies").glob("*.toml")), ids=str)
def test_a_study_is_no_scenario(file: Path) -> None:
    check_kind(read_toml(file), "a sweep", "x")
    assert " is a sweep, for `tidings sweep`" in said(parse_scenario, read_toml(file), "s", ".")


def test_one_stray_field_does_not_make_another_kind_of_a_file() -> None:
    check_kind({"topology": {}, "name": "mesh"}, "a scenario", "x")
    check_kind({}, "a scenario", "x")
