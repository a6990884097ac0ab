"""Links whose delay follows measurements: what a run, its estimates and its name make of it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.scenarios import outcome

from tidings.core.links.conditions import Conditions
from tidings.scenarios.read import load, parse
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
ROUND_TRIPS_MS = (100.0, 500.0, 60.0)  # of three slices


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numbers = range(1, len(ROUND_TRIPS_MS) + 1)
    rows = [
        {"slice": n, "source": 1, "target": 2, "rtt_ms": ROUND_TRIPS_MS[n - 1]} for n in numbers
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rtt.parquet")
    return tmp_path


def between_two(folder: Path, slice_s: float = 10.0, **broker: Any) -> Scenario:
    """A message a second from h1 to h2 for a minute: twice through the three slices."""
    document = {
        "run": {"start_s": 0.5, "seconds": 60.0, "drain_s": 3.0},
        "topology": {"kind": "rtt", "path": "rtt.parquet", "hosts": 2, "slice_s": slice_s},
        "broker": {"estimates": "pinned", "ack_timer": 10.0, **broker},
        "workload": {
            "publisher": [{"broker": "h1", "topic": "t", "phase_s": 0.0}],
            "subscriber": [{"broker": "h2", "topic": "t"}],
        },
    }
    return parse(document, "two.toml", str(folder))


def test_a_message_takes_the_delay_of_the_slice_in_which_it_is_sent(folder: Path) -> None:
    _, tables = outcome(between_two(folder))
    published = {row["message"]: row["recorded_at"] for row in tables["published"]}
    assert len(tables["delivered"]) == len(published) == 60
    for row in tables["delivered"]:
        sent_at = published[row["message"]]
        expected_s = ROUND_TRIPS_MS[int(sent_at // 10) % 3] / 2000
        assert row["recorded_at"] - sent_at == pytest.approx(expected_s)


def test_the_physics_has_the_steps_and_pinned_brokers_know_their_mean(folder: Path) -> None:
    scenario = between_two(folder)
    (link,) = set_up(scenario).conditions.values()
    steps = ((0.0, 0.05), (10.0, 0.25), (20.0, 0.03))
    assert link == Conditions(0.05, delay_steps=steps, repeat_s=30.0)
    known = set_up(scenario).estimates("h1")["h2"]
    assert known is not None
    assert known.delay_s == pytest.approx(0.11)


def test_measured_estimates_follow_the_steps(folder: Path) -> None:
    scenario = between_two(folder, estimates="measured", probe_every_s=0.5, trace="hops")
    _, tables = outcome(scenario)
    for number, rtt_ms in enumerate(ROUND_TRIPS_MS):
        end_at = 10.0 * (number + 1)
        late = [row for row in tables["probed"] if end_at - 2 <= row["recorded_at"] < end_at]
        assert late
        for row in late:
            assert row["round_trip_s"] == pytest.approx(rtt_ms / 1000)


def test_the_name_of_a_result_follows_the_length_of_a_slice(folder: Path) -> None:
    digests = {set_up(between_two(folder, slice_s)).digest for slice_s in (0.0, 10.0, 20.0)}
    assert len(digests) == 3
    assert set_up(between_two(folder, 10.0)).digest in digests


def test_the_name_of_a_result_follows_the_measurements(folder: Path) -> None:
    """Also one that changes neither the first delay nor the mean."""
    before = set_up(between_two(folder)).digest
    table = pq.read_table(folder / "rtt.parquet")
    swapped = pa.array([ROUND_TRIPS_MS[place] for place in (0, 2, 1)])
    pq.write_table(table.set_column(3, "rtt_ms", swapped), folder / "rtt.parquet")
    assert set_up(between_two(folder)).digest != before


@pytest.mark.parametrize(("name", "brokers", "moves"), [("att", 25, False), ("seattle", 20, True)])
def test_the_real_networks_run_as_shipped(name: str, brokers: int, moves: bool) -> None:
    short = {
        "run.seconds": 5,
        "run.start_s": 5,
        "run.drain_s": 10,
    }  # a crossing takes 8.6 s at most
    scenario = load(SCENARIOS / f"{name}.toml", short)
    overlay = set_up(scenario).overlay
    assert len(overlay.brokers) == brokers
    assert all(bool(link.delay_steps) is moves for link in overlay.links)
    result, _ = outcome(scenario)
    assert result.publications == 5 * scenario.workload.topics
    assert result.deliveries > result.publications
