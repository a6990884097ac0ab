"""A network made of a learned model behaves as it says, and the past can be had again."""

from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.link_models import a_link, a_model_file
from support.scenarios import a_scenario
from support.traces import tables_of, write_tables

from tidings.core.errors import ConfigError, FileError
from tidings.core.links.conditions import Conditions
from tidings.core.trace import TABLES, Acknowledged, Forwarded, Probed, Row
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate
from tidings.traces.schemas import arrow_schema

LINKS_MS = [["a", "b", 20], ["b", "c", 30], ["a", "c", 60]]
DAY_S = 86_400.0


def on(links: dict[str, Any], seconds: float = DAY_S, **changes: Any) -> Scenario:
    """Three brokers whose links are as a model or the past says."""
    topology = {"kind": "listed", "links_ms": LINKS_MS}
    dotted = {"run.seconds": seconds, "workload.topics": 2} | changes
    return a_scenario(dotted, topology=topology, links=links)


def weather_of(scenario: Scenario) -> dict[tuple[str, str], Conditions]:
    return set_up(scenario).conditions


def modelled(path: Path, *links: Any, slice_s: float = 10.0, **changes: Any) -> Scenario:
    return on({"model": str(a_model_file(path, *links, slice_s=slice_s))}, **changes)


def available(link: Conditions, length_s: float = DAY_S) -> float:
    down_s = sum(min(end, length_s) - start for start, end in link.outages if start < length_s)
    return 1 - down_s / length_s


def test_delays_are_those_of_the_gamma_and_change_with_every_slice(tmp_path: Path) -> None:
    scenario = modelled(tmp_path / "m.parquet", a_link("a", "b"))
    link = weather_of(scenario)["a", "b"]
    drawn = np.array([delay_s for _, delay_s in link.delay_steps])
    assert [at for at, _ in link.delay_steps[:3]] == [0.0, 10.0, 20.0]
    assert drawn.mean() == pytest.approx(0.030, rel=0.02)
    assert drawn.var() == pytest.approx(4 * 0.005**2, rel=0.06)
    assert drawn.min() > 0.010
    assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0.0, abs=0.05)
    assert set_up(scenario).overlay.delay_s("a", "b") == 0.030  # deadlines are made of the mean


def test_deviations_persist_as_they_were_measured(tmp_path: Path) -> None:
    link = weather_of(modelled(tmp_path / "m.parquet", a_link("a", "b", persistence=0.8)))["a", "b"]
    drawn = np.array([delay_s for _, delay_s in link.delay_steps])
    assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0.8, abs=0.05)
    assert drawn.mean() == pytest.approx(0.030, rel=0.05)


def test_hours_have_their_factor(tmp_path: Path) -> None:
    factors = (2.0,) * 12 + (0.5,) * 12
    scenario = modelled(tmp_path / "m.parquet", a_link("a", "b", hourly_factors=factors))
    drawn = np.array(weather_of(scenario)["a", "b"].delay_steps)
    morning = drawn[drawn[:, 0] < DAY_S / 2, 1].mean()
    evening = drawn[(drawn[:, 0] >= DAY_S / 2) & (drawn[:, 0] < DAY_S), 1].mean()
    assert (morning, evening) == pytest.approx((0.060, 0.015), rel=0.05)


def test_hours_have_their_factor_where_no_distribution_is_known(tmp_path: Path) -> None:
    factors = (2.0,) * 12 + (0.5,) * 12
    unknown: dict[str, Any] = {"delay_shift_s": None, "delay_shape": None, "delay_scale_s": None}
    link = a_link("a", "b", hourly_factors=factors, **unknown)
    plain = a_link("b", "c", **unknown)
    weather = weather_of(modelled(tmp_path / "m.parquet", link, plain))
    found = {delay_s for at, delay_s in weather["a", "b"].delay_steps if at < DAY_S}
    assert found == {0.060, 0.015}
    assert (weather["b", "c"].delay_s, weather["b", "c"].delay_steps) == (0.030, ())


