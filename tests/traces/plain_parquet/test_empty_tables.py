"""Every table of a trace can be read by its folder, with names that need no quotes."""

import shutil
from math import inf
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from support.older_traces import written_today
from support.segments import live_folder

from tidings.core.trace import TABLES, Published
from tidings.traces.compaction import compact
from tidings.traces.files import listed_files
from tidings.traces.headline import read_tables
from tidings.traces.intake import take_in
from tidings.traces.live_files import TraceFiles
from tidings.traces.plain_parquet.empty_tables import EMPTY, write_empty_tables
from tidings.traces.points import POINT_SCHEMA
from tidings.traces.schemas import arrow_schema

# What PostgreSQL 17 reserves (its manual, appendix C), types and functions included.
RESERVED_BY_POSTGRESQL = (
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast "
    "check collate collation column concurrently constraint create cross current_catalog "
    "current_date current_role current_schema current_time current_timestamp current_user default "
    "deferrable desc distinct do else end except false fetch for foreign freeze from full grant "
    "group having ilike in initially inner intersect into is isnull join lateral leading left "
    "like limit localtime localtimestamp natural not notnull null offset on only or order outer "
    "overlaps placing primary references returning right select session_user similar some "
    "symmetric system_user table tablesample then to trailing true union unique user using "
    "variadic verbose when where window with"
)
NAMES = {name for row_type in TABLES.values() for name in arrow_schema(row_type).names}
NAMES |= {*TABLES, *POINT_SCHEMA.names}


def live_trace(folder: Path) -> Path:
    """Of two brokers, one of which has said something."""
    traces = [TraceFiles(folder, "run", broker) for broker in ("n1", "n2")]
    row = Published(1.0, "n1", 7, "a", 1, inf, 1.0, "d-tree", "")
    traces[0].rows[Published].append(row)
    for trace in traces:
        trace.close()
    return folder


@pytest.mark.parametrize("leave", [written_today, live_trace])
def test_pandas_and_duckdb_read_every_table_by_its_folder(leave, tmp_path: Path) -> None:
    folder = leave(tmp_path / "traces")
    for table, rows in read_tables(folder).items():
        found = pd.read_parquet(folder / table)
        assert (list(found.columns), len(found)) == (rows.column_names, rows.num_rows)
        columns = ", ".join(rows.column_names)
        asked = duckdb.sql(f"select {columns} from read_parquet('{folder / table}/*.parquet')")
        assert asked.arrow().read_all().num_rows == rows.num_rows


def test_a_compacted_table_is_read_by_its_folder_too(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "traces")
    write_empty_tables(folder)
    assert compact(folder, settle_s=0.0, now=4e9).files
    for table, rows in read_tables(folder).items():
        found = pd.read_parquet(folder / table, partitioning=None)
        assert (list(found.columns), len(found)) == (rows.column_names, rows.num_rows)
        files = f"'{folder / table}/**/*.parquet', hive_partitioning = false"
        assert len(duckdb.sql(f"select run from read_parquet({files})").fetchall()) == rows.num_rows


def test_no_name_of_a_table_or_column_is_reserved() -> None:
    asked = "select keyword_name from duckdb_keywords() where keyword_category <> 'unreserved'"
    reserved = {name for (name,) in duckdb.sql(asked).fetchall()}
    assert not NAMES & (reserved | set(RESERVED_BY_POSTGRESQL.split(" ")))
    assert {"at", "where"} <= reserved


def test_however_many_brokers_write_there_is_one_empty_file_per_table(tmp_path: Path) -> None:
    for broker in range(5):
        TraceFiles(tmp_path, "run", f"n{broker}").close()
    found = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.parquet"))
    assert found == sorted(Path(table) / EMPTY for table in TABLES)


def test_readers_pass_empty_files_over_also_those_of_a_copied_folder(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "traces")
    before = take_in(folder)
    write_empty_tables(folder)
    shutil.copytree(folder / "dropped", folder / "dropped" / "copied")
    assert take_in(folder) == before
    assert before.quarantined == ()


def test_a_trace_without_any_row_is_a_trace(tmp_path: Path) -> None:
    write_empty_tables(tmp_path)
    assert listed_files(tmp_path) == {table: [] for table in TABLES}
    assert all(rows.num_rows == 0 for rows in read_tables(tmp_path).values())
