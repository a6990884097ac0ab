"""Brokers as an operator runs them: `tidings broker FILE`, with what it says on both streams."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from support.children import start
from support.live import eventually, free_ports

from tidings.live.config import BrokerConfig, Neighbour
from tidings.testbed.broker_files import to_toml

WITHIN_S = 300.0  # a busy machine may take a minute to start a Python


class BrokerProgram:
    """One broker, which can be ended and started again with another file."""

    def __init__(self, config: BrokerConfig, folder: Path, *options: str) -> None:
        self.config, self._options = config, options or ("--json",)
        self._file, self._said = folder / f"{config.name}.toml", folder / f"{config.name}.out"
        self._log = folder / f"{config.name}.log"
        self._process: subprocess.Popen[Any] | None = None

    def start(self, **changes: Any) -> None:
        """Starts it, and waits until it listens; what it said before is gone."""
        self._file.write_text(to_toml(replace(self.config, **changes)))
        command = [sys.executable, "-m", "tidings", "broker", self._file, *self._options]
        with self._said.open("w") as said, self._log.open("w") as log:
            self._process = start(command, stdin=subprocess.PIPE, stdout=said, stderr=log)
        process = self._process
        eventually(lambda: process.poll() is not None or self.said(), WITHIN_S)
        assert process.poll() is None, self.log()

    def send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait()

    def memory_bytes(self) -> int:
        """What its process holds in memory."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return 1024 * int(kilobytes)

    def loaded(self) -> str:
        """What the system says of the files in its memory, libraries among them."""
        assert self._process is not None
        return Path(f"/proc/{self._process.pid}/maps").read_text()

    def said(self) -> list[str]:
        """Its lines on standard output."""
        return self._said.read_text().splitlines()

    def ready(self) -> dict[str, Any]:
        """What it announced when it listened."""
        announced: dict[str, Any] = json.loads(self.said()[0])
        return announced

    def log(self) -> list[str]:
        """Its lines on standard error."""
        return self._log.read_text().splitlines()

    def logged(self, *words: str) -> list[str]:
        """Waits until there are log lines with all these words."""
        return eventually(
            lambda: [li for li in self.log() if all(w in li for w in words)], WITHIN_S
        )


def a_line_of(folder: Path, *names: str, **fields: Any) -> dict[str, BrokerProgram]:
    """Brokers of which each has a link to the next; none is started yet."""
    link_ports = dict(zip(names, free_ports(len(names)), strict=True))
    programs = {}
    for place, name in enumerate(names):
        near = [names[p] for p in (place - 1, place + 1) if 0 <= p < len(names)]
        config = BrokerConfig(
            name=name,
            mqtt_port=0,
            link_port=link_ports[name],
            neighbour=tuple(Neighbour(name=other, port=link_ports[other]) for other in near),
            traces=str(folder / "traces"),
            flush_s=0.1,
            **fields,
        )
        programs[name] = BrokerProgram(config, folder)
    return programs