def test_outages_have_the_learned_length_and_part_of_the_time(tmp_path: Path) -> None:
    failing = a_link("b", "a", availability=0.8, outages=9, outage_mean_s=40.0)
    link = weather_of(modelled(tmp_path / "m.parquet", failing))["a", "b"]
    lengths = [end - start for start, end in link.outages]
    assert np.mean(lengths) == pytest.approx(40.0, rel=0.15)
    assert available(link) == pytest.approx(0.8, abs=0.03)


def test_links_of_a_group_fail_together_and_others_by_themselves(tmp_path: Path) -> None:
    failing = {"availability": 0.8, "outages": 9, "outage_mean_s": 40.0}
    links = [a_link("a", "b", group=1, **failing), a_link("b", "c", group=1, **failing)]
    links.append(a_link("a", "c", **failing))
    weather = weather_of(modelled(tmp_path / "m.parquet", *links))
    assert weather["a", "b"].outages == weather["b", "c"].outages
    assert weather["a", "b"].outages != weather["a", "c"].outages


def test_what_the_model_does_not_know_stays_as_written(tmp_path: Path) -> None:
    known = a_link("a", "b", delivery_ratio=0.9, transfer_mean_s_per_kilobyte=0.008)
    vague = a_link("b", "c", delivery_ratio=None, availability=None, outages=None)
    model = a_model_file(tmp_path / "m.parquet", known, vague)
    written = {"model": str(model), "loss_ratio": 0.05, "failure_probability": 0.1}
    weather = weather_of(on(written | {"rate_kbit_per_s": 800.0}))
    ab, bc, ac = weather["a", "b"], weather["b", "c"], weather["a", "c"]
    assert (ab.loss_ratio, ab.failure_probability) == (pytest.approx(0.1), 0.0)
    assert (ab.s_per_byte, ab.rate_bytes_per_s) == (pytest.approx(8e-6), float("inf"))
    assert (bc.loss_ratio, bc.failure_probability) == (0.05, 0.1)
    assert (bc.s_per_byte, bc.rate_bytes_per_s) == (0.0, 100_000.0)
    assert (ac.delay_s, ac.delay_steps, ac.loss_ratio) == (0.060, (), 0.05)


def test_pinned_estimates_are_the_models_long_run_truth(tmp_path: Path) -> None:
    link = a_link("a", "b", delivery_ratio=0.9, availability=0.8, outage_mean_s=9.0, outages=3)
    scenario = modelled(tmp_path / "m.parquet", link)
    known = set_up(scenario).estimates("b")["a"]
    assert known is not None
    assert (known.delay_s, known.availability) == (0.030, 0.8)
    assert known.delivery_ratio == pytest.approx(0.72)


def test_strangers_stand_for_each_other_in_order_and_it_is_said(tmp_path: Path) -> None:
    model = [a_link("h0", "h1", delay_mean_s=0.04), a_link("h2", "h1", delay_mean_s=0.05)]
    scenario = modelled(tmp_path / "m.parquet", *model)
    overlay = set_up(scenario).overlay
    assert [overlay.delay_s(*ends) for ends in ("ab", "bc", "ac")] == [0.04, 0.05, 0.06]
    assert "so a is h0 and so on in order; 2 of 3 links" in set_up(scenario).courses.description


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="with 3 hosts to stand for them; it has 2"):
        set_up(modelled(tmp_path / "m.parquet", a_link("h0", "h1")))
    with pytest.raises(ConfigError, match="at least one of the links of this overlay"):
        set_up(modelled(tmp_path / "n.parquet", a_link("a", "z")))
    with pytest.raises(FileError, match=r"^nowhere.parquet: No such file .*: links.model\)"):
        set_up(on({"model": "nowhere.parquet"}))
    model = a_model_file(tmp_path / "o.parquet", a_link("a", "b"))
    with pytest.raises(ConfigError, match=r"empty, as links.model says how links behave"):
        set_up(on({"model": str(model), "replay": "traces"}))


