"""Frames to bytes and back: a length, then MessagePack. Messages that are alike share a frame.

Reading is incremental: a read may end in the middle of a frame or hold many. A length beyond the
limit, or bytes that are no frame, is a `WireError`: the link is closed, nothing else is disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.broker.bundles import WireFrame, bundled, unbundled
from tidings.broker.frames import Bundle, Frame, Hello
from tidings.core.errors import WireError

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 16 * 1024 * 1024  # a whole broker's interests fit (100,000 at 150 bytes each)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[WireFrame] = msgspec.msgpack.Decoder(WireFrame)


def encode(frame: WireFrame) -> bytes:
    """The frame as it goes over the wire."""
    body = _encoder.encode(frame)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def encode_together(frames: Sequence[Hello | Frame]) -> bytes:
    """Frames as they go over the wire one after the other."""
    if len(frames) == 1:
        return encode(frames[0])
    return b"".join([encode(frame) for frame in bundled(frames)])


class Decoder:
    """Bytes in, whole frames out; what is left over waits for more."""

    def __init__(self) -> None:
        self._kept, self._needed_bytes = bytearray(), 0  # of a frame that is not all there

    def feed(self, data: bytes) -> list[Hello | Frame]:
        frames: list[Hello | Frame] = []
        if self._kept:
            self._kept += data
            if len(self._kept) < self._needed_bytes:
                return frames
            data = bytes(self._kept)
            self._kept.clear()
        start, end = 0, len(data)
        self._needed_bytes = LENGTH_BYTES
        while end - start >= LENGTH_BYTES:
            body_at = start + LENGTH_BYTES
            length = int.from_bytes(data[start:body_at], "big")
            if length > MAX_FRAME_BYTES:
                raise WireError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are taken")
            if body_at + length > end:
                self._needed_bytes += length
                break
            frame = _decode(data[body_at : body_at + length])
            if type(frame) is Bundle:
                frames += unbundled(frame)
            else:
                frames.append(frame)
            start = body_at + length
        self._kept += data[start:]  # mostly nothing
        return frames


def _decode(body: bytes) -> WireFrame:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no frame: {error}") from None
