"""What a log holds can be read again by offset: after a crash, beside a writer, over TCP."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import a_message
from support.children import start
from support.live import PahoClient, an_overlay, eventually

from tidings.core.contract import Contract
from tidings.core.errors import ConfigError, FileError
from tidings.core.message import Message
from tidings.live.config import parse
from tidings.live.logs import message_log
from tidings.live.logs import server as log_server
from tidings.live.logs.message_log import Ahead, Gone, MessageLog
from tidings.live.logs.records import (
    FIRST_LINE_BYTES,
    RECORD_HEADER_BYTES,
    LogError,
    LogRecord,
    decode_records,
    encode_record,
    good_bytes,
    whole_records,
)
from tidings.live.server import LiveBroker

PLENTY = 1 << 20
CONTRACT = Contract(deadline_s=0.5, price=3.0)
SAID = Message(7, "orders/eu", b'{"price": 4}', CONTRACT, (("n", "1"), ("n", "2")))


class Wall:
    """A wall clock that a test can set."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def a_log(folder: Path, keep_bytes: int = PLENTY, keep_s: float = inf, **more: Any) -> MessageLog:
    return MessageLog(folder, keep_bytes, keep_s, **more)


def filled(log: MessageLog, count: int, payload: bytes = b"x" * 100) -> None:
    """Appends messages whose ids are their offsets."""
    for _ in range(count):
        log.append(1.0, a_message(id=log._next, payload=payload), 0.25)
    log.write(log.take())


def all_of(log: MessageLog, limit: int = 1000, limit_bytes: int = PLENTY) -> list[LogRecord]:
    """What a reader finds that begins with the oldest and asks again and again."""
    found, offset = list[LogRecord](), log.oldest
    while data := log.read(offset, limit, limit_bytes):
        found += decode_records(data, offset)
        offset = found[-1].offset + 1
    return found


def newest_file(folder: Path) -> Path:
    return max(folder.glob("*.log"))


# ---- what is kept


def test_a_message_comes_back_as_it_was_with_its_contract_and_age(tmp_path: Path) -> None:
    log = a_log(tmp_path / "deep" / "down")
    log.append(12.5, SAID, 0.25)
    assert (log.oldest, log.next, log.read(0, 10, PLENTY)) == (0, 0, b""), "it is not written yet"
    log.write(log.take())
    (found,) = all_of(log)
    assert found == LogRecord(
        0, 12.5, 7, "orders/eu", SAID.payload, (("n", "1"), ("n", "2")), 0.5, 3.0, 0.25
    )
    log.close()


def test_offsets_go_on_after_a_restart_under_the_same_id(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    filled(log, 3)
    log.close()
    again = a_log(tmp_path)
    filled(again, 2)
    assert (again.id, again.oldest, again.next, again.cut_bytes) == (log.id, 0, 5, 0)
    assert [(r.offset, r.message) for r in all_of(again)] == [(n, n) for n in range(5)]
    again.close()


def test_a_log_that_was_thrown_away_is_another_one(tmp_path: Path) -> None:
    first, second = a_log(tmp_path / "a"), a_log(tmp_path / "b")
    assert first.id != second.id
    first.close()
    second.close()


def test_a_log_that_another_process_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_log, "LOCKED_WITHIN_S", 0.1)
    holder = a_log(tmp_path)
    with pytest.raises(LogError, match="in use by another process"):
        a_log(tmp_path)
    holder.close()
    a_log(tmp_path).close()


def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / f"{0:020}.log"
    foreign.write_text("something that somebody else has written, and wants to keep")
    before = foreign.read_bytes()
    with pytest.raises(LogError, match="not a log of this version"):
        a_log(tmp_path)
    assert foreign.read_bytes() == before


# ---- crashes


@pytest.mark.parametrize("torn", [b"\0", b"\0\0\1\0", b"\0\0\0\x04abcdbody", b"\xff" * 300])
def test_a_torn_tail_is_cut_off_counted_and_written_over(tmp_path: Path, torn: bytes) -> None:
    log = a_log(tmp_path)
    filled(log, 3)
    log.close()
    with newest_file(tmp_path).open("ab") as file:
        file.write(torn)
    again = a_log(tmp_path)
    assert (again.next, again.cut_bytes) == (3, len(torn))
    filled(again, 1)
    assert [record.message for record in all_of(again)] == [0, 1, 2, 3]
    again.close()
    assert a_log_reopens_clean(tmp_path)


