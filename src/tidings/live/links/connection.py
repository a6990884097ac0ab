"""How does a TCP connection become a link? When both ends have said who they are.

The first frame from both ends is `Hello`; whoever was dialled speaks first. A peer that is unknown,
already connected, silent or malformed is refused with a line in the log, and told why if it speaks
our language; other connections are not affected. All frames of one read are handled in one round.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, cast

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import PROTOCOL, Frame, Hello
from tidings.core.errors import TidingsError, Unwelcome, WireError
from tidings.live.links.notices import address, why_lost
from tidings.live.links.wire import HIGH_WATER_BYTES, Wire

if TYPE_CHECKING:
    from tidings.live.links.connecting import LinkConnector

HELLO_WITHIN_S = 5.0
PART_WITHIN_S = 2.0  # how long a peer may take to close a connection that we have ended
MAX_BYTES_BEFORE_HELLO = 4_096  # kept for a peer that has not said who it is
AT_ONCE = 64  # frames; what the broker takes for their time is that of the first
DEAD_AFTER_MS = 10_000  # a connection ends if TCP gets no answer to its bytes for so long
TCP_NOTSENT_LOWAT = 25  # Linux; the name is in `socket` from Python 3.12


class LinkConnection(asyncio.Protocol):
    """One TCP connection to a neighbour, or to a peer that claims to be one."""

    def __init__(self, connector: LinkConnector, dialled: bool, expected: str | None) -> None:
        self._connector, self._driver = connector, connector.driver
        self.dialled, self.expected = dialled, expected
        self._decoder = Decoder()
        self._unknown_bytes = 0  # received before its Hello
        self._wire: Wire | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None  # for its Hello, or for its end
        self._closed_for, self._ending = "", False  # why this side has closed it, if it has
        self.neighbour = ""  # who it is, once that is known
        self._up_at = 0.0
        # Whether it is known what became of it; if so, whether it was a link, or not needed.
        self.settled, self.was_link, self.needless = asyncio.Event(), False, False
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._transport = transport
        if self._ending:
            transport.abort()
            return
        _tune(transport.get_extra_info("socket"))
        if not self.dialled:
            transport.write(encode(Hello(self._connector.me, PROTOCOL)))
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(HELLO_WITHIN_S, self._refuse, "it says nothing")

    def data_received(self, data: bytes) -> None:
        if self._ending:
            return
        try:
            self._take(self._decoder.feed(data))
            if self._wire is None and not self._ending:
                self._count_unknown(len(data))
        except Unwelcome as stranger:  # a name of its own: compiled, a name has one type
            self._note_refusal(str(stranger))
            self.end(stranger.told)
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
        if self._wire and not self._ending:
            why = self._closed_for or why_lost(problem)
            self._connector.notices.down(self._wire.neighbour, why)
        self.let_go()
        self.settled.set()
        self.ended.set()

    def end(self, refusal: str = "") -> None:
        """Close, after what was written has left. A neighbour is told that nothing more comes, and
        closes: were this side to close with bytes unread, TCP would tell of a reset instead."""
        self._ending = True
        self._cancel_timer()
        if self._transport is None:
            self._connector.gone(self)
            return
        if self._transport.is_closing():
            return
        if self._wire is not None:
            self._wire.flush()
            self._wire.disconnected()
        elif not refusal:
            self._transport.close()
            return
        if refusal:
            self._transport.write(encode(Hello(self._connector.me, PROTOCOL, refusal)))
        self._transport.write_eof()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PART_WITHIN_S, self._transport.abort)

    def cut(self) -> None:
        """Ends at once, with all that is under way."""
        self._ending = True
        if self._transport is not None:
            self._transport.abort()
        self.let_go()

    def let_go(self) -> None:
        """Is a link no longer, if it was one: the broker knows, and another may take its place."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.disconnected()
            self._connector.let_go(wire)

    def age_s(self) -> float:
        """How long it has been a link."""
        return self._driver.clock() - self._up_at

    def place(self) -> str:
        """Where the other end is."""
        return address(self._transport and self._transport.get_extra_info("peername"))

    def _take(self, frames: list[Hello | Frame]) -> None:
        """All frames of a read, in one round, and many of them as one input."""
        driver = self._driver
        with driver.round:
            if self._wire is None:
                if not frames:
                    return
                self._greet(frames.pop(0))
            wire = self._wire
            if wire is None:
                return
            heard: list[Frame] = []
            for frame in frames:
                if type(frame) is not Hello:
                    heard.append(frame)
                elif frame.refusal:
                    self._turned_away(frame.refusal)
                else:
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

    def _greet(self, hello: Hello | Frame) -> None:
        """It has said who it is: from now on this is a link, or nothing."""
        if not isinstance(hello, Hello):
            raise WireError("it begins with another frame than Hello")
        if hello.protocol != PROTOCOL:
            raise WireError(
                f"it speaks version {hello.protocol} of the protocol between brokers, and version "
                f"{PROTOCOL} is spoken here: run one version of Tidings in all of an overlay"
            )
        assert self._transport is not None
        if hello.refusal:
            self._connector.notices.turned_away(hello.broker, self.place(), hello.refusal)
            self.end()
            return
        wire = self._connector.wire_for(hello.broker, self)
        if wire is None:
            self.needless = True
            self.end()
            return
        if self.dialled:
            self._transport.write(encode(Hello(self._connector.me, PROTOCOL)))
        wire.connected(self._transport)
        self._wire, self.was_link, self.neighbour = wire, True, wire.neighbour
        self._up_at = self._driver.clock()
        self._cancel_timer()
        self._connector.notices.up(wire.neighbour, self._transport.get_extra_info("peername"))
        self._driver.link_up(wire.neighbour, self._connector.known.get(wire.neighbour))
        wire.open()
        self.settled.set()

    def _turned_away(self, why: str) -> None:
        assert self._transport is not None
        self._connector.notices.turned_away(self.neighbour, self.place(), why)
        self._closed_for = "it turns this broker away"
        self._transport.close()

    def _refuse(self, problem: str) -> None:
        assert self._transport is not None
        self._note_refusal(problem)
        self._transport.abort()

    def _note_refusal(self, problem: str) -> None:
        peer = self._transport and self._transport.get_extra_info("peername")
        self._connector.notices.refused(self.neighbour, peer, problem)
        self._closed_for = problem

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def _tune(link: socket.socket) -> None:
    """Small frames leave at once, the kernel buffers little, and a dead peer is noticed."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        link.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, HIGH_WATER_BYTES)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_MS)
