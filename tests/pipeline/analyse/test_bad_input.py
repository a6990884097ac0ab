"""Bad trace files are named and counted, and cost no good row."""

import shutil
from io import StringIO
from math import nan
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from support.segments import a_moment, live_folder, rows_in, write_segment
from support.traces import (
    a_delivery,
    a_drop,
    a_publication,
    a_wish,
    some_frames,
    tables_of,
    write_tables,
)

from tidings.cli.screens.analysis import show
from tidings.core.errors import ConfigError, TidingsError
from tidings.core.trace import LinkChanged, Probed, Published
from tidings.pipeline.analyse import job
from tidings.pipeline.analyse.job import Analysis, analyse, write
from tidings.pipeline.analyse.spark_settings import (
    BROADCAST_BELOW,
    FALLBACK,
    LARGE_BYTES,
    LITTLE_PLANNING,
    ONE_TASK,
    PARTITIONS,
    SMALL_BYTES,
    TINY_BYTES,
    settings_for_size,
    temporary_settings,
)
from tidings.pipeline.trace_frames import Traces, read_intake, read_traces
from tidings.pipeline.transforms import served
from tidings.pipeline.transforms.linkload import per_link
from tidings.pipeline.transforms.outcomes import examined
from tidings.studies.figures.delays import draw_delays
from tidings.traces import compaction
from tidings.traces.compaction import compact
from tidings.traces.headline import read_tables
from tidings.traces.intake import check_columns, read_through, take_in
from tidings.traces.schemas import arrow_schema

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = arrow_schema(Published)
X = "b2/x:t"


def published(folder: Path, number: int = 0) -> Path:
    return folder / "published" / f"live-b1-{number:06}.parquet"


def rewritten(file: Path, rows: pa.Table) -> Path:
    pq.write_table(rows, file)
    return file


