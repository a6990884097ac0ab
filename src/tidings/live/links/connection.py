"""How does a TCP connection become a link? When both ends have said who they are.

The first frame from both ends is `Hello`. A peer that is unknown, already connected, silent or
malformed is refused with a line in the log; other connections are not affected. All frames of one
read are handled in one round.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, cast

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import PROTOCOL, Frame, Hello
from tidings.core.errors import TidingsError, WireError
from tidings.live.links.notices import why_lost
from tidings.live.links.wire import HIGH_WATER_BYTES, Wire

if TYPE_CHECKING:
    from tidings.live.links.connecting import LinkConnector

HELLO_WITHIN_S = 5.0
MAX_BYTES_BEFORE_HELLO = 4_096  # kept for a peer that has not said who it is
AT_ONCE = 64  # frames; what the broker takes for their time is that of the first
DEAD_AFTER_MS = 10_000  # a connection ends if TCP gets no answer to its bytes for so long
TCP_NOTSENT_LOWAT = 25  # Linux; the name is in `socket` from Python 3.12


class LinkConnection(asyncio.Protocol):
    """One TCP connection to a neighbour, or to a peer that claims to be one."""

    def __init__(self, connector: LinkConnector, expected: str | None) -> None:
        self._connector, self._driver, self._expected = connector, connector.driver, expected
        self._decoder = Decoder()
        self._unknown_bytes = 0  # received before its Hello
        self._wire: Wire | None = None
        self._transport: asyncio.Transport | None = None
        self._hello_timer: asyncio.TimerHandle | None = None
        self._closed_for, self._ending = "", False  # why this side has closed it, if it has
        self.ended, self.was_link = asyncio.Event(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._transport = transport
        _tune(transport.get_extra_info("socket"))
        transport.write(encode(Hello(self._connector.me, PROTOCOL)))
        loop = asyncio.get_running_loop()
        self._hello_timer = loop.call_later(HELLO_WITHIN_S, self._refuse, "it says nothing")

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        try:
            self._take(self._decoder.feed(data))
            if self._wire is None:
                self._count_unknown(len(data))
        except TidingsError as fault:
            self._refuse(str(fault))

    def pause_writing(self) -> None:
        if self._wire:
            self._wire.paused = True

    def resume_writing(self) -> None:
        if self._wire:
            self._wire.resume()

    def connection_lost(self, problem: Exception | None) -> None:
        self._cancel_timer()
        self._connector.gone(self)
        if self._wire:
            self._wire.disconnected()
            self._driver.link_down(self._wire.neighbour)
            if not self._ending:
                why = self._closed_for or why_lost(problem)
                self._connector.notices.down(self._wire.neighbour, why)
        self.ended.set()

    def end(self) -> None:
        """Close, after what was written has left. A neighbour is told that nothing more comes, and
        closes: were this side to close with bytes unread, TCP would tell of a reset instead."""
        self._ending = True
        if self._transport is None:
            self._connector.gone(self)
        elif self._wire is None or self._transport.is_closing():
            self._transport.close()
        else:
            self._wire.flush()
            self._wire.disconnected()
            self._transport.write_eof()

    def _take(self, frames: list[Hello | Frame]) -> None:
        """All frames of a read, in one round, and many of them as one input."""
        driver = self._driver
        with driver.round:
            wire = self._wire
            if wire is None:
                if not frames:
                    return
                wire = self._greet(frames.pop(0))
            heard: list[Frame] = [frame for frame in frames if type(frame) is not Hello]
            if len(heard) < len(frames):
                raise WireError("it says Hello a second time")
            for begin in range(0, len(heard), AT_ONCE):
                now, some = driver.clock(), heard[begin : begin + AT_ONCE]
                effects = driver.broker.receive_all(wire.neighbour, some, now)
                if wire.neighbour in driver.silent:
                    driver.notice_links(effects)
                driver.carry_out(effects, now)

    def _count_unknown(self, size_bytes: int) -> None:
        self._unknown_bytes += size_bytes
        if self._unknown_bytes > MAX_BYTES_BEFORE_HELLO:
            raise WireError(f"it sends {self._unknown_bytes} bytes without a Hello")

    def _greet(self, hello: Hello | Frame) -> Wire:
        if not isinstance(hello, Hello):
            raise WireError("it begins with another frame than Hello")
        if hello.protocol != PROTOCOL:
            raise WireError(
                f"it speaks version {hello.protocol} of the protocol between brokers, and version "
                f"{PROTOCOL} is spoken here: run one version of Tidings in all of an overlay"
            )
        assert self._transport is not None
        wire = self._connector.identify(hello.broker, self._expected)
        wire.connected(self._transport)
        self._wire, self.was_link = wire, True
        self._cancel_timer()
        self._connector.notices.up(wire.neighbour, self._transport.get_extra_info("peername"))
        self._driver.link_up(wire.neighbour)
        wire.open()
        return wire

    def _refuse(self, problem: str) -> None:
        assert self._transport is not None
        name, peer = self._wire and self._wire.neighbour, self._transport.get_extra_info("peername")
        self._connector.notices.refused(name or "", peer, problem)
        self._closed_for = problem
        self._transport.abort()

    def _cancel_timer(self) -> None:
        if self._hello_timer:
            self._hello_timer.cancel()
            self._hello_timer = None


def _tune(link: socket.socket) -> None:
    """Small frames leave at once, the kernel buffers little, and a dead peer is noticed."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        link.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, HIGH_WATER_BYTES)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_MS)
