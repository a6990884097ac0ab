"""What was stored is there after a crash, and nothing leaves that should have been stored first."""

import asyncio
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import a_destination, a_message, a_parcel

from tidings.broker.broker import Broker
from tidings.broker.codec import Decoder, encode
from tidings.broker.effects import Effect, Forget, Send, Store
from tidings.broker.frames import Ack, Data
from tidings.broker.settings import Settings
from tidings.core.errors import ConfigError
from tidings.core.links.conditions import Conditions
from tidings.core.message import Envelope, Message
from tidings.core.parcel import Parcel
from tidings.core.rng import Draws
from tidings.live import store as store_module
from tidings.live.clock import wall_clock
from tidings.live.config import parse
from tidings.live.driver import Driver
from tidings.live.journal.frames import Began, encode_frame
from tidings.live.links.emulation import Emulation, Origin
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.server import LiveBroker
from tidings.live.store import LONGEST_S, MessageStore, StoreError
from tidings.traces.live_files import TraceFiles

SAID = Message(7, "t/x", b"payload", properties=(("n", "1"),), headers=b"\x01\x01")


class Wall:
    """A wall clock that a test can set."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def after_a_crash(path: Path, wall: Wall | None = None, now: float = 0.0) -> list[Parcel]:
    """What a new incarnation finds if the process that has the store open is no more."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.journal"
        for suffix in (".journal", ".committed"):
            shutil.copy(path.with_suffix(suffix), copy.with_suffix(suffix))
        found = MessageStore(copy, wall or Wall())
        assert found.reports == []
        try:
            return found.restore(now)
        finally:
            found.close()


def owed(parcels: list[Parcel]) -> dict[int, set[str]]:
    return {p.message.id: {d.broker for d in p.destinations} for p in parcels}


# ---- what is kept


def test_a_parcel_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "n1.journal"
    store = MessageStore(path, Wall())
    here, there = a_destination("b2", (0.5, 3)), a_destination("b3", (inf, 1), expires_s=9.0)
    store.keep(a_parcel(here, there, message=SAID, born_at=3.0, path=("a", "n1")), now=5.0)
    store.commit()
    (found,) = after_a_crash(path, now=100.0)
    assert found.message == SAID
    assert found.destinations == (here, there)
    assert (found.born_at, found.expires_at) == (98.0, inf)
    assert (found.path, found.strategy, found.durable) == (("a", "n1"), "d-tree", True)
    assert found.size_bytes == 32 + 3 + 7
    store.close()


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "n1.journal")
    store.keep(a_parcel("b2", message=SAID), 0.0)
    assert store.urgent
    assert after_a_crash(store.path) == []
    store.commit()
    assert not store.urgent
    assert owed(after_a_crash(store.path)) == {7: {"b2"}}
    store.close()


def test_striking_out_waits_for_company_and_is_done_at_the_end(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "n1.journal")
    store.keep(a_parcel("b2", "b3", message=SAID), 0.0)
    store.commit()
    store.forget(7, ("b3",))
    assert not store.urgent
    assert owed(after_a_crash(store.path)) == {7: {"b2", "b3"}}
    store.close()
    again = MessageStore(store.path)
    assert owed(again.restore(0.0)) == {7: {"b2"}}
    again.forget(7, ("b2", "b4"))
    again.forget(8, ("b2",))
    again.close()
    assert after_a_crash(store.path) == []


