"""Traces on Spark: those of any version give the same tables, and any Spark reads today's."""

import shutil
from collections.abc import Iterable
from math import inf
from pathlib import Path

import pandas as pd
import pytest
from msgspec.structs import astuple
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from support.older_traces import VERSION_2, version_1, written_today
from support.segments import live_folder

from tidings.core.trace import TABLES, LinkChanged, Published, Row
from tidings.pipeline.analyse.job import analyse
from tidings.pipeline.learn.measurements import checked_input
from tidings.pipeline.schemas import TRACE_TYPES
from tidings.pipeline.source.datasource import TraceOptions, TraceReader
from tidings.pipeline.trace_frames import read_intake, read_traces
from tidings.pipeline.transforms.audience import with_audience
from tidings.pipeline.transforms.windows import Timing, Window
from tidings.pipeline.watch.job import Watch, finished_windows
from tidings.traces.compaction import compact
from tidings.traces.headline import read_tables
from tidings.traces.live_files import TraceFiles
from tidings.traces.plain_parquet.empty_tables import write_empty_tables
from tidings.traces.points import POINT_SCHEMA
from tidings.traces.schemas import arrow_schema

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_today(tmp_path_factory.mktemp("today"))


def without_run(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns="run").reset_index(drop=True)


def run_names(traces: Path) -> set[str]:
    return set(read_tables(traces)["published"]["run"].to_pylist())


def _plain(row: Iterable[object]) -> str:
    return repr([list(value) if isinstance(value, tuple) else value for value in row])


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(repr(row) for row in frame.drop("run").collect())


def with_version_2(today: Path, folder: Path) -> Path:
    """Rows of version 2 and the same rows of today, in files of their own."""
    shutil.copytree(VERSION_2, folder)
    for file in today.rglob("older*.parquet"):
        (folder / file.parent.name).mkdir(exist_ok=True)
        (folder / file.parent.name / "three.parquet").write_bytes(file.read_bytes())
    return folder


def test_an_analysis_of_version_2_has_the_tables_of_one_of_today(
    spark: SparkSession, today: Path, tmp_path: Path
) -> None:
    """Both lie in one folder, and each run has its own part of a table."""
    folder = with_version_2(today, tmp_path / "traces")
    (before,), (now,) = (run_names(traces) for traces in (VERSION_2, today))
    assert before != now
    tables = analyse(spark, folder).tables()
    assert tables.pop("quarantined").empty
    for name, rows in tables.items():
        first, second = (without_run(rows[rows["run"] == run]) for run in (before, now))
        pd.testing.assert_frame_equal(first, second, obj=name)
        assert len(first) + len(second) == len(rows)
    assert len(tables["strategies"]) == 2


def test_files_of_several_versions_in_one_folder_are_read_together(
    spark: SparkSession, today: Path, tmp_path: Path
) -> None:
    folder = version_1(tmp_path / "traces")
    for file in VERSION_2.rglob("*.parquet"):
        (folder / file.parent.name / "two.parquet").write_bytes(file.read_bytes())
    for file in today.rglob("older*.parquet"):
        (folder / file.parent.name / "three.parquet").write_bytes(file.read_bytes())
    found, now = read_traces(spark, folder), read_traces(spark, today)
    for table in TABLES:
        assert found[table].schema.names == TRACE_TYPES[table].names
        if table not in ("carried", "published"):
            assert rows_of(found[table]) == sorted(rows_of(now[table]) * 3)
    told, told_now = (with_audience(of["published"], of["subscribed"]) for of in (found, now))
    assert rows_of(told.drop("attributes")) == sorted(rows_of(told_now.drop("attributes")) * 3)
    headers = [row.header_bytes for row in found["carried"].collect()]
    assert sum(headers) == 2 * sum(row.header_bytes for row in now["carried"].collect()) > 0


def test_tables_in_one_partition_have_the_same_rows(
    spark: SparkSession, today: Path, tmp_path: Path
) -> None:
    folder = with_version_2(today, tmp_path / "traces")
    found = read_traces(spark, folder)
    together = found.in_one_partition()
    assert found["published"].rdd.getNumPartitions() > 1
    for table in TABLES:
        assert together[table].rdd.getNumPartitions() <= 1  # none if there are no rows
        assert rows_of(together[table]) == rows_of(found[table])


