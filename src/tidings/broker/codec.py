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
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Hello | Frame]:
        self._buffer += data
        frames: list[Hello | Frame] = []
        start, end = 0, len(self._buffer)
        while end - start >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[start : start + LENGTH_BYTES], "big")
            if length > MAX_FRAME_BYTES:
                raise WireError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are taken")
            if end - start - LENGTH_BYTES < length:
                break
            body_at = start + LENGTH_BYTES
            frames.append(_decode(bytes(self._buffer[body_at : body_at + length])))
            start = body_at + length
        del self._buffer[:start]
        return frames


def _decode(body: bytes) -> Hello | Frame:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no frame: {error}") from None