def a_log_reopens_clean(folder: Path) -> bool:
    log = a_log(folder)
    log.close()
    return log.cut_bytes == 0


def test_a_segment_that_was_being_made_in_a_crash_is_made_again(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    filled(log, 2)
    log.close()
    (tmp_path / f"{2:020}.log").write_bytes(b"tidings log")
    again = a_log(tmp_path)
    assert (again.id, again.oldest, again.next) == (log.id, 0, 2)
    filled(again, 1)
    assert [record.message for record in all_of(again)] == [0, 1, 2]
    again.close()


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 600), st.integers(0, 255))
def test_whatever_a_crash_leaves_the_good_part_is_the_longest_run_of_whole_records(
    payloads: list[bytes], cut: int, last_byte: int
) -> None:
    line = b"x" * FIRST_LINE_BYTES
    records = [encode_record(LogRecord(n, 0.0, n, "t", p)) for n, p in enumerate(payloads)]
    data = line + b"".join(records)
    kept = data[: max(FIRST_LINE_BYTES, len(data) - cut)] + bytes((last_byte,))
    good, offset = good_bytes(kept, 0)
    whole = max(n for n in range(len(records) + 1) if kept.startswith(line + b"".join(records[:n])))
    assert (good, offset) == (len(line + b"".join(records[:whole])), whole)


