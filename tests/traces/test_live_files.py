"""Trace segments: whole files only, nothing overwritten, and a bad disk costs rows, not brokers."""

import threading
from math import inf, nan
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from tidings.core.trace import TABLES, Delivered, Probed, Published, Row
from tidings.traces import live_files
from tidings.traces.columns import record_batch
from tidings.traces.files import parquet_files
from tidings.traces.live_files import CHUNK_ROWS, TraceFiles, renamed
from tidings.traces.plain_parquet.empty_tables import EMPTY
from tidings.traces.schemas import arrow_schema


def published(number: int) -> Published:
    return Published(float(number), "n1", number, "a", 1, inf, 1.0, "d-tree", "")


def record(trace: TraceFiles, *rows: Row) -> None:
    for row in rows:
        trace.rows[type(row)].append(row)


def messages(folder: Path) -> list[int]:
    files = parquet_files(folder / "published")
    return [m for file in files for m in pq.ParquetFile(file).read()["message"].to_pylist()]


def all_but_the_empty_one(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name != EMPTY]


def test_a_closed_trace_has_every_row_in_order(tmp_path: Path) -> None:
    trace = TraceFiles(tmp_path, "run", "n1")
    for number in range(3 * CHUNK_ROWS // 2):
        record(trace, published(number))
        trace.relieve()
    trace.close()
    assert messages(tmp_path) == list(range(3 * CHUNK_ROWS // 2))
    assert [path.name for path in tmp_path.glob("*/*") if path.name != EMPTY] == [
        "run-n1-000000.parquet"
    ]


def test_a_restart_goes_on_numbering_and_clears_the_remains_of_a_crash(tmp_path: Path) -> None:
    for number in (1, 2):
        trace = TraceFiles(tmp_path, "run", "n1")
        record(trace, published(number))
        trace.close()
        (tmp_path / "published" / ".run_n1-000007.parquet").touch()
    other = TraceFiles(tmp_path, "run", "n10")
    other.close()
    TraceFiles(tmp_path, "run", "n1").close()
    names = sorted(all_but_the_empty_one(tmp_path / "published"))
    assert names == ["run-n1-000000.parquet", "run-n1-000001.parquet"]
    assert messages(tmp_path) == [1, 2]


def test_a_broker_that_starts_leaves_alone_what_another_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, others = TraceFiles(tmp_path, "a", "b-c"), list[bool]()

    def renamed_while_others_start(draft: Path, final: Path) -> bool:
        for run, broker in (("a", "b"), ("a-b", "c")):  # one is shorter, one has the same names
            TraceFiles(tmp_path, run, broker).close()
        others.append(draft.exists())
        return renamed(draft, final)

    monkeypatch.setattr(live_files, "renamed", renamed_while_others_start)
    record(trace, published(1))
    trace.close()
    assert (trace.lost_rows, others) == (0, [True])
    assert messages(tmp_path) == [1]


def test_brokers_whose_names_are_the_same_together_overwrite_nothing(tmp_path: Path) -> None:
    traces = [TraceFiles(tmp_path, "a", "b-c"), TraceFiles(tmp_path, "a-b", "c")]
    for number in range(6):
        record(traces[number % 2], published(number))
        traces[number % 2].flush()
    for trace in traces:
        trace.close()
    assert sorted(messages(tmp_path)) == list(range(6))
    names = sorted(all_but_the_empty_one(tmp_path / "published"))
    assert names == [f"a-b-c-{number:06}.parquet" for number in range(6)]


def test_without_links_a_segment_still_gets_a_name_that_nobody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", refused)
    traces = [TraceFiles(tmp_path, "a", "b-c"), TraceFiles(tmp_path, "a-b", "c")]
    for number, trace in enumerate(traces):
        record(trace, published(number))
        trace.close()
    assert sorted(messages(tmp_path)) == [0, 1]


def test_a_reader_sees_whole_rows_only_while_segments_are_written(tmp_path: Path) -> None:
    trace, done, faults = TraceFiles(tmp_path, "run", "n1"), threading.Event(), list[str]()

    def read_all_the_time() -> None:
        seen = 0
        while not done.is_set():
            found = messages(tmp_path)
            if found != list(range(len(found))) or len(found) < seen:
                faults.append(f"{len(found)} rows after {seen}")
            seen = len(found)

    reader = threading.Thread(target=read_all_the_time)
    reader.start()
    for number in range(2_000):
        record(trace, published(number))
        if number % 100 == 99:
            trace.flush()
    trace.close()
    done.set()
    reader.join()
    assert faults == []
    assert messages(tmp_path) == list(range(2_000))


def test_a_disk_that_takes_nothing_is_told_once_and_rows_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "published").touch()  # a file where a folder should be
    trace = TraceFiles(tmp_path, "run", "n1")
    for number in range(3):
        record(trace, published(number), Delivered(1.0, "n1", number, 0.0, 0, ""))
        trace.flush()
    trace.close()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "cannot be written" in told[0]
    assert "3 trace rows were lost in all" in told[1]
    assert trace.lost_rows == 3
    assert len(all_but_the_empty_one(tmp_path / "delivered")) == 3


@pytest.mark.parametrize("bad", [1 << 70, "text"])
def test_a_row_that_fits_no_column_costs_its_chunk_and_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: object
) -> None:
    trace = TraceFiles(tmp_path, "run", "n1")
    for _ in range(2):
        record(trace, replace(published(1), message=bad), published(2))
        trace.flush()
    record(trace, *[replace(published(1), message=bad)] * CHUNK_ROWS)
    trace.relieve()
    record(trace, published(3))
    trace.close()
    assert trace.lost_rows == 4 + CHUNK_ROWS
    assert messages(tmp_path) == [3]
    told = capsys.readouterr().err.splitlines()
    assert ["cannot be written" in line for line in told] == [True, False]


def test_columns_that_fit_no_file_cost_their_segment_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = TraceFiles(tmp_path, "run", "n1")
    record(trace, replace(published(1), message=None))
    trace.flush()
    record(trace, published(2))
    trace.close()
    assert trace.lost_rows == 1
    assert messages(tmp_path) == [2]
    assert "cannot be written" in capsys.readouterr().err


def test_names_that_no_file_can_have_stay_different(tmp_path: Path) -> None:
    for broker in ("New York", "New/York"):
        trace = TraceFiles(tmp_path, "run", broker)
        record(trace, published(1))
        trace.close()
    assert len(all_but_the_empty_one(tmp_path / "published")) == 2


words = st.sampled_from(["a", "b", "grün"])
rows_of_one_kind = st.one_of(
    st.lists(
        st.builds(Delivered, st.floats(), words, st.integers(0, 9), st.just(nan), st.integers(0, 2),
                  st.lists(words, max_size=3).map(tuple)),
        min_size=1,
    ),
    st.lists(st.builds(Probed, st.just(1.0), words, words, st.just(nan)), min_size=1),
)  # fmt: skip


ZERO = 0.0


@given(rows_of_one_kind)
@example([Probed(at, "a", "b", nan) for at in (ZERO, -0.0, ZERO)])
def test_columns_made_the_fast_way_equal_those_made_value_by_value(rows: list[Row]) -> None:
    schema = arrow_schema(type(rows[0]))
    plain = [{"run": "r", "world": "live", **asdict(row)} for row in rows]
    fast = record_batch(rows, schema, ("r", "live"))
    assert repr(fast.to_pydict()) == repr(pa.RecordBatch.from_pylist(plain, schema).to_pydict())
    assert set(TABLES.values()) >= {type(rows[0])}
