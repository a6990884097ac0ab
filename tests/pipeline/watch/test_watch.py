"""Windows of a watch are those that plain Python computes, through bad files and late rows;
and violations reach whoever listens."""

import json
import shutil
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.live import PahoClient, an_overlay, eventually, free_ports
from support.traces import a_delivery, a_publication, a_wish, said, tables_of, write_tables
from support.watching import TIMING, all_rows, as_found, by_hand, write_segment, write_traces
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.core.errors import ConfigError, TidingsError
from tidings.core.trace import Delivered, Published, Row
from tidings.pipeline.transforms.windows import Window
from tidings.pipeline.watch.job import Watch, finished_windows
from tidings.pipeline.watch.violations import ViolationPublisher
from tidings.pipeline.watch.wishes import LatestWishes
from tidings.traces.files import parquet_files

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_traces(tmp_path_factory.mktemp("watched") / "traces")


def watched(
    spark: SparkSession,
    traces: Path,
    memory: Path,
    warn: Callable[[str], None],
    most_rows: int,
) -> Watch:
    """A watch that has come to the end of what is there; its windows are complete."""
    watch = Watch(spark, traces, memory, TIMING, len, warn)
    while watch.step(most_rows):
        pass
    watch.finish()
    watch.stop()
    return watch


def spoil(traces: Path) -> int:
    """Adds files that are none; how many."""
    whole = (traces / "delivered" / "r-b1-000003.parquet").read_bytes()
    (traces / "delivered" / "r-b9-000001.parquet").write_bytes(whole[: len(whole) // 2])
    pq.write_table(pa.table({"x": [1]}), traces / "published" / "foreign.parquet")
    rows = pq.read_table(traces / "published" / "r-b1-000002.parquet")
    unknown = rows.replace_schema_metadata({"tidings": "9"})
    pq.write_table(unknown, traces / "published" / "unknown.parquet")
    ahead = tables_of({"r": [a_publication(1, time.time() + 9e6, ("b2/c:a",))]})
    write_tables(traces, ahead, "ahead")
    return 4


def test_windows_are_those_computed_by_hand_whatever_else_lies_in_the_folder(
    spark: SparkSession, traces: Path, tmp_path: Path
) -> None:
    spoilt = shutil.copytree(traces, tmp_path / "traces")
    bad = spoil(spoilt)
    shutil.copytree(traces / "published", spoilt / "published" / "copy")
    (spoilt / "published" / ".unfinished.parquet").write_text("not yet")
    own = Published(3.0, "b1", 9, "$tidings/violations/a", 10, 0.1, 1.0, "d-tree", said("b2/c:a"))
    write_segment(spoilt, 99, [own], run="other")
    warnings: list[str] = []
    watch = watched(spark, spoilt, tmp_path / "memory", warnings.append, 600)
    assert as_found(finished_windows(tmp_path / "memory")) == by_hand(all_rows())
    assert (watch.status.late_rows, watch.status.refused_files) == (0, bad)
    assert len(warnings) == bad
    for name in ("r-b9-000001", "foreign", "unknown", "ahead"):
        assert any(f"{name}.parquet" in warning for warning in warnings)


def test_windows_go_on_when_nothing_is_delivered_and_late_rows_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    traces, found = tmp_path / "traces", list[Window]()
    lost = [a_publication(n, n / 2, ("b2/x:t", "b3/y:t"), 0.1) for n in range(62)]
    late = [a_publication(1000, 1.0, ("b2/x:t", "b3/y:t"), 0.1), a_delivery(4, 2.0, "b2/x:t")]
    watch = Watch(spark, traces, tmp_path / "memory", TIMING, found.extend, print)
    for number, rows in enumerate((lost[:60], lost[60:], late)):
        write_segment(traces, number, rows)
        assert watch.step()
    assert not watch.step()
    watch.finish()
    watch.stop()
    assert watch.status.late_rows == 3
    spans = [(window.from_s, window.expected, window.delivered) for window in found]
    assert spans == [*((5.0 * number, 20, 0) for number in range(6)), (30.0, 4, 0)]
    assert {(window.loss_ratio, window.delay_p95_s) for window in found} == {(1.0, None)}


def test_a_checkpoint_keeps_to_its_division_of_time(tmp_path: Path, spark: SparkSession) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "watch.json").write_text('{"window_s":60.0,"watermark_s":3.0,"wait_s":1.0}')
    with pytest.raises(ConfigError, match="--window-s 60 --watermark-s 3") as caught:
        Watch(spark, tmp_path, memory, TIMING, len, print)
    assert caught.value.source == str(memory)


def test_two_watches_cannot_share_a_checkpoint(tmp_path: Path, spark: SparkSession) -> None:
    first = Watch(spark, tmp_path / "traces", tmp_path / "memory", TIMING, len, print)
    with pytest.raises(TidingsError, match="another watch is using"):
        Watch(spark, tmp_path / "traces", tmp_path / "memory", TIMING, len, print)
    first.stop()
    Watch(spark, tmp_path / "traces", tmp_path / "memory", TIMING, len, print).stop()


def test_by_age_clocks_may_differ_by_the_watermark(tmp_path: Path, spark: SparkSession) -> None:
    found, takers = list[Window](), ("b2/x:t", "b3/y:t", "b4/z:t")
    sent = [a_publication(number, 10.0 + number / 2, takers) for number in range(10)]
    taken = list[Row]()
    for row in sent:
        at, message = row.recorded_at, row.message
        taken.append(Delivered(at - 2.5, "b2", message, 0.5, 1, ("b2/x:t",)))  # its clock is slow
        taken.append(Delivered(at + 3.5, "b3", message, 0.75, 1, ("b3/y:t",)))  # its clock is fast
        taken.append(Delivered(at + 1.5, "b4", message, 1.5, 1, ("b4/z:t",)))  # after the wait
    write_segment(tmp_path / "traces", 0, [*sent, *taken])
    timing = msgspec.structs.replace(TIMING, by="age")
    watch = Watch(spark, tmp_path / "traces", tmp_path / "memory", timing, found.extend, print)
    assert watch.step()
    watch.finish()
    watch.stop()
    (window,) = found
    assert (window.expected, window.delivered, window.lost) == (30, 20, 10)
    assert window.delay_p95_s == pytest.approx(0.75)


def test_a_bad_file_of_subscriptions_is_counted_and_one_that_is_gone_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    wishes = LatestWishes(
        write_tables(tmp_path, tables_of({"r": [a_wish("b2/x:t", 0.5)]})), warnings.append
    )
    (tmp_path / "subscribed" / "bad.parquet").write_text("no rows")
    gone = tmp_path / "subscribed" / "gone.parquet"
    listed = [*parquet_files(tmp_path / "subscribed"), gone]
    monkeypatch.setattr("tidings.pipeline.watch.wishes.parquet_files", lambda folder: listed)
    assert wishes.deadlines() == [("r", "b2/x:t", 0.5)]
    assert (wishes.refused, len(warnings)) == (1, 1)
    assert "bad.parquet" in warnings[0]


def test_violations_of_a_live_overlay_reach_those_who_listen(tmp_path: Path) -> None:
    with an_overlay(tmp_path, "b1", "b2") as overlay:
        ears, everything = PahoClient(overlay.port("b2")), PahoClient(overlay.port("b1"))
        ears.subscribe("$tidings/violations/#")
        everything.subscribe("#")
        impatient = PahoClient(overlay.port("b2"), "impatient")
        impatient.subscribe("news/today", deadline_ms="0.001")
        overlay.until_known(3)
        mouth = PahoClient(overlay.port("b1"))
        for _ in range(40):
            mouth.publish("news/today", b"x")
        eventually(lambda: len(impatient.messages) == 40)
        traces = tmp_path / "traces"
        eventually(lambda: rows_in(traces, "delivered") == 80)
        arguments = ["watch", str(traces), "--once", "--json"]
        arguments += ["--url", f"mqtt://127.0.0.1:{overlay.port('b1')}", "--window-s", "86400"]
        run = CliRunner().invoke(app, arguments)
        assert run.exit_code == 0, run.output
        *windows, _ = map(json.loads, run.stdout.splitlines())
        judged = {(w["topic"], w["deadline_s"], w["expected"], w["on_time"]) for w in windows}
        assert judged == {("news/today", None, 40, 40), ("news/today", 1e-6, 40, 0)}
        eventually(lambda: ears.messages)
        ((topic, payload),) = ears.messages
        assert topic == "$tidings/violations/news/today"
        said = json.loads(payload)
        assert (said["expected"], said["on_time"], said["target"]) == (40, 0, 0.99)
        assert said["violated"] is True
        assert said["id"] in {window["id"] for window in windows if window["violated"]}
        assert {heard for heard, _ in everything.messages} == {"news/today"}
        for client in (ears, everything, impatient, mouth):
            client.close()


def rows_in(traces: Path, table: str) -> int:
    """Pairs of a message and a taker."""
    parts = [pq.read_table(file) for file in (traces / table).glob("[!.]*.parquet")]
    return sum(len(row["subscriptions"]) for rows in parts for row in rows.to_pylist())


def test_windows_of_deadlines_that_differ_by_little_have_names_of_their_own() -> None:
    window = Window("r", "t", 0.1234567, 0.0, 5.0, 10, 8, 8, 2, 0.2, 0.8, 0.05)
    others = [msgspec.structs.replace(window, deadline_s=d) for d in (0.1234568, 1e-9, inf)]
    assert len({each.id for each in (window, *others)}) == 4


def test_violations_wait_for_a_broker_that_is_away(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    warnings: list[str] = []
    publisher = ViolationPublisher(f"mqtt://127.0.0.1:{port}", 0.9, warnings.append)
    bad = Window("r", "t", 0.1, 0.0, 5.0, 10, 8, 8, 2, 0.2, 0.8, 0.05)
    good = Window("r", "t", 0.1, 5.0, 10.0, 10, 10, 9, 0, 0.0, 0.9, 0.05)
    publisher.publish([bad, good])
    publisher.publish([])
    assert publisher.published == 0
    assert len(warnings) == 1
    with an_overlay(tmp_path, "b1", mqtt_port=port):
        ears = PahoClient(port)
        ears.subscribe("$tidings/violations/t")
        publisher.publish([])
        eventually(lambda: ears.messages)
        publisher.publish([])
        assert publisher.published == len(ears.messages) == 1
        ears.close()


def test_violations_that_nobody_took_are_told_at_the_end() -> None:
    (port,) = free_ports(1)
    warnings: list[str] = []
    publisher = ViolationPublisher(f"mqtt://127.0.0.1:{port}", 0.9, warnings.append)
    bad = Window("r", "t", 0.1, 0.0, 5.0, 10, 8, 8, 2, 0.2, 0.8, 0.05)
    publisher.publish([bad, bad])
    publisher.end()
    assert warnings[1:] == ["2 violations were not published."]


def test_a_violation_that_fits_no_packet_does_not_hold_up_others(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    warnings: list[str] = []
    publisher = ViolationPublisher(f"mqtt://127.0.0.1:{port}", 0.9, warnings.append)
    good = Window("r", "t", 0.1, 0.0, 5.0, 10, 8, 8, 2, 0.2, 0.8, 0.05)
    unfit = msgspec.structs.replace(good, run="r" * 2_000_000)  # brokers take 1 MiB
    with an_overlay(tmp_path, "b1", mqtt_port=port):
        ears = PahoClient(port)
        ears.subscribe("$tidings/violations/t")
        publisher.publish([unfit, good])
        eventually(lambda: ears.messages)
        ears.close()
    publisher.end()
    assert (publisher.published, publisher.given_up) == (1, 1)
    assert "given up" in warnings[0]
    assert warnings[1:] == ["1 violation was not published."]
