"""How does a broker run as a process?

It says where it listens, writes what an operator has to know to standard error (an attached one
only warnings), and ends in good order on SIGTERM or SIGINT. A broker that is attached to another
process (`tidings up`) also reports changes of its status on standard output, reads from standard
input when the run began and which links come and go, and ends when standard input does, so that it
never outlives the process that started it. A broker that cannot store anything any more ends by
itself with exit code 1, so that neighbours route around it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from contextlib import suppress
from typing import Any

import uvloop

from tidings.live.config import BrokerConfig
from tidings.live.server import LiveBroker

STATUS_EVERY_S = 0.1
SWITCH_INTERVAL_S = 0.001  # the thread that writes traces delays the event loop by no more
GC_THRESHOLD = 50_000  # few objects here are in cycles, and searching for them is expensive
STORE_FAILED = 1  # exit code

logger = logging.getLogger("tidings.broker")


def run_broker(config: BrokerConfig, attached: bool = False, as_json: bool = True) -> None:
    """Runs a broker until it is told to stop."""
    who = "" if attached else f"{config.name}: "  # its parent adds the name itself
    # To standard error. Whoever watches many brokers is told of trouble only.
    level = logging.WARNING if attached else logging.INFO
    logging.basicConfig(format=f"{who}%(message)s", level=level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        failed = runner.run(_run(config, attached, as_json))
    if failed:
        sys.exit(STORE_FAILED)


async def _run(config: BrokerConfig, attached: bool, as_json: bool) -> bool:
    """Runs the broker from start to end; true if it ended because its store failed."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    live = LiveBroker(config, stop.set)
    await live.start()
    _announce(live, config, as_json)
    reporter = None
    if attached:
        await loop.connect_read_pipe(lambda: _Attachment(live, stop), sys.stdin)
        reporter = asyncio.create_task(_keep_reporting(live))
    await stop.wait()
    if reporter:
        reporter.cancel()
    await live.stop()
    if attached:
        with suppress(OSError):  # its parent may be gone
            # Again, because the last rows were written, or lost, when it stopped.
            _say({"lost_trace_rows": live.trace.lost_rows})
    return live.driver.failed


class _Attachment(asyncio.Protocol):
    """Standard input: lines of JSON, and its end."""

    def __init__(self, live: LiveBroker, stop: asyncio.Event) -> None:
        self._live, self._stop, self._kept = live, stop, b""

    def data_received(self, data: bytes) -> None:
        *lines, self._kept = (self._kept + data).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, said: dict[str, Any]) -> None:
        if "started_at" in said:
            self._live.origin.started_at = float(said["started_at"])
        elif "link" in said:
            self._live.links.link(said["link"])
        elif "unlink" in said:
            self._live.links.unlink(said["unlink"])

    def eof_received(self) -> None:
        self._stop.set()

    def connection_lost(self, problem: Exception | None) -> None:
        self._stop.set()


async def _keep_reporting(live: LiveBroker) -> None:
    reported: dict[str, Any] = {}
    while True:
        if (status := live.status()) != reported:
            _say(status)
            reported = status
        await asyncio.sleep(STATUS_EVERY_S)


def _announce(live: LiveBroker, config: BrokerConfig, as_json: bool) -> None:
    if as_json:
        ports = {"mqtt_port": live.mqtt_port, "link_port": live.link_port}
        if config.log:
            ports["log_port"] = live.log_port
        _say({"ready": config.name, **ports})
        logger.info("%s", _place(live, config))
        return
    print(
        f"Broker {config.name} {_place(live, config)}; its trace goes to {config.traces}, durable "
        f"messages to {config.store_file()}.{_logs(live, config)} Ctrl-C ends it.",
        flush=True,
    )


def _place(live: LiveBroker, config: BrokerConfig) -> str:
    host = config.host
    return f"serves MQTT on {host}:{live.mqtt_port} and neighbours on {host}:{live.link_port}"


def _logs(live: LiveBroker, config: BrokerConfig) -> str:
    if not config.log:
        return ""
    names, place = ", ".join(log.name for log in config.log), f"{config.log_host}:{live.log_port}"
    return f" It keeps logs ({names}), read at tidings://{place}/{config.log[0].name}."


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