def test_a_copy_that_came_back_outlives_the_answer_to_the_one_that_left(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "n1.journal")
    store.keep(a_parcel("b2", message=SAID), 0.0)  # it leaves, and the answer is lost
    store.keep(a_parcel("b2", message=SAID), 1.0)  # it comes back, for all other ways are blocked
    store.forget(7, ("b2",))  # the answer to a repeat
    store.commit()
    assert owed(after_a_crash(store.path)) == {7: {"b2"}}
    store.forget(7, ("b2",))
    store.commit()
    assert after_a_crash(store.path) == []
    store.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.integers(1, 3), st.sets(st.sampled_from("bcd"), min_size=1)),
        st.tuples(st.just("forget"), st.integers(1, 3), st.sets(st.sampled_from("bcd"))),
        st.tuples(st.just("commit"), st.just(0), st.just(set[str]())),
        st.tuples(st.just("restart"), st.just(0), st.just(set[str]())),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_after_every_commit_the_disk_holds_what_a_count_of_copies_says(
    steps: list[tuple[str, int, set[str]]],
) -> None:
    held: Counter[tuple[int, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        store = MessageStore(Path(folder) / "n1.journal")
        for verb, message, brokers in [*steps, ("commit", 0, set[str]())]:
            if verb == "keep":
                store.keep(a_parcel(*sorted(brokers), message=a_message(id=message)), 0.0)
                held.update((message, broker) for broker in brokers)
            elif verb == "forget":
                store.forget(message, tuple(sorted(brokers)))
                held -= Counter((message, broker) for broker in brokers)
            elif verb == "commit":
                store.commit()
                found = owed(after_a_crash(store.path))
                assert {(m, b) for m, brokers in found.items() for b in brokers} == set(held)
            else:
                store.close()
                store = MessageStore(store.path)
                store.restore(0.0)
                held = Counter(set(held))
        store.close()


def test_the_longest_stored_come_first(tmp_path: Path) -> None:
    wall = Wall()
    store = MessageStore(tmp_path / "n1.journal", wall)
    for message in (3, 1, 2):
        wall.at += 1
        store.keep(a_parcel("b2", message=a_message(id=message)), 0.0)
    store.commit()
    assert list(owed(after_a_crash(store.path))) == [3, 1, 2]
    store.close()


# ---- age


@pytest.mark.parametrize(
    ("downtime_s", "counted_s"), [(60.0, 60.0), (0.0, 0.0), (-3600.0, 0.0), (1e10, LONGEST_S)]
)
def test_downtime_is_age_and_a_clock_set_back_makes_nobody_younger(
    tmp_path: Path, downtime_s: float, counted_s: float
) -> None:
    wall = Wall()
    store = MessageStore(tmp_path / "n1.journal", wall)
    store.keep(a_parcel("b2", message=SAID, born_at=2.0), now=2.5)
    store.close()
    wall.at += downtime_s
    again = MessageStore(store.path, wall)
    (found,) = again.restore(now=1_000.0)
    again.close()
    assert found.born_at == pytest.approx(1_000.0 - 0.5 - counted_s)


def test_however_old_a_message_is_a_neighbour_still_takes_it(tmp_path: Path) -> None:
    wall = Wall(0.0)
    store = MessageStore(tmp_path / "n1.journal", wall)
    store.keep(a_parcel("b2", message=SAID, born_at=-1e9), now=5.0)
    store.close()
    wall.at = 2e9
    again = MessageStore(store.path, wall)
    (found,) = again.restore(now=0.0)
    again.close()
    frame = Data(1, Envelope(SAID, -found.born_at, found.destinations, found.path, found.strategy))
    assert Decoder().feed(encode(frame)) == [frame]


# ---- what can be wrong


def not_a_store(path: Path) -> None:
    path.write_bytes(b"these are my notes, not a store" * 100)


def of_a_later_version(path: Path) -> None:
    path.write_bytes(encode_frame(1, 0, 0, 0, Began(99, "0" * 32)))


def a_folder(path: Path) -> None:
    path.mkdir()


def another_program_s_database(path: Path) -> None:
    database = sqlite3.connect(path.with_suffix(".db"))
    database.execute("CREATE TABLE notes (text)")
    database.commit()
    database.close()


DAMAGES = [not_a_store, of_a_later_version, a_folder, another_program_s_database]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_no_store_is_an_error_and_left_as_it_is(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "n1.journal"
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    config = parse({"name": "n1", "store": str(tmp_path), "traces": str(tmp_path / "traces")}, "x")

    async def live() -> None:
        await LiveBroker(config).start()

    with pytest.raises(ConfigError) as caught:
        asyncio.run(live())
    assert str(caught.value).startswith(f"x: store is {str(tmp_path)!r}, but accepted is: a folder")
    assert str(path.with_suffix("")) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def broker_command(folder: Path, store: Path, **how: Any) -> subprocess.CompletedProcess[str]:
    document = folder / "n1.toml"
    places = f'traces = "{folder / "traces"}"\nstore = "{store}"\n'
    document.write_text(f'name = "n1"\nmqtt_port = 0\n{places}')
    command = [sys.executable, "-m", "tidings", "broker", str(document), "--attached"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **how)


def test_an_unusable_store_is_one_paragraph_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    not_a_store(tmp_path / "n1.journal")
    for store, why in ((tmp_path / "file", "File exists"), (tmp_path, "it is not a store")):
        ended = broker_command(tmp_path, store)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert why in ended.stderr
        assert ended.stderr.count("\n") == 1


def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    MessageStore(folder / "n1.journal").close()
    (folder / "n1.journal").chmod(0o444)
    folder.chmod(0o555)
    script = (
        "import os, sys, pathlib; from tidings.live.store import MessageStore, StoreError\n"
        "os.chdir(sys.argv[1]); os.geteuid() or os.seteuid(65534)  # rights do not bind root\n"
        "for name in ('n1.journal', 'new.journal', 'new/n1.journal'):\n"
        "    try: MessageStore(pathlib.Path(name))\n"
        "    except StoreError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    complaints = ended.stdout.splitlines()
    folder.chmod(0o755)
    assert [line.split(" cannot be used: ")[0] for line in complaints] == [
        "n1.journal",
        "new.journal",
        "new/n1.journal",
    ]
    assert not list(folder.glob("new*"))


def test_two_brokers_do_not_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOCKED_WITHIN_S", 0.1)
    first = MessageStore(tmp_path / "n1.journal")
    with pytest.raises(StoreError, match="in use by another process"):
        MessageStore(tmp_path / "n1.journal")
    first.close()
    MessageStore(tmp_path / "n1.journal").close()


WRITE_UNTIL_FULL = """
import os, resource, signal, sys
from pathlib import Path
from support.builders import a_message, a_parcel
from tidings.live.store import MessageStore, StoreError
store, written = MessageStore(Path(sys.argv[1])), 0
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    while written < 100_000:
        for number in range(written, written + 10):
            store.keep(a_parcel("b2", message=a_message(payload=bytes(500), id=number)), 0.0)
        store.commit()
        written += 10
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
try:
    store.commit()
except StoreError:
    print(written, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_on_a_full_disk_what_was_committed_stays_and_nothing_more_is_promised(
    tmp_path: Path,
) -> None:
    path = tmp_path / "n1.journal"
    command = [sys.executable, "-c", WRITE_UNTIL_FULL, str(path), str(1 << 20)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    complaint, written = ended.stdout.splitlines()
    assert complaint.startswith(f"{path} cannot be written: ")
    assert int(written) > 100
    store = MessageStore(path)
    assert sorted(owed(store.restore(0.0))) == list(range(int(written)))
    store.close()


# ---- the driver: stored before it is said


class Log(list[str]):
    """What happened to the outside world, in order."""


class SpiedStore(MessageStore):
    def __init__(self, path: Path, log: Log) -> None:
        super().__init__(path)
        self._log, self.full = log, False

    def commit(self) -> None:
        self._log.append("commit")
        super().commit()

    def _write(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._write()


class Transport(asyncio.Transport):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self._log.append("write")

    def abort(self) -> None:
        self._log.append("abort")


KEPT: list[Effect] = [Store(a_parcel("c", message=SAID)), Send("a", Ack((1,)), 64, 1)]
PASSED_ON: list[Effect] = [Send("a", Ack((2,)), 64, 1), Forget(7, ("c",))]


def rounds(folder: Path, emulated: bool, full: bool, *effects: list[Effect]) -> Log:
    """Carries out rounds of effects at a broker with a neighbour, and tells what happened."""
    log = Log()

    async def main() -> None:
        trace, store = TraceFiles(folder, "run", "b"), SpiedStore(folder / "b.journal", log)
        broker, clock = Broker("b", Settings(), {"a": None}), wall_clock()
        world = (clock, trace, Deliveries(), store)
        driver = Driver(broker, *world, lambda: log.append("fail"))
        wire = driver.add_wire("a")
        if emulated:
            around = (Draws(1), Origin(None), clock, wire)
            wire.emulation = Emulation(("b", "a"), Conditions(0.0), *around)
        wire.connected(Transport(log))
        store.full = full
        for one in effects:
            driver.carry_out(one, clock())
            await asyncio.sleep(0.005)
        driver.close()
        trace.close()
        log.append("close")
        store.close()

    asyncio.run(main())
    return log


@pytest.mark.parametrize("emulated", [False, True])
def test_a_round_is_on_the_disk_before_anything_of_it_leaves(
    tmp_path: Path, emulated: bool
) -> None:
    assert rounds(tmp_path, emulated, False, KEPT * 3)[:2] == ["commit", "write"]


@pytest.mark.parametrize("emulated", [False, True])
def test_a_round_that_stores_nothing_does_not_wait_for_the_disk(
    tmp_path: Path, emulated: bool
) -> None:
    log = rounds(tmp_path, emulated, False, KEPT, PASSED_ON, [Send("a", Ack((3,)), 64, 1)])
    assert log == ["commit", "write", "write", "write", "close", "commit"]


@pytest.mark.parametrize("emulated", [False, True])
def test_what_cannot_be_stored_is_never_acknowledged(
    tmp_path: Path, emulated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = rounds(tmp_path, emulated, True, PASSED_ON, KEPT, KEPT, PASSED_ON)
    assert [event for event in log if event != "commit"] == ["write", "abort", "fail", "close"]
    (line,) = caplog.messages
    assert line.endswith("left on device. No durable message can be kept, so this broker ends.")
