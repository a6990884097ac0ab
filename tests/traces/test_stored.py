"""Rows of older versions are read as if they had been written today."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.older_traces import VERSION_2, as_segments, version_1, written_today
from support.segments import rows_in

from tidings.core.errors import ConfigError
from tidings.core.trace import SCHEMA_VERSION
from tidings.scenarios.past_rows import read_past
from tidings.traces.audience import with_audience
from tidings.traces.compaction import compact
from tidings.traces.headline import per_subscriber, read_tables, summary
from tidings.traces.intake import read_through, take_in


def named(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """With a name for the run that does not tell which scenario it was."""
    names = {table: pa.repeat(pa.scalar("older"), rows.num_rows) for table, rows in tables.items()}
    return {
        table: rows.set_column(0, rows.schema.field(0), names[table])
        for table, rows in tables.items()
    }


def as_text(tables: dict[str, pa.Table]) -> dict[str, str]:
    """To compare rows in which NaN equals itself."""
    return {table: repr(rows_in(rows)) for table, rows in tables.items()}


def audience_told(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Rows of `Published` with their audience instead of what it follows from."""
    told = with_audience(tables["published"], tables["subscribed"]).drop_columns(["attributes"])
    return tables | {"published": told}


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_today(tmp_path_factory.mktemp("today"))


def test_a_trace_of_version_2_has_the_rows_and_figures_of_one_of_today(today: Path) -> None:
    """Who was believed to be interested is who was, in a run whose subscriptions never change."""
    before, now = named(read_tables(VERSION_2)), named(read_tables(today))
    assert as_text(audience_told(before)) == as_text(audience_told(now))
    assert all(now[table].num_rows for table in now if table != "slowed")
    assert summary(before) == summary(now)
    assert per_subscriber(before) == per_subscriber(now)
    assert now["subscribed"].filter(pc.field("predicate") == "height < 5").num_rows == 1


def test_a_trace_of_version_1_has_no_header_bytes_and_is_equal_else(tmp_path: Path) -> None:
    before, now = read_tables(version_1(tmp_path / "traces")), read_tables(VERSION_2)
    assert set(before["carried"]["header_bytes"].to_pylist()) == {0}
    assert before["carried"].drop_columns(["header_bytes"]) == now["carried"].drop_columns(
        ["header_bytes"]
    )
    assert summary(before) == summary(now)


def test_older_files_are_found_good_and_known_as_such(tmp_path: Path) -> None:
    for folder, version in ((VERSION_2, 2), (version_1(tmp_path / "1"), 1)):
        for intake in (take_in(folder), read_through(folder)):
            assert intake.quarantined == ()
            files = [file for found in intake.files.values() for file in found]
            assert intake.older == dict.fromkeys(files, version)


def test_a_run_is_replayed_from_rows_of_any_version(today: Path, tmp_path: Path) -> None:
    now = read_past(today, 1.0)
    for folder in (VERSION_2, version_1(tmp_path / "1")):
        before = read_past(folder, 1.0)
        assert before.end_at == now.end_at
        assert repr(before.links) == repr(now.links)
        assert now.links


def test_older_segments_are_gathered_in_a_file_of_today(tmp_path: Path) -> None:
    folder = as_segments(VERSION_2, tmp_path / "traces")
    before = read_tables(folder)
    done = compact(folder, settle_s=-60.0, now=4e9)
    assert done.rows > 100
    for file in done.files:
        assert pq.read_schema(file).metadata[b"tidings"].decode() == str(SCHEMA_VERSION)
        assert "recorded_at" in pq.read_schema(file).names
    assert as_text(read_tables(folder)) == as_text(before)


def test_rows_of_a_version_to_come_are_not_read(tmp_path: Path) -> None:
    folder = as_segments(VERSION_2, tmp_path / "traces")
    file = folder / "published" / "later.parquet"
    rows = read_tables(VERSION_2)["published"]
    pq.write_table(rows.replace_schema_metadata({"tidings": str(SCHEMA_VERSION + 1)}), file)
    with pytest.raises(ConfigError, match=f"version 1 to {SCHEMA_VERSION}"):
        read_tables(folder)
