"""Time in which the overlay was stopped tells nothing of its links."""

from collections.abc import Iterable
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.traces import Tables, a_publication, tables_of, write_tables

from tidings.core.links.model import LearnedLink
from tidings.core.trace import LinkChanged, Probed, Row
from tidings.pipeline.learn.job import learn
from tidings.pipeline.learn.measurements import checked_input
from tidings.pipeline.trace_frames import read_traces
from tidings.pipeline.transforms.links.spells import MOMENT_S, SILENT_S, UNUSUAL, spells

pytestmark = pytest.mark.xdist_group("spark")

DAY_S, NIGHT_S = 1200.0, 600.0
MORNINGS = (0.0, DAY_S + NIGHT_S, 2 * (DAY_S + NIGHT_S))
STOPS = {"a": DAY_S, "b": DAY_S - 2.0, "c": DAY_S - 4.0}  # after the morning: the last is a
OUTAGE = (MORNINGS[1] + 300.0, MORNINGS[1] + 360.0)  # of the link between a and b


def live(tables: Tables) -> Tables:
    return {name: _live(table) for name, table in tables.items()}


def _live(table: pa.Table) -> pa.Table:
    number = table.schema.get_field_index("world")
    world = pa.array(["live"] * table.num_rows, pa.string())
    return table.set_column(number, table.schema.field(number), world)


def probes(a: str, b: str, from_at: float, to_at: float, is_lost: bool = False) -> Iterable[Row]:
    """One every 5 s, none of which is answered while the link is down."""
    for sent_at in np.arange(from_at, to_at, 5.0).tolist():
        down = is_lost or ({a, b} == {"a", "b"} and OUTAGE[0] <= sent_at < OUTAGE[1])
        took_s = nan if down else 0.05
        yield Probed(sent_at + (1.0 if down else took_s), a, b, took_s)


def a_day(a: str, b: str, morning_at: float) -> Iterable[Row]:
    """A broker that starts, asks until it or its neighbour is stopped, and notes the latter."""
    mine, theirs = morning_at + STOPS[a], morning_at + STOPS[b]
    yield LinkChanged(morning_at, a, b, True)
    yield from probes(a, b, morning_at, min(mine, theirs) - 1.0)
    if theirs < mine:
        yield LinkChanged(theirs, a, b, False)


def pairs(names: str) -> list[tuple[str, str]]:
    return [(a, b) for a in names for b in names if a != b]


@pytest.fixture(scope="module")
def links(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LearnedLink]:
    days = [row for at in MORNINGS for pair in pairs("abc") for row in a_day(*pair, at)]
    killed = [  # nobody notes anything
        *probes("k", "l", 0.0, DAY_S),
        *probes("k", "l", MORNINGS[1], OUTAGE[0]),
        *probes("k", "l", *OUTAGE, is_lost=True),
        *probes("k", "l", OUTAGE[1], MORNINGS[1] + DAY_S),
    ]
    gone = [
        *probes("p", "q", 0.0, DAY_S),
        LinkChanged(DAY_S, "p", "q", False),
        LinkChanged(MORNINGS[1], "p", "q", True),
        *probes("p", "q", MORNINGS[1], MORNINGS[1] + DAY_S),
    ]
    served = [a_publication(n, DAY_S + 20.0 * n, (), broker="p") for n in range(int(NIGHT_S / 20))]
    folder = tmp_path_factory.mktemp("stops")
    write_tables(folder, live(tables_of({"days": days, "killed": killed})), "live")
    write_tables(folder, tables_of({"simulated": gone}), "sim")
    others = {"p": "v", "q": "w"}
    moved = [_renamed(row, others) for row in [*gone, *served]]
    write_tables(folder, live(tables_of({"served": moved})), "served")
    lesson = learn(spark, checked_input(folder, None, 0.2))
    return {link.source + link.target: link for link in lesson.links}


def _renamed(row: Row, names: dict[str, str]) -> Row:
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    changed = {n: names.get(v, v) if isinstance(v, str) else v for n, v in fields.items()}
    return type(row)(**changed)


def test_a_stopped_overlay_is_no_outage(links: dict[str, LearnedLink]) -> None:
    for pair in ("ac", "ca", "bc", "cb"):
        assert (links[pair].outages, links[pair].availability) == (0, 1.0)
        assert links[pair].delivery_ratio == 1.0
    assert {link.group for link in links.values()} == {None}


def test_what_really_failed_is_measured_by_the_time_that_was_watched(
    links: dict[str, LearnedLink],
) -> None:
    for pair, days in (("ab", 3), ("ba", 3), ("kl", 2)):
        assert links[pair].outages == 1
        assert links[pair].outage_mean_s == pytest.approx(60.0, abs=0.1)
        assert links[pair].availability == pytest.approx(1 - 60.0 / (days * DAY_S), abs=1e-3)


def test_a_link_that_was_gone_while_its_broker_went_on_was_out_of_order(
    links: dict[str, LearnedLink],
) -> None:
    for pair in ("pq", "vw"):  # in virtual time, and of a live broker that served its clients
        assert links[pair].outages == 1
        assert links[pair].outage_mean_s == pytest.approx(NIGHT_S, abs=0.1)


# ---- the spells themselves


def plain_spells(instants: list[float]) -> list[tuple[int, float, float]]:
    """The same without Spark: spell, after_at, end_at."""
    moments: dict[float, list[float]] = {}
    for at in sorted(instants):
        moments.setdefault(at // MOMENT_S, []).append(at)
    edges = [(min(moment), max(moment)) for moment in moments.values()]
    silent_s = [then[0] - before[1] for before, then in pairwise(edges)]
    usual_s = float(np.median(silent_s)) if silent_s else 0.0
    found = [(0, -inf, edges[0][1])]
    for length_s, (_, last_at) in zip(silent_s, edges[1:], strict=True):
        number, after_at, end_at = found[-1]
        if length_s > max(SILENT_S, UNUSUAL * usual_s):
            found.append((number + 1, end_at, last_at))
        else:
            found[-1] = (number, after_at, last_at)
    return found


def test_spells_are_those_of_a_plain_computation(spark: SparkSession, tmp_path: Path) -> None:
    drawn = np.random.default_rng(4)
    instants = {
        f"run{number:02}": np.cumsum(
            drawn.exponential(pace_s, 60) + (drawn.random(60) < 0.05) * drawn.choice([100.0, 4e4])
        ).tolist()
        for number, pace_s in enumerate(drawn.choice([1.0, 5.0, 60.0, 600.0], 40))
    }
    runs = {run: [Probed(at, "a", "b", 0.01) for at in found] for run, found in instants.items()}
    folder = write_tables(tmp_path, live(tables_of(runs)))
    found: dict[str, list[tuple[int, float, float]]] = {run: [] for run in runs}
    for row in spells(read_traces(spark, folder)).orderBy("run", "spell").collect():
        found[row.run].append((row.spell, row.after_at, row.end_at))
    expected = {run: plain_spells(at) for run, at in instants.items()}
    assert 60 < sum(map(len, expected.values())) < 200
    assert found == expected
