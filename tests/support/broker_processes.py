"""Brokers as processes that report their status, and that a test can stop, kill and start again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.children import start
from support.live import eventually

from tidings.live.config import BrokerConfig
from tidings.testbed.broker_files import to_toml

START_WITHIN_S = 60.0  # several Pythons start at once, and others want the processor too


class BrokerProcess:
    """A broker that can be stopped, killed and started again."""

    def __init__(self, config: BrokerConfig, folder: Path) -> None:
        self.port, self.path = config.mqtt_port, folder / f"{config.name}.toml"
        self.path.write_text(to_toml(config))
        self._said, self._complained = folder / f"{config.name}.out", folder / f"{config.name}.err"

    def start(self) -> None:
        command = [sys.executable, "-m", "tidings.live", str(self.path)]
        with self._said.open("w") as said, self._complained.open("w") as complained:
            self.process = start(command, stdin=subprocess.PIPE, stdout=said, stderr=complained)

    def complaints(self) -> str:
        return self._complained.read_text()

    def until(self, **wanted: Any) -> None:
        """Waits until it reports this: that it listens, its links, how many subscriptions."""
        eventually(lambda: (status := self._status()) | wanted == status, START_WITHIN_S)

    def until_linked(self, *others: str) -> None:
        """Waits until its links are those to these brokers, in whatever order they came up."""
        try:
            eventually(lambda: set(self._status().get("links", ())) == {*others}, START_WITHIN_S)
        except AssertionError:
            there = self._status().get("links", ())
            problem = f"{self.path.stem} is linked with {there}, not {others}; {self.complaints()}"
            raise AssertionError(problem) from None

    def _status(self) -> dict[str, Any]:
        assert self.process.poll() is None, self.complaints()
        lines = self._said.read_text().rpartition("\n")[0].splitlines()
        return {name: value for line in lines for name, value in json.loads(line).items()}

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stdin is not None
        code = self.process.wait(START_WITHIN_S)
        self.process.stdin.close()
        return code
