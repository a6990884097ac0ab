"""What the tasks of a Spark job do, without Spark around them: read parts of a log, publish."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from math import inf
from pathlib import Path
from threading import Timer
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)
from support.docs_tables import shown
from support.live import an_overlay, eventually
from support.logs import IMPATIENT, ORDERS, RESULTS, Shop
from support.pages import ROOT

from tidings.core.errors import ConfigError
from tidings.core.topic import matches
from tidings.live.config import Log, parse
from tidings.live.logs import server as log_server
from tidings.live.logs.records import FIRST_LINE_BYTES, RECORD_HEADER_BYTES, LogError, LogRecord
from tidings.pipeline.source.datasource import TidingsDataSource
from tidings.pipeline.source.log_client import LogClient, LogLoss, log_place
from tidings.pipeline.source.log_options import LogOptions, log_options
from tidings.pipeline.source.log_reader import LogReader, LogStreamReader
from tidings.pipeline.source.log_rows import RowMaker
from tidings.pipeline.source.publisher import MqttPublisher, PublishError
from tidings.pipeline.source.sink import check_columns


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with an_overlay(tmp_path / "broker", "b", log=[ORDERS, RESULTS]) as overlay:
        yield Shop(overlay)


def offsets(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


# ---- ranges of a log


def test_a_task_that_runs_again_reads_exactly_the_same(shop: Shop) -> None:
    shop.say(*map(str, range(10)))
    reader = LogStreamReader(log_options({"url": shop.log(), "rows_per_partition": "4"}))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(9))
    tasks = reader.partitions(start, end)
    first = [offsets(reader.read(task)) for task in tasks]
    shop.say("more", "and more")
    assert first == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert [offsets(reader.read(task)) for task in reader.partitions(start, end)] == first
    assert reader.latestOffset(end, ReadAllAvailable())["offset"] == 12
    assert reader.partitions(end, end) == []


def test_with_available_now_nothing_that_comes_later_is_read(shop: Shop) -> None:
    shop.say("0", "1", "2")
    reader = LogStreamReader(log_options({"url": shop.log(), "from": "1"}))
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    shop.say("3")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert (start["offset"], end["offset"]) == (1, 3)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.reportLatestOffset()["offset"] == 4


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"from": "latest"}, []),
        ({"from": "2"}, [2, 3, 4]),
        ({"from": "1", "until": "3"}, [1, 2]),
        ({"from": "oldest", "until": "oldest"}, []),
        ({"until": "9", "on_loss": "skip"}, [0, 1, 2, 3, 4]),
    ],
)
def test_a_batch_reads_from_offset_to_offset(
    shop: Shop, asked: dict[str, str], found: list[int]
) -> None:
    shop.say(*map(str, range(5)))
    reader = LogReader(log_options({"url": shop.log(), "rows_per_partition": "2", **asked}))
    assert [o for task in reader.partitions() for o in offsets(reader.read(task))] == found


def test_an_offset_that_is_not_there_is_refused(shop: Shop) -> None:
    with pytest.raises(LogLoss, match="option until is 9, but"):
        LogReader(log_options({"url": shop.log(), "until": "9"})).partitions()


def small_log(folder: Path) -> Any:
    return an_overlay(folder, "b", log=[ORDERS | {"keep_bytes": 4096}])


def test_a_reader_that_fell_behind_is_told_or_goes_on_with_what_is_kept(tmp_path: Path) -> None:
    with small_log(tmp_path) as overlay:
        shop = Shop(overlay)
        shop.say("first")
        readers = {
            choice: LogStreamReader(log_options({"url": shop.log(), "on_loss": choice}))
            for choice in ("fail", "skip")
        }
        start = readers["fail"].initialOffset()
        planned = readers["fail"].partitions(start, start | {"offset": 1})
        shop.say(*(["x" * 500] * 20))
        with LogClient(shop.log(), 1.0) as client:
            oldest = client.state().oldest
        assert oldest > 1
        with pytest.raises(LogLoss, match=f"keeps nothing before offset {oldest} any more"):
            readers["fail"].latestOffset(start, ReadAllAvailable())
        with pytest.raises(LogLoss, match="offset 0 is not kept any more"):
            list(readers["fail"].read(planned[0]))
        assert list(readers["skip"].read(planned[0])) == []
        end = readers["skip"].latestOffset(start, ReadAllAvailable())
        (task,) = readers["skip"].partitions(start, end)
        assert offsets(readers["skip"].read(task)) == list(range(oldest, 21))


def test_a_log_that_was_made_anew_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    with small_log(tmp_path) as overlay:
        shop = Shop(overlay)
        shop.say("old", "old", "old")
        before = LogStreamReader(log_options({"url": shop.log()}))
        start = before.initialOffset()
        end = before.latestOffset(start, ReadAllAvailable())
        overlay.stop("b")
        shutil.rmtree(tmp_path / "traces" / "logs")
        overlay.start("b")
        shop.say("new", "new", "new", "new")
        fails = LogStreamReader(log_options({"url": shop.log()}))
        skips = LogStreamReader(log_options({"url": shop.log(), "on_loss": "skip"}))
        with pytest.raises(LogLoss, match="made anew"):
            fails.latestOffset(end, ReadAllAvailable())
        (task,) = fails.partitions(start, end)
        with pytest.raises(LogLoss, match="another id"):
            list(fails.read(task))
        assert list(skips.read(task)) == []
        latest = skips.latestOffset(end, ReadAllAvailable())
        (task,) = skips.partitions(end, latest)
        assert offsets(skips.read(task)) == [0, 1, 2, 3]


def test_a_log_that_has_stopped_ends_the_query_when_all_is_read(shop: Shop) -> None:
    shop.say("0")
    shop.overlay.brokers["b"].logs.by_name["orders"].kept.stopped = "no space left"
    reader = LogStreamReader(log_options({"url": shop.log()}))
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end["offset"] == 1
    with pytest.raises(LogLoss, match="gets no more messages: no space left"):
        reader.latestOffset(end, ReadAllAvailable())


def test_a_broker_that_restarts_is_waited_for(shop: Shop) -> None:
    shop.say("0")
    state = shop.overlay.brokers["b"]
    shop.overlay._documents["b"]["log_port"] = state.log_port
    with LogClient(shop.log(), 10.0) as client:
        before = client.state()
        shop.overlay.stop("b")
        shop.overlay.start("b")
        assert client.state() == before
        assert [record.payload for record in client.records(before.id, 0, 10)] == [b"0"]


def test_a_broker_with_too_many_readers_is_asked_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.say("0")
    monkeypatch.setattr(log_server, "MAX_CONNECTIONS", 0)
    with LogClient(shop.log(), 0.1) as client, pytest.raises(LogError, match="answers 503"):
        client.state()
    later = Timer(0.5, monkeypatch.setattr, (log_server, "MAX_CONNECTIONS", 9))
    later.start()
    with LogClient(shop.log(), 10.0) as client:
        assert client.state().next == 1
    later.join()


def damaged(folder: Path, at: int) -> None:
    """One byte of the oldest segment is another."""
    segment = min((folder / "traces" / "logs" / "b" / "orders").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[FIRST_LINE_BYTES + at] ^= 0xFF
    segment.write_bytes(data)


@pytest.mark.parametrize(("at", "lost"), [(RECORD_HEADER_BYTES, 1), (0, 3)])
def test_a_damaged_record_ends_the_query_or_is_passed_over(
    tmp_path: Path, at: int, lost: int
) -> None:
    """Behind a record whose length is damaged, nothing of its segment can be found."""
    with small_log(tmp_path) as overlay:
        shop = Shop(overlay)
        for _ in range(6):
            shop.say("x" * 100)
        log = overlay.brokers["b"].logs.by_name["orders"].kept
        assert [segment.first for segment in log._segments] == [0, 3]
        damaged(tmp_path, at)
        fails = LogReader(log_options({"url": shop.log()}))
        with pytest.raises(LogLoss, match=r"damaged.* The option on_loss=skip"):
            list(fails.read(fails.partitions()[0]))
        skips = LogReader(log_options({"url": shop.log(), "on_loss": "skip"}))
        assert offsets(skips.read(skips.partitions()[0])) == list(range(lost, 6))


def test_what_stands_before_a_damaged_record_is_read(tmp_path: Path) -> None:
    with small_log(tmp_path) as overlay:
        shop = Shop(overlay)
        shop.say("0", "1", "2")
        record_bytes = len(overlay.brokers["b"].logs.by_name["orders"].kept.read(0, 1, 1))
        damaged(tmp_path, record_bytes + RECORD_HEADER_BYTES)
        skips = LogReader(log_options({"url": shop.log(), "on_loss": "skip"}))
        assert offsets(skips.read(skips.partitions()[0])) == [0, 2]


def test_a_port_that_is_no_log_s_is_named(shop: Shop) -> None:
    url = f"tidings://127.0.0.1:{shop.overlay.brokers['b'].log_port}/nothing"
    with pytest.raises(LogError, match="no log is called 'nothing'; there is: orders, results"):
        LogReader(log_options({"url": url})).partitions()
    wrong = f"tidings://127.0.0.1:{shop.overlay.port('b')}/orders"
    with pytest.raises(LogError, match="cannot be read"):
        LogReader(log_options({"url": wrong, **IMPATIENT})).partitions()


# ---- rows

RECORDS = st.builds(
    LogRecord,
    offset=st.integers(0, 100),
    at=st.floats(0, 2e9),
    message=st.integers(0, 2**63 - 1),
    topic=st.sampled_from(["a", "a/b", "b/c", "$x/a"]),
    payload=st.sampled_from([b"", b'{"n": 1}', b'{"n": 5}', b"{", b"\xff"]),
    properties=st.lists(
        st.tuples(st.sampled_from(["n", "m"]), st.sampled_from(["1", "5"])), max_size=3
    ).map(tuple),
    deadline_s=st.sampled_from([0.1, 1.0, inf]),
    price=st.sampled_from([0.0, 1.0, 3.0]),
    age_s=st.floats(0, 2),
)


def plainly(record: LogRecord, topic: str, late: str) -> dict[str, Any] | None:
    """The row of one record, if it has one, spelt out: `where n > 3`, half a second, price 2."""
    attributes = dict(record.properties)
    if "n" not in attributes and record.payload.endswith(b"}"):
        attributes["n"] = json.loads(record.payload)["n"]
    in_time = record.age_s <= min(record.deadline_s, 0.5) + 1e-6
    wanted = not topic or matches(topic, record.topic)
    if not wanted or int(attributes.get("n", 0)) <= 3 or (late == "drop" and not in_time):
        return None
    return {
        **{name: getattr(record, name) for name in ("offset", "message", "topic", "payload")},
        "properties": list(dict(record.properties).items()),
        "deadline_s": min(record.deadline_s, 0.5),
        "price": record.price * 2,
        "age_s": record.age_s,
        "in_time": in_time,
    }


@given(
    st.lists(RECORDS, max_size=8),
    st.sampled_from(["", "#", "a/+"]),
    st.sampled_from(["keep", "drop"]),
)
def test_rows_are_what_a_plain_reading_of_the_options_gives(
    records: list[LogRecord], topic: str, late: str
) -> None:
    asked = {"topic": topic, "where": "n > 3", "deadline_ms": "500", "price": "2", "late": late}
    batch = RowMaker(log_options({"url": "x", **asked})).batch(records)
    expected = [row for record in records if (row := plainly(record, topic, late))]
    assert batch.drop_columns(["at"]).to_pylist() == expected


# ---- options and columns


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "url is missing"),
        ({"url": "u", "topc": "a"}, "topc is 'a', but accepted is: one of the options url, topic"),
        ({"url": "u", "topic": "a/#/b"}, "topic is 'a/#/b'"),
        ({"url": "u", "where": "price >"}, "where is 'price >'"),
        ({"url": "u", "deadline_ms": "soon"}, "deadline_ms is 'soon'"),
        ({"url": "u", "deadline_ms": "-1"}, "deadline_ms is '-1'"),
        ({"url": "u", "on_loss": "ignore"}, "on_loss is 'ignore'"),
        ({"url": "u", "from": "yesterday"}, "from is 'yesterday'"),
        ({"url": "u", "rows_per_partition": "0"}, "rows_per_partition is '0'"),
    ],
)
def test_a_bad_option_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TidingsDataSource(given).schema()
    assert problem in str(caught.value)


def test_a_table_that_traces_do_not_have_is_named() -> None:
    with pytest.raises(ConfigError, match="one of subscribed, published"):
        TidingsDataSource({"traces": "x", "table": "unpublished"}).schema()
    with pytest.raises(ConfigError, match="a stream reads a log"):
        TidingsDataSource({"traces": "x", "table": "published"}).streamReader(StructType())


@pytest.mark.parametrize(
    "url", ["", "x", "http://h:1/l", "tidings://h/l", "tidings://h:1", "tidings://h:99999/l",
            "tidings://h:1/a/b", "tidings://[x:1/l"],
)  # fmt: skip
def test_a_url_that_is_no_log_s_is_named(url: str) -> None:
    with pytest.raises(ConfigError, match="tidings://HOST:PORT/LOG"):
        log_place(url)


@pytest.mark.parametrize("url", ["", "h:1883", "http://h", "mqtt://", "mqtt://h:x", "mqtt://h/t"])
def test_a_url_that_is_no_broker_s_is_named(url: str) -> None:
    with pytest.raises(ConfigError, match="mqtt://HOST:PORT"):
        MqttPublisher(url, 0.0)


TEXT = StringType()
MESSAGE: dict[str, DataType] = {"topic": TEXT, "payload": BinaryType()}


def a_schema(columns: dict[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"topic": TEXT}, "column payload is missing"),
        ({"payload": TEXT}, "column topic is missing"),
        ({**MESSAGE, "payload": IntegerType()}, "column payload is 'int'"),
        ({**MESSAGE, "at": DoubleType()}, "column is 'at'"),
        ({**MESSAGE, "price": TEXT}, "column price is 'string'"),
        ({**MESSAGE, "properties": MapType(TEXT, IntegerType())}, "map<string,int>"),
    ],
)
def test_columns_that_cannot_be_published_are_named(
    columns: dict[str, DataType], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_columns(a_schema(columns))
    assert problem in str(caught.value)


def test_what_was_published_cannot_be_overwritten() -> None:
    with pytest.raises(ConfigError, match="append"):
        TidingsDataSource({"url": "mqtt://h"}).writer(a_schema(MESSAGE), overwrite=True)


# ---- the sink, without Spark around it


def published(shop: Shop, *rows: dict[str, Any]) -> None:
    kind = pa.schema(
        [
            ("topic", pa.string()),
            ("payload", pa.binary()),
            ("properties", pa.map_(pa.string(), pa.string())),
            ("deadline_ms", pa.float64()),
        ]
    )
    columns = from_arrow_schema(kind)
    writer = TidingsDataSource({"url": shop.mqtt}).writer(columns, overwrite=False)
    empty = dict.fromkeys(kind.names)
    batch = pa.RecordBatch.from_pylist([empty | row for row in rows], schema=kind)
    writer.write(iter([batch.slice(0, 0), batch]))  # type: ignore[arg-type]


def test_a_task_returns_when_the_broker_has_taken_everything(shop: Shop) -> None:
    rows = [{"topic": "orders/x", "payload": b"%d" % n} for n in range(5000)]
    published(shop, *rows)
    kept = shop.overlay.brokers["b"].logs.by_name["orders"].kept
    assert kept._next == 5000  # it has them all, though they may not be on the disk yet


def test_columns_win_over_the_map_and_null_states_nothing(shop: Shop) -> None:
    again = [("deadline-ms", "9"), ("colour", "red"), ("empty", None)]
    published(shop, {"topic": "orders/x", "properties": again, "deadline_ms": 500.0})
    published(shop, {"topic": "orders/x", "properties": [("deadline-ms", "9")]})
    eventually(lambda: shop.next() == 2)
    with LogClient(shop.log(), 1.0) as client:
        first, second = client.records(client.state().id, 0, 10)
    assert first.properties == (("deadline-ms", "500.0"), ("colour", "red"), ("empty", ""))
    assert (first.deadline_s, second.deadline_s) == (0.5, 0.009)
    assert first.payload == b""


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"topic": None}, "no topic"),
        ({"topic": "a/+"}, "no wildcards"),
        ({"topic": "a", "deadline_ms": -1.0}, "deadline-ms is '-1.0', but accepted is"),
        ({"topic": "a", "payload": b"x" * (1 << 21)}, "mqtt.max_packet_bytes"),
        ({"topic": "a", "properties": [("k", "x" * 70_000)]}, "fits no MQTT packet"),
    ],
)
def test_a_row_that_no_broker_takes_is_named(shop: Shop, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(PublishError) as caught:
        published(shop, row)
    assert problem in str(caught.value)


# ---- the page


@pytest.mark.parametrize(
    ("heading", "kind"), [("| parameter | default |", Log), ("| option | default |", LogOptions)]
)
def test_every_parameter_stands_on_the_page_with_its_default(
    heading: str, kind: type[msgspec.Struct]
) -> None:
    page = (ROOT / "docs" / "guide" / "spark-client.md").read_text()
    table = page.partition(heading)[2].partition("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table, re.MULTILINE))
    fields = msgspec.structs.fields(kind)
    assert documented == {field.encode_name: shown(field) for field in fields}


def test_the_configuration_on_the_page_is_accepted() -> None:
    page = (ROOT / "docs" / "guide" / "spark-client.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    config = parse(tomllib.loads(block), "page")
    assert config.log_folder("orders") == Path("traces/logs/shop/orders")