def test_a_killed_broker_loses_at_most_what_was_not_flushed(tmp_path: Path) -> None:
    config = tmp_path / "b.toml"
    config.write_text(
        f'name = "b"\nmqtt_port = 0\ntraces = "{tmp_path}"\n'
        '[[log]]\nname = "all"\ntopic = "#"\nflush_s = 0.01\n'
    )
    process = start(
        [sys.executable, "-m", "tidings", "broker", str(config), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        ready = json.loads(process.stdout.readline())
        client = PahoClient(ready["mqtt_port"])
        for number in range(200):
            client.publish("t", str(number))
        seen = eventually(lambda: (s := offsets(ready["log_port"], "all"))["next"] > 20 and s)
        os.kill(process.pid, signal.SIGKILL)
        client.vanish()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    log = a_log(tmp_path / "logs" / "b" / "all")
    found = [int(record.payload) for record in all_of(log)]
    assert found == list(range(len(found)))
    assert len(found) >= seen["next"]
    log.close()


def test_a_new_segment_says_whose_it_is_before_any_power_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = set[str](), os.fsync

    def remember(file: int) -> None:
        synced.add(Path(f"/proc/self/fd/{file}").readlink().name)
        sync(file)

    monkeypatch.setattr(os, "fsync", remember)
    log = a_log(tmp_path, keep_bytes=4096, fsync=False)
    filled(log, 12)
    log.close()
    segments = {path.name for path in tmp_path.glob("*.log")}
    assert len(segments) > 2
    assert segments < synced


# ---- what goes


def test_no_more_is_kept_than_was_asked_for_and_the_oldest_goes_first(tmp_path: Path) -> None:
    log = a_log(tmp_path, keep_bytes=4096)
    for _ in range(30):
        filled(log, 7)
        assert log.size_bytes <= 4096
        assert sum(path.stat().st_size for path in tmp_path.glob("*.log")) == log.size_bytes
    assert log.next == 210
    found = [record.message for record in all_of(log)]
    assert found == list(range(log.oldest, 210))
    assert len(found) > 15
    with pytest.raises(Gone, match=f"offset 3 is not kept any more; the oldest is {log.oldest}"):
        log.read(3, 1, PLENTY)
    with pytest.raises(Ahead, match="offset 211 is not there yet; the next is 210"):
        log.read(211, 1, PLENTY)
    log.close()
    again = a_log(tmp_path, keep_bytes=4096)
    assert [record.message for record in all_of(again)] == found
    again.close()


def test_what_is_too_old_goes_and_the_next_offset_is_remembered(tmp_path: Path) -> None:
    wall = Wall()
    log = a_log(tmp_path, keep_s=80.0, wall=wall)
    for _ in range(5):
        filled(log, 2)
        wall.at += 20.0
    wall.at += 5.0
    log.write([])
    assert 0 < log.oldest < 10
    wall.at += 200.0
    log.write([])
    log.write([])
    assert (log.oldest, log.next) == (10, 10)
    log.close()
    again = a_log(tmp_path, keep_s=80.0, wall=wall)
    filled(again, 1)
    assert [record.offset for record in all_of(again)] == [10]
    again.close()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=60),
    st.integers(1, 20),
    st.integers(1, 3000),
)
def test_every_way_of_reading_in_pieces_gives_the_same(
    sizes: list[int], limit: int, limit_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = a_log(Path(folder), keep_bytes=8 * 2000, fsync=False)
        for size in sizes:
            filled(log, 1, b"p" * size)
        whole = all_of(log)
        assert all_of(log, limit, limit_bytes) == whole
        for record in whole:
            data = log.read(record.offset, limit, limit_bytes)
            assert decode_records(data, record.offset)[0] == record
        log.close()


# ---- disks that fail


def no_room(file: int, data: bytes) -> None:
    os.write(file, data[: len(data) // 2])  # as disks do: half of it still fits
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("keep_bytes", [PLENTY, 4096])
def test_a_full_disk_stops_the_log_and_leaves_what_was_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_bytes: int
) -> None:
    log = a_log(tmp_path, keep_bytes=keep_bytes)
    filled(log, 3)
    with monkeypatch.context() as patch:
        patch.setattr(message_log, "write_all", no_room)
        filled(log, 4)
    assert "No space left on device" in log.stopped
    filled(log, 2)
    assert log.lost == 6
    assert [record.message for record in all_of(log)] == [0, 1, 2]
    log.close()
    again = a_log(tmp_path, keep_bytes=keep_bytes)
    assert (again.next, again.cut_bytes) == (3, 0)
    again.close()


def test_a_segment_that_cannot_be_made_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_new_segment(file: int, data: bytes) -> None:
        if data.startswith(b"tidings log"):
            raise OSError(28, "No space left on device")
        os.write(file, data)

    log = a_log(tmp_path, keep_bytes=4096)
    monkeypatch.setattr(message_log, "write_all", no_new_segment)
    filled(log, 12)
    assert "No space left on device" in log.stopped
    log.close()
    assert [place for place in open_files() if place.is_relative_to(tmp_path)] == []


def open_files() -> Iterator[Path]:
    """Of this process; threads of other tests may close theirs meanwhile."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield entry.readlink()


def test_a_disk_that_is_too_slow_stops_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_log, "MAX_WAITING_BYTES", 1000)
    log = a_log(tmp_path)
    for number in range(30):
        log.append(1.0, a_message(id=number, payload=b"x" * 100), 0.0)
    assert "too slow" in log.stopped
    log.write(log.take())
    assert log.next + log.lost == 30
    assert [record.message for record in all_of(log)] == list(range(log.next))
    log.close()


def test_damage_in_an_old_segment_is_named_and_not_served_as_something_else(tmp_path: Path) -> None:
    log = a_log(tmp_path, keep_bytes=1 << 16)
    filled(log, 200)
    oldest = min(tmp_path.glob("*.log"))
    data = bytearray(oldest.read_bytes())
    data[FIRST_LINE_BYTES + RECORD_HEADER_BYTES + 5] ^= 0xFF
    oldest.write_bytes(data)
    with pytest.raises(LogError, match="offset 0 is damaged"):
        decode_records(log.read(0, 10, PLENTY), 0)
    data[FIRST_LINE_BYTES] = 0xFF
    oldest.write_bytes(data)
    with pytest.raises(LogError, match="damaged at offset 0"):
        log.read(0, 10, PLENTY)
    log.close()


def test_a_segment_that_somebody_has_shortened_is_named(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    filled(log, 3)
    record_bytes = len(log.read(0, 1, PLENTY))
    os.truncate(newest_file(tmp_path), FIRST_LINE_BYTES + 2 * record_bytes - 20)
    assert len(decode_records(log.read(0, 10, PLENTY), 0)) == 1
    for offset in (1, 2):
        with pytest.raises(LogError, match="is damaged: it ends within offset 1"):
            log.read(offset, 10, PLENTY)
    log.close()


# ---- readers beside a writer


def test_readers_beside_a_writer_see_whole_records_in_order(tmp_path: Path) -> None:
    log = a_log(tmp_path, keep_bytes=1 << 14)
    done, problems = threading.Event(), list[str]()

    def follow() -> None:
        offset = 0
        while not done.is_set() or offset < log.next:
            try:
                records = decode_records(log.read(offset, 50, 4000), offset)
            except Gone:
                offset = log.oldest
                continue
            if [record.message for record in records] != list(range(offset, offset + len(records))):
                problems.append(f"at {offset}")
            offset += len(records)

    readers = [threading.Thread(target=follow) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(40):
        filled(log, 7)
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []
    log.close()


# ---- a broker that keeps logs


LOGS = [{"name": "orders", "topic": "orders/#", "flush_s": 0.02}]


def ask(port: int, target: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def offsets(port: int, log: str) -> dict[str, Any]:
    return json.loads(ask(port, f"/log/{log}/offsets")[1])  # type: ignore[no-any-return]


def records(port: int, log: str, offset: int = 0) -> list[LogRecord]:
    status, body = ask(port, f"/log/{log}?from={offset}")
    assert status == 200
    return decode_records(body, offset)


@contextmanager
def a_broker(folder: Path, **fields: Any) -> Iterator[Any]:
    with an_overlay(folder, "b", **{"log": LOGS, **fields}) as overlay:
        yield overlay


def test_a_log_gets_what_any_broker_of_the_overlay_publishes_once(tmp_path: Path) -> None:
    with an_overlay(tmp_path, "a", "b", log=LOGS) as overlay:
        overlay.until_known(2)
        here, there = PahoClient(overlay.port("a")), PahoClient(overlay.port("b"))
        listener = PahoClient(overlay.port("b"))
        listener.subscribe("orders/#")
        here.publish("orders/1", b"one", deadline_ms="500", price="3", colour="red")
        here.publish("other", b"not for the log")
        there.publish("orders/2", b"two")
        ports = [overlay.brokers[name].log_port for name in "ab"]
        for port in ports:
            eventually(lambda p=port: offsets(p, "orders")["next"] == 2)
        eventually(lambda: len(listener.messages) == 2)
        found = [{r.topic: r for r in records(port, "orders")} for port in ports]
        for client in (here, there, listener):
            client.close()
    for by_topic in found:
        assert {t: r.payload for t, r in by_topic.items()} == {
            "orders/1": b"one",
            "orders/2": b"two",
        }
        one = by_topic["orders/1"]
        assert (one.deadline_s, one.price) == (0.5, 3.0)
        assert ("colour", "red") in one.properties
    assert found[0]["orders/1"].age_s == 0.0 < found[1]["orders/1"].age_s < 60.0
    assert found[0]["orders/1"].message == found[1]["orders/1"].message


def test_nobody_can_take_a_log_s_place_by_its_name(tmp_path: Path) -> None:
    with a_broker(tmp_path) as overlay:
        client = PahoClient(overlay.port("b"), "$log-orders")
        client.subscribe("orders/#")
        client.close()
        speaker = PahoClient(overlay.port("b"))
        speaker.publish("orders/1", b"still logged")
        port = overlay.brokers["b"].log_port
        eventually(lambda: offsets(port, "orders")["next"] == 1)
        speaker.close()


def test_a_restarted_broker_goes_on_with_its_log(tmp_path: Path) -> None:
    with a_broker(tmp_path) as overlay:
        for number in range(2):
            client = PahoClient(overlay.port("b"))
            client.publish("orders/1", str(number))
            client.publish("orders/1", b"last")
            port = overlay.brokers["b"].log_port
            eventually(lambda p=port, n=number: offsets(p, "orders")["next"] == 2 * n + 2)
            client.close()
            overlay.stop("b")
            overlay.start("b")
        found = records(overlay.brokers["b"].log_port, "orders")
        assert [record.payload for record in found] == [b"0", b"last", b"1", b"last"]


def test_a_clean_stop_writes_what_waits_behind_the_slow_write_of_another_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, began = MessageLog.write, threading.Event()

    def slowly(log: MessageLog, records: list[bytes]) -> None:
        began.set()
        time.sleep(0.3)
        write(log, records)

    two = [{"name": name, "topic": "#", "flush_s": 0.02} for name in ("one", "two")]
    monkeypatch.setattr(MessageLog, "write", slowly)
    with a_broker(tmp_path, log=two) as overlay:
        client = PahoClient(overlay.port("b"))
        for number in range(3):
            client.publish("t", str(number))
        assert began.wait(60)
        kept = [entry.kept for entry in overlay.brokers["b"].logs.by_name.values()]
        eventually(lambda: [log._next for log in kept] == [3, 3])
        time.sleep(0.1)  # most likely both have taken some of it, and only one is being written
        client.close()
        overlay.stop("b")
    for name in ("one", "two"):
        log = a_log(tmp_path / "traces" / "logs" / "b" / name)
        assert [record.payload for record in all_of(log)] == [b"0", b"1", b"2"], name
        log.close()


def test_a_full_disk_stops_the_log_but_not_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with a_broker(tmp_path) as overlay:
        client = PahoClient(overlay.port("b"))
        client.subscribe("orders/#")
        with monkeypatch.context() as patch:
            patch.setattr(message_log, "write_all", no_room)
            client.publish("orders/1", b"one")
            eventually(lambda: overlay.status("b")["stopped_logs"] == ["orders"])
        client.publish("orders/1", b"two")
        eventually(lambda: len(client.messages) == 2)
        eventually(lambda: overlay.status("b")["subscriptions"] == 1)
        told = offsets(overlay.brokers["b"].log_port, "orders")
        client.close()
    assert "No space left on device" in told["stopped"]
    assert [r.getMessage() for r in caplog.records if "log orders has stopped" in r.getMessage()]


def test_a_log_that_cannot_be_opened_is_named_before_anything_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_log, "LOCKED_WITHIN_S", 0.1)
    held = a_log(tmp_path / "traces" / "logs" / "b" / "orders")
    try:
        with pytest.raises(ConfigError, match="in use by another process"), a_broker(tmp_path):
            pass
    finally:
        held.close()
    with a_broker(tmp_path):  # and nothing was left locked
        pass


def test_a_link_model_that_is_gone_at_the_start_leaves_no_log_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_log, "LOCKED_WITHIN_S", 0.1)
    config = parse({"name": "b", "traces": str(tmp_path), "log": LOGS}, "broker.toml")
    with pytest.raises(FileError, match=r"nowhere: No such file .*broker\.toml: link_model"):
        LiveBroker(msgspec.structs.replace(config, link_model="nowhere"))
    a_log(tmp_path / "logs" / "b" / "orders").close()


@pytest.mark.parametrize(
    ("document", "field", "accepted"),
    [
        ({"log": [{"name": "a", "topic": "a/#/b"}]}, "log[0].topic", "last level"),
        ({"log": [{"name": "a/b", "topic": "a"}]}, "log", "regex"),
        ({"log": [{"name": "..", "topic": "a"}]}, "log", "regex"),
        ({"log": [{"name": "a", "topic": "a"}] * 2}, "log[1].name", "of its own"),
        ({"log": [{"name": "a", "topic": "a", "keep_bytes": 10}]}, "keep_bytes", ">= 4096"),
        ({"log": [{"name": "a"}]}, "log[0]", "topic"),
        ({"log_port": 70_000}, "log_port", "<= 65535"),
    ],
)
def test_a_fault_in_a_log_s_table_is_named(
    document: dict[str, Any], field: str, accepted: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"name": "n1", **document}, "broker.toml")
    assert field in caught.value.field
    assert accepted in str(caught.value)


# ---- requests


@pytest.fixture(scope="module")
def log_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A log of ten records, served."""
    with a_broker(tmp_path_factory.mktemp("served")) as overlay:
        client = PahoClient(overlay.port("b"))
        for number in range(10):
            client.publish("orders/1", str(number))
        port = overlay.brokers["b"].log_port
        eventually(lambda: offsets(port, "orders")["next"] == 10)
        yield port
        client.close()


@pytest.mark.parametrize(
    ("target", "status", "problem"),
    [
        ("/", 404, "nothing is at /"),
        ("/log/nothing?from=0", 404, "there is: orders"),
        ("/log/orders/offsets/x", 404, "nothing is at"),
        ("/log/orders", 400, "from is None"),
        ("/log/orders?from=-1", 400, "from is '-1'"),
        ("/log/orders?from=%D9%A1", 400, "a whole number"),
        ("/log/orders?from=99999999999999999999", 400, "a whole number"),
        ("/log/orders?from=0&limit=0", 400, "limit=RECORDS"),
        ("/log/orders?from=0&frmo=1", 400, "accepted are"),
        ("/log/orders?from=11", 416, "the next is 10"),
        ("/log/orders?from=0&id=other", 410, "made anew"),
    ],
)
def test_a_bad_request_is_answered_with_what_is_accepted(
    log_port: int, target: str, status: int, problem: str
) -> None:
    found, body = ask(log_port, target)
    assert found == status
    assert problem in json.loads(body)["error"]


def test_logs_are_listed_and_read_in_pieces(log_port: int) -> None:
    assert [entry["log"] for entry in json.loads(ask(log_port, "/log")[1])] == ["orders"]
    status, body = ask(log_port, "/log/orders?from=4&limit=3")
    assert status == 200
    assert [record.payload for record in decode_records(body, 4)] == [b"4", b"5", b"6"]
    assert ask(log_port, "/log/orders?from=10") == (200, b"")


def say(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        said = b""
        while part := sock.recv(65_536):
            said += part
        return said


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET /log SPDY/3\r\n\r\n", b"400"),
        (b"POST /log HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", b"405"),
        (b"GET /log HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", b"400"),
        (b"GET /log HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"GET /log?" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET /log/%00/offsets HTTP/1.1\r\n\r\n", b"404"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"404"),
    ],
)
def test_what_is_not_http_is_refused_and_the_server_lives_on(
    log_port: int, data: bytes, status: bytes
) -> None:
    assert say(log_port, data).startswith(b"HTTP/1.1 " + status)
    assert ask(log_port, "/log")[0] == 200


def test_half_a_request_and_then_silence_costs_nobody_else_anything(log_port: int) -> None:
    assert say(log_port, b"GET /log HT") == b""
    assert ask(log_port, "/log")[0] == 200


def test_a_connection_serves_several_requests_until_told_to_close(log_port: int) -> None:
    request = b"GET /log/orders?from=9 HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /log/orders?from=10 HTTP/1.1\r\nConnection: close\r\n\r\n"
    said = say(log_port, request * 3 + last + request)
    assert len(re.findall(rb"HTTP/1.1 200 OK", said)) == 4


def test_too_many_readers_are_turned_away(log_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_server, "MAX_CONNECTIONS", 1)
    with socket.create_connection(("127.0.0.1", log_port), timeout=60) as first:
        first.sendall(b"GET /log HTTP/1.1\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200")
        assert ask(log_port, "/log")[0] == 503
    eventually(lambda: ask(log_port, "/log")[0] == 200)


def test_a_reader_too_many_is_turned_away_before_it_has_said_a_word(
    log_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_server, "MAX_CONNECTIONS", 1)
    with socket.create_connection(("127.0.0.1", log_port), timeout=60) as first:
        first.sendall(b"GET /log HTTP/1.1\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", log_port), timeout=60) as second:
            said = b"".join(iter(lambda: second.recv(1000), b""))
        assert said.startswith(b"HTTP/1.1 503")
        assert b"try again later" in said
    eventually(lambda: ask(log_port, "/log")[0] == 200)


