"""`tidings pub` and `tidings sub` as people run them: processes, at a broker that is one too."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.children import hearing_interrupts, start
from support.commands import tidings_here
from support.live import eventually, free_ports

TIDINGS = [sys.executable, "-m", "tidings"]
PATIENCE_S = 60.0
HEAVY = ("matplotlib", "numpy", "pandas", "pyarrow", "pyspark", "scipy", "uvloop")


def tidings_broker(folder: Path) -> tuple[subprocess.Popen[str], int]:
    file = folder / "broker.toml"
    traces = folder / "traces"
    file.write_text(f'name = "n1"\nmqtt_port = 0\nlink_port = 0\ntraces = "{traces}"\n')
    with hearing_interrupts():
        process = subprocess.Popen(
            [*TIDINGS, "broker", str(file), "--json"], stdout=subprocess.PIPE, text=True
        )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["mqtt_port"]


def mosquitto(folder: Path) -> tuple[subprocess.Popen[str], int]:
    command = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if not command:
        pytest.skip("mosquitto is not installed")
    [port] = free_ports(1)
    process = subprocess.Popen(
        [command, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    eventually(lambda: run("pub", "-t", "here", "anybody?", "-p", port).returncode == 0)
    return process, port


@pytest.fixture(scope="module", params=["tidings", "mosquitto"])
def any_port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The port of a broker: of ours, and of another make."""
    begin = tidings_broker if request.param == "tidings" else mosquitto
    yield from _serving(*begin(tmp_path_factory.mktemp("broker")))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    yield from _serving(*tidings_broker(tmp_path_factory.mktemp("broker")))


def _serving(process: subprocess.Popen[str], port: int) -> Iterator[int]:
    try:
        with process:
            yield port
            process.terminate()
            process.wait(PATIENCE_S)
    finally:
        process.kill()


def run(*arguments: object, **how: Any) -> subprocess.CompletedProcess[Any]:
    command = [*TIDINGS, *map(str, arguments)]
    return subprocess.run(command, **{"capture_output": True, "timeout": PATIENCE_S} | how)


