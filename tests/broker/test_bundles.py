"""Messages that are alike share a frame, and come out of it as they were."""

import pytest
from support.builders import a_data, a_message

from tidings.broker.bundles import BUNDLE_BYTES, bundled, unbundled
from tidings.broker.codec import Decoder, encode, encode_together
from tidings.broker.frames import MOST_IN_BUNDLE, Bundle, Data, Frame, Probe
from tidings.core.errors import WireError


def alike(count: int, payload: bytes = b"calm") -> list[Data]:
    return [a_data(number, a_message(payload=payload), "b2") for number in range(count)]


def test_messages_that_differ_in_number_and_payload_only_share_a_frame() -> None:
    sent = alike(5)
    [bundle] = bundled(sent)
    assert type(bundle) is Bundle
    assert unbundled(bundle) == sent
    assert Decoder().feed(encode_together(sent)) == sent
    assert len(encode_together(sent)) < len(b"".join(map(encode, sent))) / 2


def test_frames_keep_their_order_whatever_is_between_them() -> None:
    probe, other = Probe(1), a_data(9, a_message("storm"), "b2")
    sent: list[Frame] = [*alike(3), probe, *alike(2), other, *alike(1), probe]
    assert Decoder().feed(encode_together(sent)) == sent
    kinds = [type(frame) for frame in bundled(sent)]
    assert kinds == [Bundle, Probe, Bundle, Data, Data, Probe]


@pytest.mark.parametrize(
    "other",
    [
        a_data(2, a_message("storm"), "b2"),
        a_data(2, a_message(payload=b"calm"), "b3"),
        a_data(2, a_message(deadline_s=1.0), "b2"),
    ],
)
def test_messages_that_differ_in_more_have_a_frame_each(other: Data) -> None:
    sent = [*alike(1), other]
    assert bundled(sent) == sent


def test_a_bundle_takes_so_many_messages_and_bytes_and_the_next_one_the_rest() -> None:
    many = alike(2 * (MOST_IN_BUNDLE + 1) + 1)
    assert [type(frame) for frame in bundled(many)] == [Bundle, Bundle, Data]
    large = alike(4, bytes(BUNDLE_BYTES // 2))
    assert [type(frame) for frame in bundled(large)] == [Bundle, Bundle]
    assert Decoder().feed(encode_together(many) + encode_together(large)) == many + large


def test_a_bundle_that_does_not_say_all_of_each_message_is_a_wire_error() -> None:
    [whole] = bundled(alike(3))
    assert type(whole) is Bundle
    first, numbers, ages_s = whole.first, whole.transmissions, whole.ages_s
    ids, payloads = whole.message_ids, whole.payloads
    for wrong in (
        Bundle(first, numbers[1:], ages_s, ids, payloads),
        Bundle(first, numbers, ages_s[1:], ids, payloads),
        Bundle(first, numbers, ages_s, ids[1:], payloads),
        Bundle(first, numbers, ages_s, ids, payloads[1:]),
        Bundle(first, numbers, (-1.0, *ages_s[1:]), ids, payloads),
        Bundle(first, numbers * 40, ages_s * 40, ids * 40, payloads * 40),
    ):
        with pytest.raises(WireError, match="no frame"):
            Decoder().feed(encode(wrong))
