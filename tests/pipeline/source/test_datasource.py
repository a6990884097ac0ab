"""Spark reads what a live broker logged, by offset, and publishes what others then receive."""

import importlib.util
import json
from collections.abc import Iterator
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from support.live import PahoClient, an_overlay, eventually, free_ports
from support.logs import IMPATIENT, ORDERS, RESULTS, Shop
from support.pages import ROOT
from support.traces import a_publication, said, tables_of, write_tables

from tidings.live.config import load
from tidings.pipeline.source import datasource
from tidings.pipeline.source.datasource import TidingsDataSource, TraceReader, register
from tidings.pipeline.source.log_options import TraceOptions

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with an_overlay(tmp_path / "broker", "b", log=[ORDERS, RESULTS]) as overlay:
        yield Shop(overlay)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def a_stream(session: SparkSession, url: str, **options: Any) -> DataFrame:
    return session.readStream.format("tidings").options(url=url, **options).load()


def test_a_log_is_a_frame_with_what_publishers_stated(shop: Shop, session: SparkSession) -> None:
    shop.say('{"cost": 4}', deadline_ms="500", price="3", colour="red")
    shop.say('{"cost": 2}', "no JSON", topic="orders/us")
    url = shop.log()
    rows = session.read.format("tidings").option("url", url).load().orderBy("offset").collect()
    assert [(r.offset, r.topic, bytes(r.payload)) for r in rows] == [
        (0, "orders/eu", b'{"cost": 4}'),
        (1, "orders/us", b'{"cost": 2}'),
        (2, "orders/us", b"no JSON"),
    ]
    assert rows[0].properties == {"deadline-ms": "500", "price": "3", "colour": "red"}
    assert (rows[0].deadline_s, rows[0].price, rows[0].age_s) == (0.5, 3.0, 0.0)
    assert (rows[1].deadline_s, rows[1].price, rows[1].in_time) == (inf, 1.0, True)
    asked = {"topic": "orders/+", "where": "cost > 3", "deadline_ms": 200, "price": 2}
    asked |= {"rows_per_partition": 1}
    (row,) = session.read.format("tidings").options(url=url, **asked).load().collect()
    assert (row.offset, row.deadline_s, row.price, row.in_time) == (0, 0.2, 6.0, True)


def test_a_stream_that_failed_and_was_restarted_neither_loses_nor_repeats(
    shop: Shop, session: SparkSession, tmp_path: Path
) -> None:
    attempts: list[tuple[int, list[int]]] = []
    fails = [False, True, False, False, False]

    def take(rows: DataFrame, batch: int) -> None:
        attempts.append((batch, sorted(row.offset for row in rows.select("offset").collect())))
        if fails[len(attempts) - 1]:
            raise RuntimeError("the sink is broken")

    def run() -> None:
        frame = a_stream(session, shop.log(), max_rows_per_batch=4, rows_per_partition=3)
        stream = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    shop.say(*map(str, range(8)))
    with pytest.raises(PySparkException, match="the sink is broken"):
        run()
    shop.say(*map(str, range(8, 11)))
    shop.overlay.stop("b")
    shop.overlay._documents["b"]["log_port"] = 0
    shop.overlay.start("b")  # the broker, too, may restart: at another port, here
    run()
    assert attempts == [
        (0, [0, 1, 2, 3]),
        (1, [4, 5, 6, 7]),
        (1, [4, 5, 6, 7]),  # again, and nothing that came meanwhile
        (2, [8, 9, 10]),
    ]


def test_rows_of_a_stream_are_published_and_received(
    shop: Shop, session: SparkSession, tmp_path: Path
) -> None:
    listener = PahoClient(shop.overlay.port("b"))
    listener.subscribe("results/#")
    shop.say('{"n": 1}', '{"n": 2}', '{"n": 3}')
    doubled = a_stream(session, shop.log(), where="n > 1").select(
        f.concat(f.lit("results/"), f.col("offset")).alias("topic"),
        (f.get_json_object(f.col("payload").cast("string"), "$.n") * 2)
        .cast("int")
        .cast("string")
        .alias("payload"),
        f.create_map(f.lit("by"), f.lit("spark")).alias("properties"),
        f.lit(250).alias("deadline_ms"),
        f.lit(4.5).alias("price"),
        f.lit(True).alias("durable"),
    )
    sink = doubled.writeStream.format("tidings").option("url", shop.mqtt)
    sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
    sink.queryName("doubled").trigger(availableNow=True).start().awaitTermination()
    eventually(lambda: len(listener.messages) == 2)
    listener.close()
    assert sorted(listener.messages) == [("results/1", b"4"), ("results/2", b"6")]
    stated = dict(listener.properties[0].UserProperty)
    assert stated == {"deadline-ms": "250", "price": "4.5", "durable": "true", "by": "spark"}