def test_a_reader_that_takes_nothing_is_cut_off_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_server, "TAKEN_WITHIN_S", 2.0)
    with a_broker(tmp_path) as overlay:
        client, port = PahoClient(overlay.port("b")), overlay.brokers["b"].log_port
        for _ in range(8):
            client.publish("orders/1", b"x" * 900_000)
        eventually(lambda: offsets(port, "orders")["next"] == 8)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(b"GET /log/orders?from=0 HTTP/1.1\r\n\r\n" * 20)
            assert len(records(port, "orders", 7)) == 1
            eventually(lambda: _is_cut_off(slow))
        assert len(records(port, "orders", 7)) == 1
        client.close()


def _is_cut_off(sock: socket.socket) -> bool:
    try:
        sock.sendall(b"x")
    except OSError:
        return True
    return False


def test_what_is_served_is_what_lies_on_the_disk(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    filled(log, 5)
    served = log.read(0, 100, PLENTY)
    assert newest_file(tmp_path).read_bytes()[FIRST_LINE_BYTES:] == served
    assert len(list(whole_records(served))) == 5
    log.close()


def test_a_log_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=rf"log_port is {port}"),
            a_broker(tmp_path, log_port=port),
        ):
            pass
    with (
        pytest.raises(ConfigError, match="log_host is '999"),
        a_broker(tmp_path, log_host="999.1.1.1"),
    ):
        pass
