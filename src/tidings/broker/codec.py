"""Frames to bytes and back: a length, then MessagePack.

Reading is incremental: a read may end in the middle of a frame or hold many. A length beyond the
limit, or bytes that are no frame, is a `WireError`: the link is closed, nothing else is disturbed.
"""

from __future__ import annotations

import msgspec

from tidings.broker.frames import Frame, Hello
from tidings.core.errors import WireError

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 16 * 1024 * 1024  # a whole broker's interests fit (100,000 at 150 bytes each)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Hello | Frame] = msgspec.msgpack.Decoder(Hello | Frame)


def encode(frame: Hello | Frame) -> bytes:
    """The frame as it goes over the wire."""
    body = _encoder.encode(frame)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


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
            frames.append(_decode(data[body_at : body_at + length]))
            start = body_at + length
        self._kept += data[start:]  # mostly nothing
        return frames


def _decode(body: bytes) -> Hello | Frame:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no frame: {error}") from None
