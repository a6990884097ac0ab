"""Files written without Arrow hold what Arrow would have written, for every reader."""

from inspect import get_annotations
from math import inf, nan
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from tidings.core.trace import ORIGIN_COLUMNS, TABLES, Delivered, LinkChanged, Published, Row
from tidings.traces.plain_parquet.columns import SLICE
from tidings.traces.plain_parquet.table import PlainTable
from tidings.traces.schemas import arrow_schema

ORIGIN = ("r", "live")

texts = st.one_of(st.sampled_from(["", "a", "grün"]), st.text(max_size=4))
values = {
    "float": st.one_of(st.just(nan), st.just(-0.0), st.floats()),
    "int": st.integers(-(1 << 63), (1 << 63) - 1),
    "str": texts,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(texts, max_size=3).map(tuple),
}


def row_strategy(row_type: type[Row]) -> st.SearchStrategy[Row]:
    kinds = [values[kind] for base in (Row, row_type) for kind in get_annotations(base).values()]
    return st.builds(row_type, *kinds)


def file_of(rows: list[Row], chunk: int, row_type: type[Row] | None = None) -> bytes:
    table = PlainTable(row_type or type(rows[0]), ORIGIN)
    for begin in range(0, len(rows), chunk):
        table.add(rows[begin : begin + chunk])
    return b"".join(table.file())


def by_arrow(rows: list[Row]) -> pa.Table:
    origin = dict(zip(ORIGIN_COLUMNS, ORIGIN, strict=True))
    plain = [{**origin, **asdict(row)} for row in rows]
    return pa.Table.from_pylist(plain, arrow_schema(type(rows[0])))


def assert_read_as_by_arrow(rows: list[Row], chunk: int) -> None:
    found = pq.ParquetFile(pa.BufferReader(file_of(rows, chunk))).read()
    expected = by_arrow(rows)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert repr(found.to_pydict()) == repr(expected.to_pydict())


@pytest.mark.parametrize("table", TABLES)
@given(st.data())
def test_arrow_reads_the_rows_of_every_table(table: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(row_strategy(TABLES[table]), min_size=1, max_size=20))
    assert_read_as_by_arrow(rows, data.draw(st.integers(1, 20)))


@pytest.mark.parametrize("distinct", [1, 2, 256, 257, 65_536, 65_537])
def test_a_dictionary_may_be_of_any_size(distinct: int) -> None:
    rows = [
        Published(1.0, "n1", n, f"t/{n % distinct}", 1, inf, 1.0, "s", f"{n % distinct}")
        for n in range(distinct + 3)
    ]
    assert_read_as_by_arrow(rows, 2_048)
    lists = [(f"{n % distinct}", "x") for n in range(distinct + 3)]
    taken = [Delivered(1.0, "n1", n, 0.5, 1, takers) for n, takers in enumerate(lists)]
    assert_read_as_by_arrow(taken, 2_048)


@pytest.mark.parametrize("count", [1, 7, 8, 9, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE + 5])
def test_any_number_of_rows_is_read_back(count: int) -> None:
    lists = [(), ("a",), ("a", "b", "c"), ("b",) * 9]
    assert_read_as_by_arrow(
        [Delivered(float(n), "n1", n, 0.5, 1, lists[n * n % 4]) for n in range(count)], 1_000
    )
    assert_read_as_by_arrow([LinkChanged(1.0, "n1", "n2", n % 3 == 0) for n in range(count)], 999)


def test_duckdb_reads_the_same_as_arrow(tmp_path: Path) -> None:
    rows = [Delivered(n / 4, "abc"[n % 3], n, 0.5, 1, ("x", "y")[: n % 3]) for n in range(5_000)]
    (tmp_path / "rows.parquet").write_bytes(file_of(rows, 2_048))
    found = duckdb.sql(f"from read_parquet('{tmp_path}/rows.parquet')").fetchall()
    expected = [tuple(row.values()) for row in by_arrow(rows).to_pylist()]
    assert found == expected


def test_the_footer_tells_the_version_and_the_first_and_last_instant() -> None:
    rows = [LinkChanged(at, "n1", "n2", True) for at in (3.0, 1.5, 9.25)]
    footer = pq.read_metadata(pa.BufferReader(file_of(rows, 2)))
    assert footer.metadata[b"tidings"] == arrow_schema(LinkChanged).metadata[b"tidings"]
    known = footer.row_group(0).column(2).statistics
    assert (known.min, known.max, known.null_count) == (1.5, 9.25, 0)
    odd = file_of([LinkChanged(nan, "n1", "n2", True), *rows], 9)
    assert pq.read_metadata(pa.BufferReader(odd)).row_group(0).column(2).statistics is None


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_has_its_columns(table: str) -> None:
    found = pq.ParquetFile(pa.BufferReader(file_of([], 1, TABLES[table]))).read()
    assert found.num_rows == 0
    assert found.schema.equals(arrow_schema(TABLES[table]), check_metadata=True)


@pytest.mark.parametrize(
    "bad",
    [
        LinkChanged(1.0, "n1", "n2", 1),
        LinkChanged(1.0, "n1", None, True),
        LinkChanged("1", "n1", "n2", True),
        LinkChanged(1.0, "n1", "\ud800", True),
    ],
)
def test_rows_of_which_one_fits_no_column_leave_nothing(bad: Row) -> None:
    good = [LinkChanged(2.0, "n1", "n2", True)]
    table = PlainTable(LinkChanged, ORIGIN)
    table.add(good)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        table.add([*good, bad])
    table.add(good)
    found = pq.ParquetFile(pa.BufferReader(b"".join(table.file()))).read()
    assert found.to_pylist() == by_arrow(good * 2).to_pylist()