def test_a_broker_that_is_down_is_a_clear_error(session: SparkSession) -> None:
    (port,) = free_ports(1)
    place = f"127.0.0.1:{port}"
    source = session.read.format("tidings").options(url=f"tidings://{place}/orders", **IMPATIENT)
    with pytest.raises(PySparkException, match=f"log_port is {port}"):
        source.load().collect()
    rows = session.sql("select 't' as topic, 'p' as payload")
    sink = rows.write.format("tidings").mode("append").options(url=f"mqtt://{place}", **IMPATIENT)
    with pytest.raises(PySparkException, match="cannot be reached: Connection refused"):
        sink.save()


def test_stored_traces_are_read_by_the_same_name(session: SparkSession, tmp_path: Path) -> None:
    rows = [a_publication(n, float(n), ("b2/s:t", "b3/s:t")) for n in range(5)]
    folder = write_tables(tmp_path, tables_of({"r": rows}))
    asked = session.read.format("tidings").option("traces", str(folder))
    found = asked.option("table", "published").load()
    assert found.schema == TidingsDataSource({"traces": "x", "table": "published"}).schema()
    taken = found.collect()
    assert sorted(row.message for row in taken) == [0, 1, 2, 3, 4]
    assert taken[0].attributes == said("b2/s:t", "b3/s:t")
    assert asked.option("table", "dropped").load().collect() == []


def a_live_folder(folder: Path, count: int) -> Path:
    for number in range(count):
        rows = tables_of({"r": [a_publication(number, float(number), ("b2/s:t",))]})
        write_tables(folder, rows, f"r-b1-{number:06}")
    return folder


def stored(folder: Path) -> TraceReader:
    return TraceReader(TraceOptions(traces=str(folder), table="published"))


def test_small_files_are_read_by_one_task_and_large_ones_by_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stored(a_live_folder(tmp_path, 7))
    files = sorted((tmp_path / "published").iterdir())
    assert [partition.value for partition in reader.partitions()] == [files]
    monkeypatch.setattr(datasource, "TASK_BYTES", 3 * max(f.stat().st_size for f in files) + 10)
    portions = [partition.value for partition in reader.partitions()]
    assert [len(portion) for portion in portions] == [3, 3, 1]
    monkeypatch.setattr(datasource, "TASK_BYTES", 1)
    portions = [partition.value for partition in reader.partitions()]
    assert portions == [[file] for file in files]


def test_bad_files_of_stored_traces_are_named_and_the_others_are_read(
    tmp_path: Path, session: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    a_live_folder(tmp_path, 5)
    files = sorted((tmp_path / "published").iterdir())
    files[1].write_bytes(files[1].read_bytes()[:-20])
    (tmp_path / "published" / "copy.parquet").write_bytes(files[2].read_bytes())
    turned = pq.read_table(files[3])  # the same columns, in another order
    pq.write_table(turned.select(turned.column_names[::-1]), files[3])
    (tmp_path / "dropped").mkdir()
    (tmp_path / "dropped" / "bad.parquet").write_bytes(b"of another table")
    asked = session.read.format("tidings").options(traces=str(tmp_path), table="published")
    assert sorted(row.message for row in asked.load().collect()) == [0, 2, 3, 4]
    stored(tmp_path).partitions()
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("tidings:")]
    assert any(str(files[1]) in line for line in told)
    assert not any("bad.parquet" in line for line in told)


def the_example() -> ModuleType:
    path = ROOT / "docs" / "guide" / "spark-client.py"
    spec = importlib.util.spec_from_file_location("spark_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_of_the_guide_answers_every_order_once(
    session: SparkSession, tmp_path: Path
) -> None:
    example = the_example()
    logs = [
        {"name": name, "topic": f"{name}/#", "flush_s": 0.02} for name in ("orders", "invoices")
    ]
    with an_overlay(tmp_path / "broker", "b", log=logs) as overlay:
        shop, checkpoint = Shop(overlay), str(tmp_path / "checkpoint")
        base = shop.log("orders").removesuffix("/orders")
        for run in (1, 2):
            example.publish_orders(session, shop.mqtt, 14)
            eventually(lambda r=run: shop.next() == 14 * r)
            example.answer_orders(session, base, shop.mqtt, checkpoint).awaitTermination()
        eventually(lambda: shop.next("invoices") == 16)  # of seven prices four are above 3
        found = example.read_invoices(session, base).collect()
    answered = sorted(json.loads(row.invoice)["order"] for row in found)
    assert len(set(answered)) == 16
    assert {json.loads(row.invoice)["total"] for row in found} == {12.0, 15.0, 18.0, 21.0}


def test_the_configuration_beside_the_example_has_what_it_asks_for() -> None:
    config = load(ROOT / "docs" / "guide" / "spark-client.toml")
    assert (config.mqtt_port, config.log_port) == (1883, 7100)
    assert [log.name for log in config.log] == ["orders", "invoices"]
