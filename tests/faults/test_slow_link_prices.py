"""On a link that is offered twice its rate, `eb` earns more than `fifo`, and messages wait in the
broker's queue, not in the kernel's."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.attempts import in_real_time
from support.live import free_ports
from support.namespaces import ADDRESSES, cable, why_not, within
from support.slow_link import MESSAGE_S, RATE_BYTES_PER_S, Outcome, compare

SECONDS = 10.0
POLICIES = ("fifo", "eb")
DELAY_S = 0.010
CABLE_S = 0.010  # there and back, with what a busy machine adds

pytestmark = pytest.mark.timing


def judge(outcomes: dict[str, Outcome], round_trip_s: float) -> None:
    """`round_trip_s` is that of the empty link."""
    fifo, eb = outcomes["fifo"], outcomes["eb"]
    assert fifo.earned > 0
    assert eb.earned >= 1.5 * fifo.earned
    for outcome in (fifo, eb):
        assert outcome.round_trip_s < 3 * MESSAGE_S + round_trip_s
        assert 0.85 < outcome.utilisation < 1.05
        assert outcome.transmissions < 1.05, "no storm of repeats, nothing given up too soon"
    assert fifo.waited_s > 5 * fifo.round_trip_s


def test_eb_earns_more_than_fifo_on_an_emulated_link(tmp_path: Path) -> None:
    emulate = {"delay_s": DELAY_S, "rate_bytes_per_s": RATE_BYTES_PER_S}
    host = {"a": "127.0.0.1", "b": "127.0.0.1"}

    def outcomes(attempt: int) -> dict[str, Outcome]:
        links = {
            policy: {
                "host": host,
                "port": dict(zip("ab", free_ports(2), strict=True)),
                "emulate": emulate,
            }
            for policy in POLICIES
        }
        return compare(tmp_path / str(attempt), SECONDS, links)

    in_real_time(outcomes, partial(judge, round_trip_s=2 * DELAY_S))


def test_eb_earns_more_than_fifo_on_a_real_link(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    link = {"host": ADDRESSES, "port": {"a": 7001, "b": 7002}}
    links: dict[str, dict[str, Any]] = dict.fromkeys(POLICIES, link)

    def outcomes(attempt: int) -> dict[str, Outcome]:
        with ExitStack() as cables:
            names = {policy: cables.enter_context(cable(policy, "1mbit")) for policy in POLICIES}
            inside = {policy: partial(_within_end, ends) for policy, ends in names.items()}
            return compare(tmp_path / str(attempt), SECONDS, links, inside)

    in_real_time(outcomes, partial(judge, round_trip_s=CABLE_S))


def _within_end(ends: dict[str, str], end: str) -> AbstractContextManager[None]:
    return within(ends[end])