def test_delays_are_told_by_a_model_or_by_slots_not_by_both(tmp_path: Path) -> None:
    slow = {"faults.slots.probability": 0.1, "faults.slots.delay_ms": 100.0}
    with pytest.raises(ConfigError, match=r"slots\.delay_ms is 100.*change by themselves"):
        set_up(modelled(tmp_path / "m.parquet", a_link("a", "b", delay_mean_s=0.05), **slow))


def test_the_digest_follows_what_is_in_the_model_and_not_where_it_is(tmp_path: Path) -> None:
    one = modelled(tmp_path / "one.parquet", a_link("a", "b"))
    copy = modelled(tmp_path / "copy.parquet", a_link("a", "b"))
    other = modelled(tmp_path / "other.parquet", a_link("a", "b", delivery_ratio=0.9))
    assert set_up(one).digest == set_up(copy).digest
    assert set_up(one).digest != set_up(other).digest


# ---- the past

TRACED = {
    "run.seconds": 300.0,
    "run.start_s": 1.0,
    "broker.trace": "hops",
    "broker.estimates": "measured",
    "broker.exhausted": "drop",
}
FAULTS = [{"link": ["a", "b"], "from_s": 100.0, "to_s": 140.0}]


def traced(folder: Path, scenario: Scenario) -> Path:
    """The scenario's rows as files."""
    batches: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
    simulate(set_up(scenario), "yesterday", lambda table, batch: batches[table].append(batch))
    tables = {t: pa.Table.from_batches(b, arrow_schema(TABLES[t])) for t, b in batches.items()}
    return write_tables(folder, tables)


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Delays that change every 10 s, an outage of 40 s, and a broker that is away for 20 s."""
    folder = tmp_path_factory.mktemp("yesterday")
    model = a_model_file(folder / "m.parquet", *(a_link(a, b) for a, b, _ in LINKS_MS))
    broken = [*FAULTS, {"broker": "c", "from_s": 200.0, "to_s": 220.0}]
    links = {"model": str(model)}
    return traced(folder, on(links, **TRACED, **{"faults.schedule": broken}))


def test_the_past_has_the_delays_it_had(yesterday: Path) -> None:
    model = {"model": str(yesterday / "m.parquet")}
    then = weather_of(on(model, **TRACED))["b", "c"]
    again = weather_of(on({"replay": str(yesterday)}, **TRACED))["b", "c"]
    truth = dict(then.delay_steps)
    compared = [
        (delay_s, truth[at - at % 10.0])
        for at, delay_s in again.delay_steps
        if 1.0 < at % 10.0 < 8.0  # a round trip over the edge of a slice has a half of each
    ]
    assert len(compared) > 100
    assert all(delay_s == pytest.approx(true_s, rel=1e-6) for delay_s, true_s in compared)


def test_the_past_has_the_outages_it_had(yesterday: Path) -> None:
    weather = weather_of(on({"replay": str(yesterday)}, **TRACED))
    ((start, end),) = weather["a", "b"].outages
    assert start == pytest.approx(100.0, abs=3.0)
    assert end == pytest.approx(140.0, abs=3.0)
    ((start, end),) = weather["a", "c"].outages  # c was away
    assert start == pytest.approx(200.0, abs=3.0)
    assert end == pytest.approx(220.0, abs=3.0)


def test_another_strategy_can_be_asked_about_yesterday(yesterday: Path) -> None:
    replayed = {"replay": str(yesterday)}
    asked = on(replayed, **TRACED, **{"broker.strategy": "flooding"})
    tree, flood = simulate(set_up(on(replayed, **TRACED))), simulate(set_up(asked))
    assert flood.deliveries >= tree.deliveries
    assert flood.hops > tree.hops


def test_the_past_of_other_brokers_is_refused(yesterday: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only links of a, b, c"):
        set_up(a_scenario(links={"replay": str(yesterday)}))
    with pytest.raises(ConfigError, match=r'a run with .broker. trace = "hops"'):
        set_up(on({"replay": str(tmp_path)}))


# ---- a past made by hand


def probes(a: str, b: str, *down: tuple[float, float], length_s: float = 300.0) -> Iterator[Row]:
    """One every 5 s, answered after 40 ms unless the link is down."""
    for sent_at in np.arange(0.0, length_s, 5.0).tolist():
        if any(start <= sent_at < end for start, end in down):
            yield Probed(sent_at + 1.0, a, b, nan)
        else:
            yield Probed(sent_at + 0.04, a, b, 0.04)


def repeated(a: str, b: str, down: tuple[float, float]) -> Iterator[Row]:
    """A message every 2 s, repeated after 1 s until it is answered, which it finally always is."""
    transmission = 0
    for first_at in np.arange(0.0, 300.0, 2.0).tolist():
        transmission, at, attempt = transmission + 1, first_at, 1
        while down[0] <= at < down[1]:
            yield Forwarded(at, a, transmission, b, transmission, attempt, 1, 100)
            at, attempt = at + 1.0, attempt + 1
        yield Forwarded(at, a, transmission, b, transmission, attempt, 1, 100)
        yield Acknowledged(at + 0.04, a, b, transmission, 0.04)


def after(folder: Path, *rows: Row) -> dict[tuple[str, str], Conditions]:
    """The weather of a run on the past that these rows tell."""
    write_tables(folder, tables_of({"yesterday": rows}))
    return weather_of(on({"replay": str(folder)}, **TRACED))


def test_a_message_that_was_repeated_until_it_arrived_hides_no_outage(tmp_path: Path) -> None:
    weather = after(tmp_path, *repeated("a", "b", (100.0, 140.0)))
    ((start, end),) = weather["a", "b"].outages
    assert (start, end) == pytest.approx((100.0, 140.0), abs=1.1)
    assert {delay_s for _, delay_s in weather["a", "b"].delay_steps} == {0.02}


def test_rows_that_were_copied_make_no_outage_of_losses(tmp_path: Path) -> None:
    lost = list(probes("a", "b", (100.0, 110.0)))  # two probes: too few for an outage
    tables = tables_of({"yesterday": lost})
    write_tables(tmp_path, tables, "copy")
    assert after(tmp_path, *lost)["a", "b"].outages == ()


def test_a_link_that_never_answered_is_dead_in_the_replay(tmp_path: Path) -> None:
    rows = [*probes("a", "b", (0.0, 1e9)), *probes("b", "c")]
    weather = after(tmp_path, *rows)
    ((start, end),) = weather["a", "b"].outages
    assert (start, end) == pytest.approx((0.0, 296.0))
    assert weather["a", "b"].delay_s == 0.020  # as the scenario says
    replayed = {"replay": str(tmp_path), "failure_probability": 0.5}
    pinned = on(replayed, **TRACED | {"broker.estimates": "pinned", "run.seconds": 20.0})
    estimate = set_up(pinned).estimates("a")["b"]
    assert estimate is not None
    assert estimate.availability == 0.0
    assert simulate(set_up(pinned)).deliveries > 0  # by way of c, or by the link beside it


def test_a_clock_that_was_set_back_makes_no_outage(tmp_path: Path) -> None:
    rows = list(probes("a", "b"))
    rows[20:24] = [Probed(row.recorded_at, "a", "b", -0.5) for row in rows[20:24]]
    assert after(tmp_path, *rows)["a", "b"].outages == ()


def test_a_past_without_a_column_is_refused_by_its_name(tmp_path: Path) -> None:
    write_tables(tmp_path, tables_of({"yesterday": probes("a", "b")}))
    file = tmp_path / "probed" / "rows.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["round_trip_s"]), file)
    with pytest.raises(ConfigError, match="has no column round_trip_s"):
        set_up(on({"replay": str(tmp_path)}))
