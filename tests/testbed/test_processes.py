"""Brokers as processes: killed and restarted, on a leash, and a whole overlay by one command."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

import pytest
import uvloop
from support.children import start
from support.live import PahoClient, eventually, free_ports

from tidings.core.trace import TABLES
from tidings.live.config import BrokerConfig, Neighbour
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_5, Connect, Publish
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.testbed.broker_files import to_toml
from tidings.testbed.overlay import Overlay
from tidings.testbed.plan import plan
from tidings.testbed.processes import BrokerDied, BrokerProcess
from tidings.traces.files import parquet_files, read_files
from tidings.traces.headline import read_tables
from tidings.traces.schemas import arrow_schema

WITHIN_S = 120.0  # several Pythons start and end, and others want the processor too

TRIANGLE = """
[run]
name = "triangle"
seconds = 1.5
start_s = 0.3
drain_s = 2.0
[topology]
kind = "full-mesh"
brokers = 3
delay_ms = [5.0, 10.0]
[live]
mqtt_port = 0
flush_s = 0.2
[[workload.publisher]]
broker = "b1"
topic = "t"
rate_per_s = 20.0
[[workload.subscriber]]
broker = "b2"
topic = "t"
deadline_ms = 10000.0
[[workload.subscriber]]
broker = "b3"
topic = "#"
where = "colour == 'blue'"
"""


class Process:
    """A `tidings` command, and what it says."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tidings", *arguments]
        self.process = start(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        if self.process.poll() is None:
            self.process.send_signal(number)
        said, complained = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, said, complained


class Pair:
    """Two brokers with a link, as processes."""

    def __init__(self, folder: Path) -> None:
        link_ports, mqtt_ports = free_ports(2), free_ports(2)
        self.port = dict(zip(("n1", "n2"), mqtt_ports, strict=True))
        self._paths, self.running = {}, dict[str, Process]()
        for name, other, here in (("n1", "n2", 0), ("n2", "n1", 1)):
            config = BrokerConfig(
                name=name,
                mqtt_port=self.port[name],
                link_port=link_ports[here],
                neighbour=(Neighbour(name=other, port=link_ports[1 - here]),),
                traces=str(folder / "traces"),
                flush_s=0.1,
            )
            self._paths[name] = folder / f"{name}.toml"
            self._paths[name].write_text(to_toml(config))
            self.start(name)

    def start(self, name: str) -> None:
        self.running[name] = Process("broker", str(self._paths[name]), "--json")
        assert self.running[name].line()["ready"] == name

    def close(self) -> None:
        for process in self.running.values():
            process.end(signal.SIGKILL)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def flows(pair: Pair, here: str, there: str) -> None:
    """Messages get from one broker to the other, sooner or later."""
    listener, speaker = PahoClient(pair.port[there]), PahoClient(pair.port[here])
    listener.subscribe("flow")

    def heard() -> bool:
        speaker.publish("flow", b"")
        return bool(listener.messages)

    eventually(heard)
    listener.close()
    speaker.close()


@pytest.mark.parametrize("victim", ["n1", "n2"])
def test_a_killed_broker_comes_back_and_messages_flow_again(
    pair: Pair, victim: str, tmp_path: Path
) -> None:
    flows(pair, "n1", "n2")
    eventually(lambda: list((tmp_path / "traces" / "published").glob("live-n1-*")))
    assert pair.running[victim].end(signal.SIGKILL)[0] == -signal.SIGKILL
    pair.start(victim)
    flows(pair, "n1", "n2")
    flows(pair, "n2", "n1")
    for process in pair.running.values():
        code, _, complained = process.end()
        assert code == 0
        assert all(": link to n" in li or ": no link" in li for li in complained.splitlines()[1:])
    tables = read_tables(tmp_path / "traces")
    messages = tables["published"]["message"].to_pylist()
    assert len(set(messages)) == len(messages)
    assert tables["carried"].num_rows > 0


@pytest.mark.skipif(not shutil.which("mosquitto_sub"), reason="mosquitto-clients is not installed")
def test_mosquitto_pub_reaches_mosquitto_sub_across_brokers(pair: Pair) -> None:
    flows(pair, "n1", "n2")
    for version in ("mqttv311", "mqttv5"):
        there, here = ["-p", str(pair.port["n2"])], ["-p", str(pair.port["n1"])]
        listen = ["mosquitto_sub", "-V", version, *there, "-t", "m/+", "-v", "-C", "1", "-W", "60"]
        with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as listener:
            while listener.poll() is None:
                speak = ["mosquitto_pub", "-V", version, *here, "-t", "m/x", "-m", "hi"]
                subprocess.run(speak, check=True)
                time.sleep(0.05)
            assert listener.stdout is not None
            assert listener.stdout.read() == "m/x hi\n"


def test_a_bad_file_is_one_paragraph_and_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text('name = "n1"\nmqtt_port = "high"\n')
    code, said, complained = Process("broker", str(path), "--check").end(0)
    assert (code, said) == (2, "")
    assert "mqtt_port" in complained
    assert "Traceback" not in complained
    path.write_text('name = "n1"\n')
    assert Process("broker", str(path), "--check", "--json").end(0)[:2] == (
        0,
        '{"broker":"n1","neighbours":[]}\n',
    )


def up(folder: Path, *arguments: str, scenario: str = TRIANGLE) -> Process:
    path = folder / "scenario.toml"
    path.write_text(scenario)
    return Process("up", str(path), "--traces", str(folder / "traces"), *arguments)


def test_one_command_runs_a_scenario_and_tells_how_it_went(tmp_path: Path) -> None:
    code, said, complained = up(tmp_path, "--json").end(0)
    assert (code, complained) == (0, "")
    result = json.loads(said)
    assert result["published"] == 30
    assert result["unpublished"] == 0
    (subscriber,) = result["subscribers"]
    assert subscriber["subscription"] == "b2/s1:t"
    assert subscriber["on_time_ratio"] == 1.0
    assert result["received"] == 30


def test_a_scheduled_broker_outage_is_a_real_one(tmp_path: Path) -> None:
    outage = '\n[faults]\nschedule = [{ broker = "b2", from_s = 0.8, to_s = 1.0 }]\n'
    process = up(tmp_path, "--json", "--seconds", "120", scenario=TRIANGLE + outage)

    def served_again() -> bool:
        assert process.process.poll() is None, process.end()
        return is_served_again(tmp_path / "traces", "b1", "b2")

    eventually(served_again, WITHIN_S)
    code, said, complained = process.end(signal.SIGINT)
    assert code == 0, complained
    assert json.loads(said)["published"] > 0


def is_served_again(traces: Path, broker: str, neighbour: str) -> bool:
    """Their link was down and up again, and something has crossed it that was said after that."""
    changes = [r for r in rows(traces, "link_changed", broker) if r["neighbour"] == neighbour]
    lost_at = min((r["recorded_at"] for r in changes if not r["up"]), default=inf)
    back_at = min(
        (r["recorded_at"] for r in changes if r["up"] and r["recorded_at"] > lost_at), default=inf
    )
    said = {r["message"] for r in rows(traces, "published", broker) if r["recorded_at"] > back_at}
    return any(r["message"] in said for r in rows(traces, "delivered", neighbour))


def rows(traces: Path, table: str, broker: str) -> list[dict[str, Any]]:
    """What a broker has recorded until now."""
    found = read_files(parquet_files(traces / table), arrow_schema(TABLES[table]))
    return [row for row in found.to_pylist() if row["broker"] == broker]


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        scenario = TRIANGLE.replace("mqtt_port = 0", f"mqtt_port = {port}")
        code, _, complained = up(tmp_path, scenario=scenario).end(0)
    assert code == 2
    assert f"live.mqtt_port is {port}" in complained
    assert "--set live.mqtt_port=0" in complained


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot reserve a port")
def test_only_a_broker_that_knows_its_port_gets_it_before_it_listens(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(TRIANGLE)
    with ExitStack() as reserved:
        planned = plan(set_up(load(path)), "run", tmp_path / "traces", reserved)
        for broker in planned.brokers.values():
            place = broker.host, broker.link_port
            with socket.socket() as somebody, pytest.raises(OSError, match="in use"):
                somebody.bind(place)
            socket.create_server(place).close()


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/x"])
def test_a_folder_that_cannot_be_written_is_named_before_anything_starts(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    code, said, complained = up(tmp_path, "--traces", str(tmp_path / place)).end(0)
    assert (code, said) == (2, "")
    assert complained.startswith("tidings: --traces: folder is ")
    assert complained.count("\n") == 1


def test_a_host_that_is_not_here_is_named_before_anything_starts(tmp_path: Path) -> None:
    code, said, complained = up(tmp_path, "--set", 'live.host="999.1.1.1"').end(0)
    assert (code, said) == (2, "")
    assert "live.host is '999.1.1.1'" in complained
    assert complained.count("\n") == 1


def test_lost_trace_rows_are_told_by_broker_and_number_and_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "published").touch()  # a file where a folder should be
    code, said, complained = up(tmp_path, "--json").end(0)
    assert code == 1
    assert json.loads(said)["lost_trace_rows"] == 30
    assert "b1: tidings: trace rows cannot be written" in complained
    assert "tidings: 30 trace rows were lost" in complained.splitlines()[-1]


def test_what_brokers_lost_before_they_were_killed_still_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = BrokerConfig(name="n1", mqtt_port=0, traces=str(tmp_path), flush_s=0.05)
    for table in TABLES:
        (tmp_path / table).touch()
    broker = BrokerProcess(config, tmp_path / "n1.toml")

    async def live_twice() -> list[int]:
        lost = []
        for incarnation in (1, 2):
            await broker.start(incarnation)
            before, client = broker.lost_trace_rows, await say_something(broker.mqtt_port)
            while broker.lost_trace_rows == before:
                await asyncio.sleep(0.01)
            client.close()
            lost.append(broker.lost_trace_rows)
            await broker.kill()
        return lost

    first, second = asyncio.run(asyncio.wait_for(live_twice(), WITHIN_S))
    assert 0 < first < second
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("n1: tidings: trace rows cannot be written") for line in lines)
    assert list(broker.last_words) == [line.removeprefix("n1: ") for line in lines]


async def say_something(port: int) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    packets = Connect(MQTT_5, "speaker"), Publish("t", b"")
    writer.writelines(encode(packet, MQTT_5) for packet in packets)
    return writer


def children(process: Process) -> list[int]:
    listed = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text()
    return [int(word) for word in listed.split()]


def until_listening(process: Process) -> list[int]:
    assert process.process.stdout is not None
    while "tidings pub" not in process.process.stdout.readline():
        assert process.process.poll() is None
    return children(process)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_no_broker_outlives_its_parent_even_if_that_is_killed(tmp_path: Path) -> None:
    process = up(tmp_path, "--no-traffic", "--forever")
    brokers = until_listening(process)
    assert len(brokers) == 3
    process.end(signal.SIGKILL)
    eventually(lambda: not any(_alive(broker) for broker in brokers))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_broker_that_dies_by_itself_is_reported_and_the_others_end(tmp_path: Path) -> None:
    process = up(tmp_path, "--no-traffic", "--forever")
    brokers = until_listening(process)
    os.kill(brokers[1], signal.SIGKILL)
    code, _, complained = process.end(0)
    assert code == 1
    assert "ended by itself with exit code -9" in complained
    assert not any(_alive(broker) for broker in brokers)


def test_a_broker_that_dies_while_others_wait_for_their_links_is_reported(tmp_path: Path) -> None:
    ports = dict(zip(("n1", "n2", "nobody"), free_ports(3), strict=True))

    def config(name: str, *others: str) -> BrokerConfig:
        return BrokerConfig(
            name=name,
            mqtt_port=0,
            link_port=ports[name],
            neighbour=tuple(Neighbour(name=other, port=ports[other]) for other in others),
            traces=str(tmp_path / "traces"),
        )

    configs = {"n1": config("n1", "n2", "nobody"), "n2": config("n2", "n1")}

    async def dying() -> None:
        overlay = Overlay(configs, tmp_path / "brokers", time.time)
        try:
            await overlay.start()
            waiting = asyncio.create_task(overlay.complete(0))
            victim = overlay.brokers["n2"]
            while set(victim.status.get("links", ())) != {"n1"}:
                await asyncio.sleep(0.01)
            assert victim._process is not None
            victim._process.kill()
            await waiting
        finally:
            await overlay.stop()

    with pytest.raises(BrokerDied, match="broker n2 ended by itself with exit code -9"):
        asyncio.run(asyncio.wait_for(dying(), WITHIN_S))


def test_ctrl_c_ends_the_run_early_with_its_result(tmp_path: Path) -> None:
    process = up(tmp_path, "--seconds", "60")
    until_listening(process)
    eventually(lambda: list((tmp_path / "traces").glob("delivered/triangle-*")))
    code, said, complained = process.end(signal.SIGINT)
    assert (code, complained) == (0, "")
    assert "b2/s1:t" in said


def _alive(pid: int) -> bool:
    """Whether the process runs; one that waits to be reaped by somebody else does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_broker_that_died_before_the_run_began_is_reported(tmp_path: Path) -> None:
    config = BrokerConfig(name="n1", mqtt_port=0, traces=str(tmp_path))
    broker = BrokerProcess(config, tmp_path / "n1.toml")

    async def begin_without_it() -> None:
        await broker.start(incarnation=1)
        assert broker._process is not None
        broker._process.kill()
        await broker._process.wait()
        broker.begin(time.time())
        broker.check()

    with (
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        pytest.raises(BrokerDied, match="exit code -9"),
    ):
        runner.run(begin_without_it())
