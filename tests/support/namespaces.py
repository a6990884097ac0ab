"""Network namespaces joined by a cable whose one direction has a limited rate."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2"}


def why_not() -> str:
    """What is missing; empty if nothing is."""
    if missing := [tool for tool in ("ip", "tc") if shutil.which(tool) is None]:
        return f"there is no {' and no '.join(missing)} here"
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    name = f"td{os.getpid()}x"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "exec", name, "tc", *_limit("lo", "1mbit"))
    except subprocess.CalledProcessError as failure:
        return f"no network namespace with tc tbf can be made: {failure.stderr.decode().strip()}"
    finally:
        _remove(name)
    return ""


@contextmanager
def cable(label: str, rate: str) -> Iterator[dict[str, str]]:
    """Two namespaces, by the ends `a` and `b`; what leaves `a` for `b` has this rate, and there is
    a kernel's queue of several seconds to drown in."""
    names = {end: f"td{os.getpid()}{label}{end}" for end in ADDRESSES}
    try:
        for name in names.values():
            _run("ip", "netns", "add", name)
        ends = ("veth0", "netns", names["a"], "type", "veth", "peer", "name", "veth0")
        _run("ip", "link", "add", *ends, "netns", names["b"])
        for end, name in names.items():
            _run("ip", "-n", name, "addr", "add", f"{ADDRESSES[end]}/24", "dev", "veth0")
            for device in ("lo", "veth0"):
                _run("ip", "-n", name, "link", "set", device, "up")
        _run("ip", "netns", "exec", names["a"], "tc", *_limit("veth0", rate))
        yield names
    finally:
        for name in names.values():
            _remove(name)


@contextmanager
def within(name: str) -> Iterator[None]:
    """What this thread opens and starts meanwhile, it opens and starts in the namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        with (Path("/run/netns") / name).open() as there:
            _enter(there.fileno())
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _limit(device: str, rate: str) -> list[str]:
    limited = ["root", "tbf", "rate", rate, "burst", "5kb", "limit", "1mb"]
    return ["qdisc", "add", "dev", device, *limited]


def _remove(name: str) -> None:
    with suppress(subprocess.CalledProcessError):
        _run("ip", "netns", "del", name)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
