"""An overlay is built from its kind and parameters, and mistakes are named."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.core.errors import ConfigError, FileError
from tidings.core.rng import Draws
from tidings.core.topology import (
    TransitStub,
    from_round_trips,
    layered,
    random_degree,
    transit_stub,
)
from tidings.scenarios.network_files import read_map, read_round_trips
from tidings.scenarios.overlay import GENERATORS, build

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize("kind", GENERATORS)
def test_every_kind_can_be_built_from_its_defaults(kind):
    overlay = build(kind, {}, Draws(7), "mesh.toml", folder=SCENARIOS)
    assert overlay.is_connected()
    assert build(kind, {}, Draws(7), "mesh.toml", folder=SCENARIOS) == overlay


def test_building_takes_the_parameters_given():
    built = build("random-degree", {"brokers": 8, "degree": 3, "delay_ms": [1, 2]}, Draws(4), "s")
    assert built == random_degree(8, 3, Draws(4), (1.0, 2.0))
    built = build("layered", {"layer_sizes": [2, 3]}, Draws(4), "s")
    assert built == layered((2, 3), Draws(4))
    built = build("transit-stub", {"nodes_per_stub": 5}, Draws(4), "s")
    assert built == transit_stub(TransitStub(nodes_per_stub=5), Draws(4))


@pytest.mark.parametrize(
    ("kind", "parameters", "field", "value"),
    [
        ("ring", {}, "kind", "ring"),
        ("full-mesh", {"broker": 5}, "broker", 5),
        ("harmony", {"brokers": 5}, "brokers", 5),
        ("full-mesh", {"brokers": "five"}, "brokers", "five"),
        ("full-mesh", {"brokers": 2.5}, "brokers", 2.5),
        ("full-mesh", {"brokers": True}, "brokers", True),
        ("full-mesh", {"brokers": 0}, "brokers", 0),
        ("full-mesh", {"brokers": 10**9}, "brokers", 10**9),
        ("full-mesh", {"delay_ms": [1]}, "delay_ms", [1]),
        ("full-mesh", {"delay_ms": [1, "2"]}, "delay_ms[1]", "2"),
        ("full-mesh", {"delay_ms": [5, 1]}, "delay_ms", (5.0, 1.0)),
        ("random-degree", {"brokers": 4, "degree": 4}, "degree", 4),
        ("layered", {"layer_sizes": [4, 0]}, "layer_sizes[1]", 0),
        ("transit-stub", {"stub_link_probability": 1.5}, "stub_link_probability", 1.5),
        ("gml", {"detour_factor": 0.5}, "detour_factor", 0.5),
        ("rtt", {"hosts": 500}, "hosts", 500),
    ],
)
def test_bad_parameters_are_named_with_source_field_and_value(kind, parameters, field, value):
    with pytest.raises(ConfigError) as caught:
        build(kind, parameters, Draws(1), "bad.toml", folder=SCENARIOS)
    assert caught.value.source == "bad.toml"
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize("name", ["a/b", "a b", "../x", ""])
def test_a_name_that_would_break_subscription_ids_is_refused(name):
    with pytest.raises(ConfigError) as caught:
        build("listed", {"links_ms": [[name, "b", 1.0]]}, Draws(1), "bad.toml")
    assert "without `/`" in caught.value.accepted


# ---- files of networks


def test_the_shipped_round_trips_are_found_beside_the_scenario() -> None:
    measured = pq.read_table(SCENARIOS / "data" / "seattle_rtt_20x50.parquet")
    moving = from_round_trips(measured, 7, Draws(3), slice_s=5.0)
    assert moving == build("rtt", {"hosts": 7, "slice_s": 5}, Draws(3), "s", folder=SCENARIOS)


def test_a_missing_map_is_refused_by_name() -> None:
    with pytest.raises(FileError, match=r"nowhere\.gml: No such file .*named by s\.path"):
        read_map(SCENARIOS / "nowhere.gml", "s")


def test_a_file_that_is_no_table_of_round_trips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Parquet"):
        read_round_trips(SCENARIOS / "mesh20.toml", "s")
    with pytest.raises(FileError, match=r"nowhere\.parquet: No such file .*named by s\.path"):
        read_round_trips(tmp_path / "nowhere.parquet", "s")
    pq.write_table(pa.table({"slice": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ConfigError, match="slice, source, target, rtt_ms"):
        build("rtt", {"path": "other.parquet"}, Draws(1), "s", folder=tmp_path)