class Sub:
    """`tidings sub` with a terminal for what it says of itself; it is there once it has said so."""

    def __init__(self, *arguments: object) -> None:
        terminal, its_terminal = os.openpty()
        self.process = start(
            [*TIDINGS, "sub", *arguments], stdout=subprocess.PIPE, stderr=its_terminal
        )
        os.close(its_terminal)
        with open(terminal, "rb", buffering=0) as heard:
            self.said = heard.readline().decode().strip()

    def printed(self) -> bytes:
        """All that it prints until it ends by itself, and ends well."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0
        return out


def published(*arguments: object, **how: Any) -> bytes:
    done = run("pub", *arguments, **how)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_a_message_is_published_and_printed(any_port: int) -> None:
    sub = Sub("-t", "alerts/#", "--count", 2, "-v", "-p", any_port)
    place = f"127.0.0.1:{any_port}"
    assert sub.said == f"Waiting until Ctrl-C for 2 messages on alerts/# at {place}."
    said = published("-t", "alerts/storm", '{"level": 4}', "-p", any_port)
    assert said == b"Published 1 message on alerts/storm.\n"
    assert published("-t", "alerts", "", "--quiet", "-p", any_port) == b""
    assert sub.printed() == b'alerts/storm {"level": 4}\nalerts \n'


def test_json_has_topic_payload_properties_and_time(any_port: int) -> None:
    sub = Sub("--json", "--count", 3, "-t", "json/+", "-p", any_port)
    contract = ("--deadline-ms", "60000", "--price", "2.5", "--late", "drop", "--durable")
    ratios = ("--reliability", "0.9", "--availability", "0.99", "--property", "kind=storm")
    names = ("--strategy", "d-tree", "--scheduling", "eb")
    said = published(
        *("-t", "json/text", "ö", "--json", "-p", any_port), *contract, *ratios, *names
    )
    broker = f"127.0.0.1:{any_port}"
    assert json.loads(said) == {"broker": broker, "topic": "json/text", "published": 1}
    published("-t", "json/bytes", "-f", "-", "-p", any_port, input=b"\xff\n\x00")
    twice = ("--property", "a=1", "--property", "a=2", "--property", "a=3=3")
    published("-t", "json/own", "", "-p", any_port, *twice)
    text, data, own = map(json.loads, sub.printed().splitlines())
    assert (text["topic"], text["payload"], text["headers"]) == ("json/text", "ö", {})
    assert text["properties"] == {
        "kind": "storm",
        "deadline-ms": "60000",
        "price": "2.5",
        "late": "drop",
        "reliability": "0.9",
        "availability": "0.99",
        "durable": "true",
        "strategy": "d-tree",
        "scheduling": "eb",
    }
    assert data["payload"] is None
    assert base64.b64decode(data["payload_base64"]) == b"\xff\n\x00"
    assert own["properties"] == {"a": ["1", "2", "3=3"]}
    assert text["time"] <= data["time"] <= own["time"]


def test_lines_are_messages_as_soon_as_they_are_whole(any_port: int) -> None:
    sub = Sub("-t", "lines", "--count", 4, "-p", any_port)
    pub = start(
        [*TIDINGS, "pub", "-t", "lines", "--lines", "-p", any_port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert pub.stdin is not None
    assert sub.process.stdout is not None
    for line in (b"one\n", b"two\r\n"):  # each is heard before the next is written
        pub.stdin.write(line)
        pub.stdin.flush()
        assert sub.process.stdout.readline() == line.replace(b"\r", b"")
    pub.stdin.write(b"\nfour")
    assert pub.communicate(timeout=PATIENCE_S)[0] == b"Published 4 messages on lines.\n"
    assert sub.printed() == b"\nfour\n"


def test_files_and_repetitions(any_port: int, tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_bytes(b"first\nsecond\nthird\n")
    sub = Sub("-t", "files", "--count", 6, "-p", any_port)
    place = ("-t", "files", "-p", any_port)
    published(*place, "--file", file)
    published(*place, "--file", file, "--lines", "--count", 2)
    published(*place, "again", "--count", 3)
    whole = file.read_bytes() + b"\n"
    assert sub.printed() == whole + b"first\nsecond\n" + b"again\n" * 3


def test_only_what_is_wanted_is_printed(port: int) -> None:
    sub = Sub("-t", "level", "-t", "other", "--where", "level >= 3", "--count", 2, "-p", port)
    for level in (1, 3, 2, 4):
        published("-t", "level", f'{{"level": {level}}}', "-p", port)
    assert sub.printed() == b'{"level": 3}\n{"level": 4}\n'


def test_ctrl_c_ends_a_subscription_without_a_word(port: int) -> None:
    for bound, code in (((), 0), (("--count", 5), 130)):
        sub = Sub("-p", port, *bound)
        published("-t", "a", "hello", "-p", port)
        assert sub.process.stdout is not None
        assert sub.process.stdout.readline() == b"hello\n"
        sub.process.send_signal(signal.SIGINT)
        assert sub.process.communicate(timeout=PATIENCE_S)[0] == b""
        assert sub.process.returncode == code


def test_ctrl_c_ends_a_publisher_that_waits_for_lines(port: int) -> None:
    sub = Sub("-t", "typed", "--count", 1, "-p", port)
    pub = start(
        [*TIDINGS, "pub", "-t", "typed", "-l", "-p", port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert pub.stdin is not None
    pub.stdin.write(b"one\n")
    pub.stdin.flush()
    assert sub.printed() == b"one\n"
    pub.send_signal(signal.SIGINT)
    assert pub.wait(PATIENCE_S) == 130
    assert pub.stderr is not None
    assert pub.stderr.read() == b""


def test_seconds_end_a_subscription_and_tell_what_is_missing(port: int) -> None:
    done = run("sub", "-t", "nothing", "--seconds", "0.2", "-p", port)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = run("sub", "-t", "nothing", "--seconds", "0.2", "--count", "3", "-p", port)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"tidings: 0 of 3 messages came within 0.2 s.\n"


def test_a_reader_that_has_seen_enough_is_no_error(port: int) -> None:
    sub = Sub("-t", "pipe", "-p", port)
    assert sub.process.stdout is not None
    sub.process.stdout.close()

    def ended() -> bool:
        published("-t", "pipe", "x", "-p", port)
        return sub.process.poll() is not None

    eventually(ended)
    assert sub.process.returncode == 0


def test_a_broker_that_goes_away_is_told(tmp_path: Path) -> None:
    process, port = tidings_broker(tmp_path)
    with process:
        sub = start(
            [*TIDINGS, "sub", "-t", "a", "-p", port],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        pub = start(
            [*TIDINGS, "pub", "-t", "a", "-l", "-p", port],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert pub.stdin is not None
        assert sub.stdout is not None
        os.set_blocking(sub.stdout.fileno(), False)

        def both_are_there() -> bool:  # QoS 0 keeps nothing for a subscriber that is late
            pub.stdin.write(b"x\n")
            pub.stdin.flush()
            return sub.stdout.read(1) is not None

        eventually(both_are_there)
        process.terminate()
        process.wait(PATIENCE_S)
    for client in (sub, pub):
        assert client.wait(PATIENCE_S) == 1
        assert client.stderr is not None
        said = client.stderr.read().decode()
        assert "the broker is shutting down" in said
        assert said.count("\n") == 1


MISTAKES = [
    (("pub", "-t", "a/#", "x"), "no wildcards"),
    (("pub", "-t", "a"), "pub: MESSAGE is '', but accepted is: a text, or --file FILE"),
    (("pub", "-t", "a", "x", "--lines"), "none, with --file or --lines"),
    (("pub", "-t", "a", "x", "--deadline-ms", "abc"), "pub: --deadline-ms is 'abc', but"),
    (("pub", "-t", "a", "x", "--price=-1"), "accepted is: a number from 0."),
    (("pub", "-t", "a", "x", "--late", "maybe"), "accepted is: deliver or drop."),
    (("pub", "-t", "a", "x", "--property", "colour"), "accepted is: name=value."),
    (("pub", "-t", "a", "x", "--property", "deadlinems=1"), "or --deadline-ms."),
    (("pub", "-t", "a", "--file", "no-such-file"), "no-such-file: No such file"),
    (("pub", "-t", "a", "x", "--strategy", "dtree"), "Did you mean 'd-tree'?"),
    (("pub", "-t", "a", "x", "--scheduling", "lifo"), "Did you mean 'fifo'?"),
    (("sub", "-t", "a/#/b"), "must be the last level"),
    (("sub", "--seconds", "nan"), "sub: --seconds is nan, but accepted is:"),
    (("sub", "--reliability", "2"), "accepted is: a number from 0 to 1."),
    (("sub", "--where", "level >="), "refuses the subscription to #: bad where predicate at"),
    (("sub", "-t", "$share/g/a"), "shared subscriptions are not offered."),
]


@pytest.mark.parametrize(("arguments", "problem"), MISTAKES)
def test_a_mistake_is_one_paragraph(port: int, arguments: tuple[str, ...], problem: str) -> None:
    code, out, said = tidings_here(*arguments, "-p", port)
    assert (code, out) == (2, "")
    assert said.startswith("tidings: ")
    assert problem in said


def test_a_misspelt_option_or_command_is_met_with_the_right_one() -> None:
    assert "--deadline-ms" in run("pub", "--deadlinems", "1", text=True).stderr
    assert "'pub'" in run("publ", text=True).stderr


@pytest.mark.parametrize("command", [("pub", "-t", "a", "x"), ("sub",)])
def test_where_no_broker_is_the_way_to_start_one_is_told(command: tuple[str, ...]) -> None:
    [port] = free_ports(1)
    done = run(*command, "-p", port, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    [said] = done.stderr.splitlines()
    assert said.startswith(f"tidings: no broker is at 127.0.0.1:{port}: Connection refused. ")
    assert "`make run`" in said


@pytest.mark.parametrize("command", ["pub", "sub"])
def test_small_commands_import_nothing_large(command: str) -> None:
    code = f"import sys, tidings.cli.{command}; print(*sorted(set(sys.modules) & set({HEAVY})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
