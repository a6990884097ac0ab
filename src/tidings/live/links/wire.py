"""How does a frame leave for a neighbour? The sending side of one link, whether connected or not.

Frames of one round are gathered and written once. Back-pressure: the broker is told how many bytes
the socket's buffer takes, and told again when the buffer has drained, so that messages wait in the
scheduler's queue and not in the kernel's. `TCP_NOTSENT_LOWAT` keeps the kernel's queue short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidings.broker.codec import encode, encode_together
from tidings.broker.effects import Send
from tidings.broker.frames import Data, Frame
from tidings.live.links.emulation import Emulation

HIGH_WATER_BYTES = 65_536  # written and not yet taken by the kernel; about 5 ms at 100 Mbit/s

Ready = Callable[[str, float], None]


class Wire:
    """Sends to one neighbour. It outlives connections; without one, what is sent is lost."""

    def __init__(self, neighbour: str, ready: Ready, dirty: list[Wire]) -> None:
        """`ready(neighbour, room_bytes)` tells the broker; `dirty` gathers wires to be flushed."""
        self.neighbour = neighbour
        self.emulation: Emulation | None = None
        self.transport: asyncio.Transport | None = None
        self.paused = False
        self._ready, self._dirty = ready, dirty
        self._frames: list[Frame] = []
        self._credit_bytes = 0.0  # what the broker still believes it may send
        self._refreshing = False  # the credit will be refreshed soon

    # ---- the connection

    def connected(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self.transport, self.paused = transport, False

    def disconnected(self) -> None:
        self.transport = None
        self._frames.clear()
        if self.emulation:
            self.emulation.clear()

    def cut(self) -> None:
        """Ends the connection at once: nothing that was not written leaves."""
        if self.transport is not None:
            self.transport.abort()
            self.disconnected()

    def open(self) -> None:
        """Tells the broker for the first time what the link takes."""
        self.ready(self.emulation.room_bytes if self.emulation else HIGH_WATER_BYTES)

    def resume(self) -> None:
        """The socket takes bytes again."""
        self.paused = False
        if not self.emulation:
            self._refresh()

    # ---- frames

    def send(self, send: Send, now: float) -> None:
        if self.transport is None:
            return
        if self.emulation:
            self.emulation.send(send, encode(send.frame), now)
            return
        if type(send.frame) is Data:
            self._credit_bytes -= send.size_bytes
        if not self._frames:
            self._dirty.append(self)
        self._frames.append(send.frame)

    def flush(self) -> None:
        """Writes what was gathered, at once."""
        frames, transport = self._frames, self.transport
        if transport is None or not frames:
            return
        transport.write(encode_together(frames))
        frames.clear()
        if self._credit_bytes < HIGH_WATER_BYTES / 2 and not (self.paused or self._refreshing):
            self._refreshing = True
            asyncio.get_running_loop().call_soon(self._refresh)  # when the kernel has taken some

    # ---- the outlet of an emulated link

    def put(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def ready(self, room_bytes: float) -> None:
        self._credit_bytes = room_bytes
        self._ready(self.neighbour, room_bytes)

    def _refresh(self) -> None:
        self._refreshing = False
        if self.transport is not None and not self.paused:
            buffered_bytes = self.transport.get_write_buffer_size()
            self.ready(max(1.0, HIGH_WATER_BYTES - buffered_bytes))
