"""Brokers in a row on loopback, ours and those of others; a row may be a single broker."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from _brokers import MOSQUITTO_SETTINGS, free_port, program, running


class Chain(NamedTuple):
    """Brokers in a row that run: a publisher is at the first, a subscriber at the last."""

    language: str
    near: int
    far: int
    processes: list[int]


@contextmanager
def ours(strategy: str, brokers: int, folder: Path) -> Iterator[Chain]:
    """Each linked with the next."""
    names = [f"b{number}" for number in range(brokers)]
    mqtt, links = ({name: free_port() for name in names} for _ in range(2))
    with ExitStack() as stack:
        processes = list[int]()
        for number, name in enumerate(names):
            beside = [*names[max(0, number - 1) : number], *names[number + 1 : number + 2]]
            text = f'name = "{name}"\nmqtt_port = {mqtt[name]}\nlink_port = {links[name]}\n'
            text += f'traces = "{folder / "traces"}"\n'
            for other in beside:
                text += f'[[neighbour]]\nname = "{other}"\nport = {links[other]}\n'
            config = folder / f"{name}.toml"
            config.write_text(text + f'[broker]\nstrategy = "{strategy}"\n')
            command = [sys.executable, "-m", "tidings", "broker", str(config)]
            processes.append(stack.enter_context(running(command, mqtt[name])))
        yield Chain("mqtt", mqtt[names[0]], mqtt[names[-1]], processes)
    shutil.rmtree(folder / "traces", ignore_errors=True)


@contextmanager
def bridged(brokers: int, folder: Path) -> Iterator[Chain]:
    """Each hands everything to the next; the last starts first."""
    ports, processes = [free_port() for _ in range(brokers)], list[int]()
    with ExitStack() as stack:
        for number, port in reversed(list(enumerate(ports))):
            text = f"listener {port} 127.0.0.1\n{MOSQUITTO_SETTINGS}"
            if number + 1 < brokers:
                text += f"connection b{number}\naddress 127.0.0.1:{ports[number + 1]}\n"
                text += "topic # out 0\n"
            config = folder / f"bridge{number}.conf"
            config.write_text(text)
            command = [program("mosquitto"), "-c", str(config)]
            processes.append(stack.enter_context(running(command, port)))
        yield Chain("mqtt", ports[0], ports[-1], processes)


@contextmanager
def leaves(brokers: int, folder: Path) -> Iterator[Chain]:
    """Each is a leaf of the next."""
    ports, hubs = ([free_port() for _ in range(brokers)] for _ in range(2))
    processes = list[int]()
    with ExitStack() as stack:
        for number, port in reversed(list(enumerate(ports))):
            remote = ""
            if number + 1 < brokers:
                remote = f'remotes [{{url: "nats://127.0.0.1:{hubs[number + 1]}"}}]'
            text = f'server_name n{number}\nlisten "127.0.0.1:{port}"\n'
            text += f'leafnodes {{ listen "127.0.0.1:{hubs[number]}"\n{remote} }}\n'
            config = folder / f"nats{number}.conf"
            config.write_text(text)
            command = [program("nats-server"), "-c", str(config)]
            processes.append(stack.enter_context(running(command, port)))
        yield Chain("nats", ports[0], ports[-1], processes)
