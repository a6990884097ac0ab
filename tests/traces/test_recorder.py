"""Trace rows as Arrow columns, and the digest of a run."""

import pyarrow as pa
import pytest
from support.traces import BY_HAND

from tidings.core.trace import TABLES, Delivered, Dropped, Probed, Published, Row
from tidings.traces import recorder as recording
from tidings.traces.recorder import Recorder
from tidings.traces.schemas import arrow_schema


def recorded(*rows: Row, run: str = "r") -> tuple[dict[str, list[pa.RecordBatch]], str]:
    batches: dict[str, list[pa.RecordBatch]] = {}
    recorder = Recorder(
        run, "sim", lambda table, batch: batches.setdefault(table, []).append(batch)
    )
    for row in rows:
        recorder.record(row)
    recorder.flush()
    return batches, recorder.digest


def test_the_schema_follows_from_the_annotations_of_the_row() -> None:
    assert arrow_schema(Delivered) == pa.schema(
        [
            pa.field("run", pa.string(), nullable=False),
            pa.field("world", pa.string(), nullable=False),
            pa.field("recorded_at", pa.float64(), nullable=False),
            pa.field("broker", pa.string(), nullable=False),
            pa.field("message", pa.int64(), nullable=False),
            pa.field("age_s", pa.float64(), nullable=False),
            pa.field("hops", pa.int64(), nullable=False),
            pa.field(
                "subscriptions",
                pa.list_(pa.field("item", pa.string(), nullable=False)),
                nullable=False,
            ),
        ]
    )


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_table_has_a_schema_with_version_place_and_time(table: str) -> None:
    schema = arrow_schema(TABLES[table])
    assert schema.names[:4] == ["run", "world", "recorded_at", "broker"]
    assert schema.metadata == {b"tidings": b"4"}


def test_rows_become_columns_in_the_order_they_came() -> None:
    batches, _ = recorded(
        Dropped(1.0, "b1", 7, "expired", ("b2", "b3")), Dropped(2.0, "b1", 8, "x", ())
    )
    [batch] = batches["dropped"]
    assert batch.schema == arrow_schema(Dropped)
    assert batch.to_pylist() == [
        {
            "run": "r",
            "world": "sim",
            "recorded_at": 1.0,
            "broker": "b1",
            "message": 7,
            "reason": "expired",
            "destinations": ["b2", "b3"],
        },
        {
            "run": "r",
            "world": "sim",
            "recorded_at": 2.0,
            "broker": "b1",
            "message": 8,
            "reason": "x",
            "destinations": [],
        },
    ]


def test_a_full_chunk_is_handed_on_while_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "CHUNK_ROWS", 2)
    batches: list[int] = []
    recorder = Recorder("r", "sim", lambda table, batch: batches.append(batch.num_rows))
    for number in range(5):
        recorder.record(Probed(float(number), "b1", "b2", 0.1))
    assert batches == [2, 2]
    recorder.flush()
    recorder.flush()
    assert batches == [2, 2, 1]


def test_equal_rows_give_equal_digests_and_any_difference_another() -> None:
    _, digest = recorded(*BY_HAND)
    assert recorded(*BY_HAND)[1] == digest
    assert recorded(*BY_HAND[:-1])[1] != digest
    assert recorded(*BY_HAND[1:], BY_HAND[0])[1] != digest  # the order within a table counts
    assert recorded(*BY_HAND, run="other")[1] == digest  # the name of the run does not
    assert len(digest) == 64


def test_rows_of_the_same_numbers_in_another_table_give_another_digest() -> None:
    published = Published(1.0, "b1", 1, "t", 0, 1.0, 1.0, "d-tree", "")
    assert recorded(published)[1] != recorded(Probed(1.0, "b1", "b2", 1.0))[1]


def test_a_row_of_no_known_table_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        recorded(Row(1.0, "b1"))