def cut_off(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return file


def emptied(file: Path) -> Path:
    file.write_bytes(b"")
    return file


def foreign(file: Path) -> Path:
    return rewritten(file, pa.table({"price": [1.0], "city": ["Delft"]}))


def of_another_version(file: Path) -> Path:
    return rewritten(file, pq.read_table(file).replace_schema_metadata({"tidings": "9"}))


def without_a_column(file: Path) -> Path:
    return rewritten(file, pq.read_table(file).drop_columns(["attributes"]))


def with_a_column_of_texts(file: Path) -> Path:
    rows = pq.read_table(file)
    texts = rows["recorded_at"].cast(pa.string())
    number = rows.schema.get_field_index("recorded_at")
    return rewritten(file, rows.set_column(number, "recorded_at", texts))


BAD = {
    cut_off: "file is",
    emptied: "file is",
    foreign: "the version of its trace rows is 'none'",
    of_another_version: "the version of its trace rows is '9'",
    without_a_column: "column attributes is 'missing'",
    with_a_column_of_texts: "column recorded_at is 'string'",
}


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_bad_file_is_quarantined_and_the_others_are_read(spoil, tmp_path: Path) -> None:
    bad = spoil(published(live_folder(tmp_path), 2))
    found = take_in(tmp_path)
    (one,) = found.quarantined
    assert (one.table, one.file) == ("published", str(bad))
    assert BAD[spoil] in one.reason
    assert len(found.files["published"]) == 5
    assert len(found.files["delivered"]) == 6


def test_a_folder_with_nothing_good_in_it_is_an_error(tmp_path: Path) -> None:
    for file in live_folder(tmp_path).rglob("*.parquet"):
        cut_off(file)
    with pytest.raises(ConfigError, match="a whole Parquet file of trace rows"):
        take_in(tmp_path)


def test_a_file_of_another_table_is_quarantined(tmp_path: Path) -> None:
    live_folder(tmp_path)
    stray = tmp_path / "delivered" / "stray.parquet"
    shutil.copy(published(tmp_path), stray)
    (one,) = take_in(tmp_path).quarantined
    assert one.file == str(stray)
    assert "column age_s is 'missing'" in one.reason


def test_a_copied_folder_is_read_once(tmp_path: Path) -> None:
    before = {t: rows_in(rows) for t, rows in read_tables(live_folder(tmp_path)).items()}
    for table in ("published", "delivered"):
        shutil.copytree(tmp_path / table, tmp_path / table / "backup")
        for number, file in enumerate(sorted((tmp_path / table / "backup").iterdir())):
            file.rename(file.with_name(f"other-{number}.parquet"))
    found = take_in(tmp_path)
    assert len(found.quarantined) == 12
    assert all(one.reason.startswith("a copy: its rows are in") for one in found.quarantined)
    assert {t: rows_in(rows) for t, rows in read_tables(tmp_path).items()} == before


def test_segments_of_equal_size_with_other_rows_are_no_copies(tmp_path: Path) -> None:
    for number in range(3):
        rows = pq.read_table(write_segment(tmp_path / "made", "r", "b1", 0, a_moment(number))[0])
        file = tmp_path / "traces" / "published" / f"r-b1-{number:06}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file, compression="none", use_dictionary=False)
    sizes = {file.stat().st_size for file in (tmp_path / "traces").rglob("*.parquet")}
    assert len(sizes) == 1
    assert len(take_in(tmp_path / "traces").files["published"]) == 3


def test_a_folder_gathered_twice_in_other_ways_is_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    live_folder(one)
    shutil.copytree(one, other)
    published(other, 0).unlink()  # the first is only in one,
    compact(one, 0.0, 2e9)
    write_segment(other, "live", "b1", 6, a_moment(6))
    compact(other, 0.0, 2e9)  # the sixth only in the other
    shutil.copytree(other / "published" / "run=live", one / "published" / "run=other")
    (twice,) = [q for q in take_in(one).quarantined if "shares 4 of its segments" in q.reason]
    assert twice.table == "published"
    with pytest.raises(ConfigError, match="gathered twice"):
        read_tables(one)


def test_a_sweep_with_a_bad_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / "x.parquet").write_bytes(b"no point")
    live_folder(tmp_path)
    with pytest.raises(ConfigError, match=r"x\.parquet"):
        take_in(tmp_path)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file that is cut off, and one whose pages are not what its footer says."""
    folder = live_folder(tmp_path_factory.mktemp("broken"))
    cut_off(published(folder, 0))
    broken_inside(published(folder, 2))
    return folder


@pytest.fixture(scope="module")
def analysis(spark: SparkSession, broken: Path) -> Analysis:
    return analyse(spark, broken, window_s=2.0)


def test_broken_pages_behind_a_good_footer_are_found_by_reading(
    analysis: Analysis, broken: Path
) -> None:
    check_columns("published", published(broken, 2))  # the footer tells nothing
    bad = [str(published(broken, number)) for number in (0, 2)]
    assert list(analysis.quarantined["file"]) == bad
    assert len(read_through(broken).quarantined) == 2


def test_what_is_good_is_counted_once(analysis: Analysis) -> None:
    assert analysis.strategies["publications"].sum() == 8
    assert list(analysis.windows["window_at"]) == [0.0, 2.0, 4.0]
    assert list(analysis.windows["expected"]) == [2, 2, 4]
    levels = {"subscriber-topic", "subscriber", "topic", "system"}
    assert set(analysis.reliability["level"]) == levels


def test_a_person_is_told_what_was_not_read(analysis: Analysis, broken: Path) -> None:
    said = StringIO()
    show(Console(file=said, width=200), analysis, broken)
    for number in (0, 2):
        assert f"Not read: {published(broken, number)}: file is" in said.getvalue()
    assert "Read 1 run from" in said.getvalue()


def test_an_analysis_finds_what_was_gathered_while_it_began(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = take_in(live_folder(tmp_path))
    compact(tmp_path, 0.0, 2e9)
    assert analyse(spark, tmp_path, intake=before).strategies["publications"].sum() == 12


def test_an_analysis_goes_on_while_one_table_after_the_other_is_gathered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = live_folder(tmp_path / "live")
    gathered = shutil.copytree(folder, tmp_path / "gathered")
    compact(gathered, 0.0, 2e9)
    waiting = ["published", "delivered"]

    def read(*arguments: Any) -> Traces:
        if waiting:
            table = waiting.pop()
            shutil.rmtree(folder / table)
            shutil.copytree(gathered / table, folder / table)
        return read_intake(*arguments)

    monkeypatch.setattr(job, "read_intake", read)
    assert analyse(spark, folder).strategies["delivered"].sum() == 12
    assert not waiting


def test_an_error_that_no_file_explains_is_told_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tries = live_folder(tmp_path), list[int]()

    def fail(*arguments: Any) -> Traces:
        tries.append(1)
        write_segment(folder, "live", "b1", 10 + len(tries), a_moment(20))  # brokers go on
        raise MemoryError("no room left")

    monkeypatch.setattr(job, "read_intake", fail)
    with pytest.raises(TidingsError, match=r"could not analyse .*: no room left"):
        analyse(spark, folder)
    assert len(tries) == 1


def test_segments_go_when_all_tables_are_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = sorted(live_folder(tmp_path).rglob("*.parquet"))
    gather, seen = compaction._gather, []

    def looked(*arguments: Any) -> Any:
        seen.append(all(file.exists() for file in segments))
        return gather(*arguments)

    monkeypatch.setattr(compaction, "_gather", looked)
    compact(tmp_path, 0.0, 2e9)
    assert seen == [True, True]
    assert sum(file.exists() for file in segments) == 2  # the newest


def test_a_person_can_read_names_with_brackets(analysis: Analysis, tmp_path: Path) -> None:
    said, odd = StringIO(), ("a/[/b]", "a/[b]")
    rows = [*analysis.topics.to_dict("records") * 2]
    topics = pd.DataFrame([row | {"topic": name} for row, name in zip(rows, odd, strict=True)])
    drops = pd.DataFrame([{"run": n, "strategy": "s", "reason": "r", "count": 1} for n in odd])
    named = msgspec.structs.replace(analysis, topics=topics, drops=drops)
    show(Console(file=said, width=200), named, tmp_path / "[/traces]")
    for text in ("a/[/b] ", "a/[b] ", "a/[/b], s, dropped", "a/[b], s, dropped", "[/traces]."):
        assert text in said.getvalue()


def broken_inside(file: Path) -> Path:
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    ("size_bytes", "wanted"),
    [
        (1000, LITTLE_PLANNING | ONE_TASK),
        (TINY_BYTES, LITTLE_PLANNING),
        (SMALL_BYTES, {}),
        (LARGE_BYTES, {BROADCAST_BELOW: "-1"}),
    ],
)
def test_settings_fit_the_size_of_a_folder_and_end_with_its_analysis(
    spark: SparkSession, size_bytes: int, wanted: dict[str, str]
) -> None:
    names = {*LITTLE_PLANNING, BROADCAST_BELOW, PARTITIONS, FALLBACK}
    usual = dict.fromkeys(LITTLE_PLANNING, "true") | {"spark.sql.codegen.factoryMode": "FALLBACK"}
    with temporary_settings(spark, usual):
        before = {name: spark.conf.get(name) for name in names}
        with settings_for_size(spark, size_bytes):
            during = {name: spark.conf.get(name) for name in names}
        assert wanted.items() <= during.items()
        assert (during == before) == (not wanted)
        assert {name: spark.conf.get(name) for name in names} == before


def test_a_clock_that_jumps_back_is_counted_and_does_not_bend_the_delays(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [a_wish(X, 0.6), *(a_publication(m, 1000.0 + m, (X,)) for m in range(10))]
    rows += [a_delivery(m, 1000.0 + m + 0.25, X) for m in range(8)]
    rows += [a_delivery(m, 900.0 + m, X) for m in (8, 9)]  # a hundred seconds too early
    traces = read_traces(spark, write_tables(tmp_path, tables_of({"run": rows})))
    (row,) = served.per_subscriber(examined(traces)).collect()
    assert (row.delivered, row.clock_jumps, row.on_time_ratio) == (10, 2, 1.0)
    assert row.delay_p50_s == pytest.approx(0.25)
    assert row.delay_p99_s == pytest.approx(0.5)  # the age that the messages told


def test_links_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    rows = [a_publication(1, 1.0, (X,)), a_drop(1, 1.2, "expired", "b2")]
    rows += [LinkChanged(0.0, "b1", "b2", True), LinkChanged(30.0, "b1", "b2", False)]
    rows += [LinkChanged(45.0, "b1", "b2", True), some_frames("data", 7), some_frames("ack", 2)]
    rows += [Probed(10.0, "b1", "b2", 0.03), Probed(20.0, "b1", "b2", nan)]
    traces = read_traces(spark, write_tables(tmp_path, tables_of({"run": rows})))
    (row,) = per_link(traces).collect()
    assert (row.broker, row.neighbour, row.downs) == ("b1", "b2", 1)
    assert row.up_ratio == pytest.approx(0.75)  # of the minute until the last row
    assert (row.data_frames, row.ack_bytes, row.gossip_frames) == (7, 200, 0)
    assert (row.asked, row.round_trip_mean_s) == (2, pytest.approx(0.03))
    assert row.unanswered_ratio == 0.5


def test_every_table_and_the_picture_of_delays_are_written(
    analysis: Analysis, tmp_path: Path
) -> None:
    names = {path.name for path in write(analysis, tmp_path)}
    assert names == {f"{name}.{kind}" for name in analysis.tables() for kind in ("csv", "parquet")}
    assert names >= {"links.csv", "quarantined.parquet", "lateness_cdf.csv", "costs.parquet"}
    picture = draw_delays(analysis, tmp_path / "delay.png")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
