"""Frames to bytes and back; the properties of the codec are in `properties/test_frame_codec.py`."""

import msgspec
import pytest
from support.builders import a_data, a_message

from tidings.broker.codec import MAX_FRAME_BYTES, Decoder, encode
from tidings.broker.frames import Ack, Hello, Probe
from tidings.core.errors import WireError


def test_a_frame_is_four_bytes_of_length_and_a_tagged_array() -> None:
    assert encode(Ack((7,))) == b"\x00\x00\x00\x05" + b"\x92\xa1A\x91\x07"


def test_infinite_deadlines_survive_the_wire() -> None:
    frame = a_data(1, a_message(), "b2")
    assert Decoder().feed(encode(frame)) == [frame]


def test_many_frames_of_one_read_come_out_in_order() -> None:
    frames = [Hello("b1"), Probe(1), Ack((2,)), Probe(3)]
    assert Decoder().feed(b"".join(map(encode, frames))) == frames


def test_an_overlong_frame_is_refused_by_its_length_before_it_is_read() -> None:
    with pytest.raises(WireError, match=str(MAX_FRAME_BYTES)):
        Decoder().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",  # never used in MessagePack
        msgspec.msgpack.encode(["Z", 1]),  # a kind that nobody knows
        msgspec.msgpack.encode(["A", "seven"]),
        msgspec.msgpack.encode(["A"]),
        msgspec.msgpack.encode({"transmission": 7}),
        msgspec.msgpack.encode(["A", 7]) + b"\x00",  # bytes behind the frame
        b"\x91" * 100_000 + b"\xc0",  # nested without end
    ],
)
def test_bytes_that_are_no_frame_are_a_wire_error(body: bytes) -> None:
    with pytest.raises(WireError, match="no frame"):
        Decoder().feed(len(body).to_bytes(4, "big") + body)
