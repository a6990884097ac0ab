"""Messages, envelopes, ids, and what a predicate sees of a message."""

from math import inf

import pytest
from support.builders import a_destination, a_message

from tidings.core.message import SERIAL_BITS, Message, MessageIds, attributes, expiry, first_id


def test_a_message_expires_when_its_last_destination_gives_up() -> None:
    owed = (a_destination("b2", expires_s=1.0), a_destination("b3", expires_s=4.0))
    assert expiry(10.0, owed) == 14.0
    assert expiry(10.0, (*owed, a_destination("b4"))) == inf
    assert expiry(10.0, ()) == 10.0


def test_ids_are_serial_numbers_in_a_block_of_ones_own() -> None:
    ids = MessageIds("b1", 1)
    first = ids.take()
    assert [ids.take() - first for _ in range(3)] == [1, 2, 3]
    assert first == first_id("b1", 1)
    assert 0 <= first < 2**63


def test_brokers_and_incarnations_have_different_blocks() -> None:
    blocks = {first_id(f"b{n}", incarnation) for n in range(50) for incarnation in range(1, 5)}
    assert len(blocks) == 200
    assert all(block % (1 << SERIAL_BITS) == 0 for block in blocks)


def test_a_used_up_block_is_followed_by_another() -> None:
    ids = MessageIds("b1", 1)
    first = ids.take()
    ids._next = ids._end - 1
    last = ids.take()
    beyond = ids.take()
    assert last == first + (1 << SERIAL_BITS) - 1
    assert beyond == first_id("b1", 1, block=1)
    assert beyond != first


@pytest.mark.parametrize(
    ("payload", "seen"),
    [
        (b'{"x": 1, "kind": "jet", "deep": {"y": 2}}', {"x": 1, "kind": "jet", "deep": {"y": 2}}),
        (b"{}", {}),
        (b"", {}),
        (b"[1, 2]", {}),
        (b"{oops", {}),
        (b'{"x": "\xff"}', {}),
        (b'{"x": 1e999}', {}),
        (b'{"x": ' + b"[" * 100_000, {}),
    ],
)
def test_the_top_level_fields_of_a_json_payload_are_attributes(
    payload: bytes, seen: dict[str, object]
) -> None:
    assert attributes(a_message(payload=payload)) == seen


def test_user_properties_stand_above_the_payload_and_the_last_of_a_name_holds() -> None:
    message = Message(1, "t", b'{"x": 1, "y": 2}', properties=(("x", "5"), ("z", "6"), ("z", "7")))
    assert attributes(message) == {"x": "5", "y": 2, "z": "7"}