def test_what_lessons_read_is_alike_for_rows_of_version_2(spark: SparkSession, today: Path) -> None:
    """A lesson follows from its input alone, so it is the input that is compared."""
    before, now = (checked_input(folder, None, 0.2) for folder in (VERSION_2, today))
    assert before.intake is not None
    assert now.intake is not None
    tables = read_intake(spark, VERSION_2, before.intake), read_intake(spark, today, now.intake)
    for table in TABLES:
        first, second = (found[table] for found in tables)
        assert first.schema == second.schema
        apart = ["attributes"] if table == "published" else []  # of these, older rows tell others
        assert rows_of(first.drop(*apart)) == rows_of(second.drop(*apart))
    assert rows_of(tables[0]["probed"]) != []
    settings = [(given.kind, given.slice_s, given.probe_timeout_s) for given in (before, now)]
    assert settings[0] == settings[1]


def test_windows_are_alike_for_rows_of_version_2(
    spark: SparkSession, today: Path, tmp_path: Path
) -> None:
    def windows(traces: Path, name: str) -> list[tuple[object, ...]]:
        problems = list[str]()
        watch = Watch(spark, traces, tmp_path / name, Timing(5.0, 3.0, 1.0), len, problems.append)
        while watch.step():
            pass
        watch.finish()
        watch.stop()
        assert problems == []
        fields = [name for name in Window.__struct_fields__ if name != "run"]
        found = finished_windows(tmp_path / name)
        return [tuple(getattr(window, field) for field in fields) for window in found]

    assert windows(VERSION_2, "before") == windows(today, "now") != []


def test_the_data_source_reads_rows_of_version_2(today: Path) -> None:
    def rows(traces: Path) -> list[str]:
        reader = TraceReader(TraceOptions(traces=str(traces), table="subscribed"))
        parts = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [repr(row) for part in parts for row in part.drop_columns(["run"]).to_pylist()]

    assert rows(VERSION_2) == rows(today) != []


def test_plain_sql_reads_every_table_by_its_folder(spark: SparkSession, today: Path) -> None:
    for table, rows in read_tables(today).items():
        columns = ", ".join(arrow_schema(TABLES[table]).names)
        found = spark.sql(f"select {columns} from parquet.`{today / table}`")
        assert found.count() == rows.num_rows


def test_plain_spark_reads_a_compacted_table(spark: SparkSession, tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "traces")
    write_empty_tables(folder)
    assert compact(folder, settle_s=0.0, now=4e9).files
    reader = spark.read.option("recursiveFileLookup", True)
    for table, rows in read_tables(folder).items():
        found = reader.parquet(str(folder / table))
        assert (sorted(found.columns), found.count()) == (sorted(rows.column_names), rows.num_rows)


def test_spark_reads_what_live_brokers_wrote(spark: SparkSession, tmp_path: Path) -> None:
    told = ["", '{"x":"1"}', '{"x":"2"}']
    rows: list[Row] = [
        Published(n / 8, "n1", n, f"t/{n % 300}", 10, inf, 1.0, "d-tree", told[n % 3])
        for n in range(5_000)
    ]
    rows += [LinkChanged(float(n), "n1", "n2", n % 2 == 0) for n in range(20)]
    trace = TraceFiles(tmp_path, "run", "n1")
    for row in rows:
        trace.rows[type(row)].append(row)
        trace.relieve()
    trace.close()
    found = read_traces(spark, tmp_path)
    for kind, table in ((Published, "published"), (LinkChanged, "link_changed")):
        read = found[table].drop("run", "world").collect()
        expected = [astuple(row) for row in rows if type(row) is kind]
        assert sorted(_plain(row) for row in read) == sorted(_plain(row) for row in expected)
    assert found["dropped"].count() == 0


def test_spark_reserves_no_name_of_a_table_or_column(spark: SparkSession) -> None:
    strict = spark.newSession()
    strict.conf.set("spark.sql.ansi.enabled", True)
    strict.conf.set("spark.sql.ansi.enforceReservedKeywords", True)
    names = {name for kind in TRACE_TYPES.values() for name in kind.names}
    for name in sorted({*names, *TABLES, *POINT_SCHEMA.names}):
        assert strict.sql(f"select {name}.{name} from (select 1 as {name}) as {name}").schema
    with pytest.raises(ParseException):
        strict.sql("select 1 as where")
