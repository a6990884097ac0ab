"""Every frame survives the wire: whole, byte by byte, and with other bytes behind it."""

from contextlib import suppress
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.broker.codec import LENGTH_BYTES, Decoder, encode, encode_together
from tidings.broker.frames import Ack, Data, Echo, Hello, Interests, Links, Probe, Pull
from tidings.core.contract import Contract, Destination, Group, Wish
from tidings.core.errors import WireError
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Budget, Envelope, Message

KINDS = (Hello, Data, Ack, Probe, Echo, Interests, Links, Pull)

EXAMPLE = Envelope(Message(1, "t", b"x"), 0.0, (), ("b1",), "d-tree")  # many that are alike

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
amount = st.floats(0, allow_nan=False)  # infinite deadlines are common
span = st.floats(0, 1e9)
ratio = st.floats(0, 1)
serial = st.integers(0, 2**63 - 1)
late = st.sampled_from(["deliver", "drop"])


def tuples(of: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(of, max_size=3).map(tuple)


contract = st.builds(Contract, amount, amount, ratio, ratio, late, st.booleans(), text)
message = st.builds(
    Message, serial, text, st.binary(max_size=40), contract, tuples(st.tuples(text, text))
)
group = st.builds(Group, amount, serial, amount)
destination = st.builds(Destination, text, amount, tuples(group), ratio)
budget = st.builds(Budget, text, amount, tuples(amount))
envelope = st.builds(
    Envelope,
    message,
    span,
    tuples(destination),
    tuples(text),
    text,
    plan=tuples(tuples(text)),
    budgets=tuples(budget),
)
wish = st.builds(Wish, text, text, contract, serial)
estimate = st.builds(LinkEstimate, span, ratio, span, span, ratio)
frame = st.one_of(
    st.builds(Hello, text, serial),
    st.builds(Data, serial, envelope),
    st.builds(Ack, st.lists(serial, max_size=5).map(tuple)),
    st.builds(Probe, serial),
    st.builds(Echo, serial),
    st.builds(Interests, serial, text, serial, serial, serial, tuples(wish)),
    st.builds(Links, serial, text, serial, serial, tuples(st.tuples(text, estimate)), span),
    st.builds(Pull, serial, text),
)


@given(frame)
def test_a_frame_survives_as_a_whole(sent: Hello) -> None:
    [received] = Decoder().feed(encode(sent))
    assert received == sent
    assert type(received) is type(sent)


@given(st.lists(frame, max_size=3))
def test_frames_survive_byte_by_byte(sent: list[Hello]) -> None:
    decoder, received = Decoder(), []
    for byte in b"".join(map(encode, sent)):
        received += decoder.feed(bytes([byte]))
    assert received == sent


@given(st.lists(frame, min_size=1, max_size=4), st.data())
def test_frames_survive_cut_anywhere_with_the_next_one_behind_them(
    sent: list[Hello], data: st.DataObject
) -> None:
    wire = b"".join(map(encode, sent))
    cut = data.draw(st.integers(0, len(wire)))
    decoder = Decoder()
    assert decoder.feed(wire[:cut]) + decoder.feed(wire[cut:]) == sent


@given(st.lists(st.one_of(frame, st.builds(Data, serial, st.just(EXAMPLE))), max_size=6))
def test_frames_that_leave_together_survive_in_their_order(sent: list[Hello]) -> None:
    assert Decoder().feed(encode_together(sent)) == sent


@given(frame, st.binary(min_size=1, max_size=8))
def test_bytes_behind_a_frame_wait_for_the_rest_of_theirs(sent: Hello, rest: bytes) -> None:
    behind = (len(rest) + 1).to_bytes(LENGTH_BYTES, "big") + rest
    assert Decoder().feed(encode(sent) + behind) == [sent]


@given(st.binary(max_size=60))
def test_random_bytes_raise_a_wire_error_or_wait_for_more(body: bytes) -> None:
    for wire in (body, len(body).to_bytes(LENGTH_BYTES, "big") + body):
        with suppress(WireError):
            assert all(isinstance(frame, KINDS) for frame in Decoder().feed(wire))


@given(frame, st.data())
def test_a_frame_with_one_wrong_byte_is_another_frame_or_a_wire_error(
    sent: Hello, data: st.DataObject
) -> None:
    wire = bytearray(encode(sent))
    place = data.draw(st.integers(LENGTH_BYTES, len(wire) - 1))
    wire[place] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        [received] = Decoder().feed(bytes(wire))
        assert isinstance(received, KINDS)


@given(
    st.one_of(
        st.builds(
            Ack, st.tuples(st.one_of(st.integers(-(2**63), -1), st.integers(2**63, 2**64 - 1)))
        ),
        st.builds(
            Data,
            serial,
            st.builds(
                Envelope,
                message,
                st.sampled_from([-1.0, nan, inf]),
                st.just(()),
                st.just(()),
                text,
            ),
        ),
        st.builds(
            Data,
            serial,
            st.builds(
                Envelope,
                message,
                span,
                st.just(()),
                st.just(()),
                text,
                budgets=st.one_of(
                    st.tuples(st.builds(Budget, text, st.sampled_from([-1.0, nan]), st.just(()))),
                    st.tuples(st.builds(Budget, text, span, st.just((1.0, -1.0)))),
                ),
            ),
        ),
    )
)
def test_numbers_that_no_correct_peer_sends_are_refused(sent: Ack) -> None:
    with pytest.raises(WireError):
        Decoder().feed(encode(sent))


@given(serial, text, st.sampled_from([nan, -1.0, inf]), st.sampled_from([nan, -0.5, 2.0]))
def test_an_estimate_that_makes_no_sense_passes_so_that_it_does_not_cost_the_link(
    number: int, far: str, delay_s: float, part: float
) -> None:
    """Whoever uses estimates leaves it out (`LinkEstimate.is_sane`)."""
    estimates = (
        LinkEstimate(delay_s),
        LinkEstimate(0.1, part),
        LinkEstimate(0.1, availability=part),
    )
    for mad in estimates:
        [received] = Decoder().feed(encode(Links(number, "b1", 1, 1, ((far, mad),))))
        assert isinstance(received, Links)
        assert not received.links[0][1].is_sane()
