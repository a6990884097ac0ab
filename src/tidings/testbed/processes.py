"""How does one process run a whole overlay? Each broker is a child process that ends with it.

Each broker is `python -m tidings.live CONFIG`: it reports its status on standard output, is told on
standard input when the run began and which links it has, and ends when standard input closes, so
that no broker outlives its parent even if the parent is killed. Its standard error is passed on,
line by line, with its name before each line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, deque
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tidings.core.errors import TidingsError
from tidings.live.config import BrokerConfig
from tidings.testbed.broker_files import to_toml

READY_WITHIN_S = 60.0  # a busy machine may take many seconds to start several Pythons
STOP_WITHIN_S = 15.0
LOOK_EVERY_S = 0.02
STDERR_LINES = 20  # kept for the report when a broker dies
MAX_LINE_BYTES = 1 << 20  # a client's name, in a warning about it, may have 65,535 bytes


class BrokerDied(TidingsError):
    """A broker process ended by itself; the message has its last words."""


class BrokerProcess:
    """One broker in a process of its own, which can be killed and started again."""

    def __init__(self, config: BrokerConfig, path: Path) -> None:
        """`path` is where the configuration is written for it."""
        self.config, self._path = config, path
        self.mqtt_port = config.mqtt_port
        self.status: dict[str, Any] = {}  # what it last reported
        self.last_words: deque[str] = deque(maxlen=STDERR_LINES)
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._expected_to_run = False
        self._rows_lost_before = 0  # by earlier incarnations
        self._dropped_before = Counter[str]()

    async def start(self, incarnation: int, started_at: float | None = None) -> None:
        """Starts it and waits until it listens."""
        config = replace(
            self.config,
            source="",
            incarnation=incarnation,
            started_at=started_at,
            mqtt_port=self.mqtt_port,  # the same after a restart, because clients come back
        )
        self._path.write_text(to_toml(config), encoding="utf-8")
        command = (sys.executable, "-m", "tidings.live", str(self._path))
        self._rows_lost_before, self._dropped_before = self.lost_trace_rows, self.dropped
        self.status = {}
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
        self._expected_to_run = True
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        reading = (self._read_status(self._process.stdout), self._read_stderr(self._process.stderr))
        self._readers = [asyncio.create_task(task) for task in reading]
        await self._ready()
        self.mqtt_port = self.status.get("mqtt_port", self.mqtt_port)

    @property
    def lost_trace_rows(self) -> int:
        """Rows it recorded that are on no disk, as far as it could tell."""
        return self._rows_lost_before + int(self.status.get("lost_trace_rows", 0))

    @property
    def dropped(self) -> Counter[str]:
        """Copies of messages that it gave up, by reason, as it last reported."""
        return self._dropped_before + Counter(self.status.get("dropped", {}))

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        end_at = loop.time() + READY_WITHIN_S
        while "ready" not in self.status and loop.time() < end_at:
            self.check()
            await asyncio.sleep(LOOK_EVERY_S)

    @property
    def is_there(self) -> bool:
        """Does it listen, as far as is known?"""
        return self._expected_to_run and "ready" in self.status

    def begin(self, started_at: float) -> None:
        """Tells it when the run began: emulated faults are timed from then."""
        self.say({"started_at": started_at})

    def say(self, what: dict[str, Any]) -> None:
        """Tells it something, if it is there."""
        if not self.is_there:
            return
        assert self._process is not None
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():  # it is if the broker has died; see `check`
            self._process.stdin.write(json.dumps(what).encode() + b"\n")

    def check(self) -> None:
        """Raises `BrokerDied` if it ended by itself."""
        process = self._process
        if self._expected_to_run and process and process.returncode is not None:
            words = "\n".join(self.last_words) or "(it wrote nothing to standard error)"
            raise BrokerDied(
                f"broker {self.config.name} ended by itself with exit code {process.returncode}. "
                f"Its last words:\n{words}"
            )

    async def kill(self) -> None:
        """Ends it at once, as a failure would."""
        self._expected_to_run = False
        if self._process and self._process.returncode is None:
            self._process.kill()
        await self._ended()

    async def stop(self) -> None:
        """Ends it in good order, or at once if that takes too long."""
        self._expected_to_run = False
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await self._ended()
        except TimeoutError:
            await self.kill()

    async def _ended(self) -> None:
        if self._process:
            await self._process.wait()
            await asyncio.gather(*self._readers)

    async def _read_status(self, stdout: asyncio.StreamReader) -> None:
        async for line in stdout:
            self.status |= json.loads(line)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            words = line.decode(errors="replace").rstrip()
            self.last_words.append(words)
            print(f"{self.config.name}: {words}", file=sys.stderr, flush=True)
