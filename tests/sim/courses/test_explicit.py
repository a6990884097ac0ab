"""What is set explicitly holds, whatever a model knows; what it does not know is as written."""

from pathlib import Path
from typing import Any

import pytest
from support.link_models import a_link, a_model_file
from support.scenarios import SMALL

from tidings.core.errors import ConfigError
from tidings.core.links.conditions import Conditions
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario

LISTED = {"kind": "listed", "links_ms": [["a", "b", 20], ["b", "c", 30]]}
FAILING = {"availability": 0.5, "outages": 4, "outage_mean_s": 1.0}


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Of one link everything is known, of the other one only its delay."""
    known = a_link("a", "b", delivery_ratio=0.9, transfer_mean_s_per_kilobyte=0.008, **FAILING)
    vague = a_link("b", "c", delivery_ratio=None, availability=None, outages=None)
    return str(a_model_file(tmp_path / "m.parquet", known, vague))


def scenario(model: str, changes: dict[str, Any], **tables: Any) -> Scenario:
    links = {"loss_ratio": 0.05, "failure_probability": 0.01}
    document = SMALL | {"workload": {"topics": 2}, "topology": LISTED, "links": links} | tables
    return parse(document, "small.toml", "", {"links.model": model, **changes})


def link_of(model: str, **changes: Any) -> Conditions:
    dotted = {f"links.{name}": value for name, value in changes.items()}
    return set_up(scenario(model, dotted)).conditions["a", "b"]


def test_a_file_gives_way_to_a_model_and_what_is_set_beside_it_does_not(model: str) -> None:
    usual = link_of(model)
    assert (usual.loss_ratio, usual.failure_probability) == (pytest.approx(0.1), 0.0)
    assert usual.outages != ()
    failing = link_of(model, failure_probability=0.06)
    assert (failing.failure_probability, failing.outages) == (0.06, ())
    assert failing.loss_ratio == pytest.approx(0.1)  # by the model still
    losing = link_of(model, loss_ratio=0.3)
    assert (losing.loss_ratio, losing.outages) == (0.3, usual.outages)


def test_a_pace_that_is_set_replaces_the_models(model: str) -> None:
    assert link_of(model).s_per_byte == pytest.approx(8e-6)
    limited = link_of(model, rate_kbit_per_s=80.0)
    assert (limited.s_per_byte, limited.rate_bytes_per_s) == (0.0, 10_000.0)
    drawn = link_of(model, ms_per_kbyte=[5.0, 5.0])
    assert drawn.s_per_byte == pytest.approx(5e-6)


def test_delays_that_are_set_replace_the_models(tmp_path: Path) -> None:
    mesh = {"kind": "full-mesh", "brokers": 2}
    file = str(a_model_file(tmp_path / "m.parquet", a_link("h1", "h2")))
    modelled = set_up(scenario(file, {}, topology=mesh)).overlay.links[0]
    assert modelled.delay_s == 0.030
    chosen = scenario(file, {"topology.delay_ms": [70.0, 70.0]}, topology=mesh)
    (link,) = set_up(chosen).overlay.links
    assert (link.delay_s, link.delay_steps) == (pytest.approx(0.070), ())


def test_it_is_said_what_was_set_and_what_the_model_does_not_know(model: str) -> None:
    told = set_up(scenario(model, {})).courses.description
    assert told.endswith(
        "2 of 2 links are in it; not known of these, so as in the scenario: losses of 1, "
        "failures of 1, times per byte of 1"
    )
    changes = {"links.failure_probability": 0.5, "run.seconds": 3.0}
    told = set_up(scenario(model, changes)).courses.description
    assert "; as set explicitly: links.failure_probability; not known" in told
    assert "failures of" not in told


def test_two_values_that_are_set_are_two_setups(model: str) -> None:
    digests = {
        set_up(scenario(model, {"links.failure_probability": p})).digest for p in (0.0, 0.06, 0.5)
    }
    assert len(digests) == 3


def test_what_is_set_without_a_model_is_as_if_the_file_said_so(model: str) -> None:
    plain = {"topology": LISTED, "links": {"loss_ratio": 0.2}}
    written = parse(SMALL | plain, "small.toml", "")
    chosen = parse(SMALL | {"topology": LISTED}, "small.toml", "", {"links.loss_ratio": 0.2})
    assert set_up(written).digest == set_up(chosen).digest
    with pytest.raises(ConfigError, match="what is set beside the file"):
        parse(SMALL | {"explicit": ["links.loss_ratio"]}, "small.toml", "")
