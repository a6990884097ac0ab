"""Messages, what happens to them on their way, ids, and what a predicate sees of a message."""

from math import inf

import pytest
from support.builders import a_destination, a_message
from support.values import fields_of, replace

from tidings.core.message import HEADER_BYTES, Budget, Envelope, Message, attributes
from tidings.core.message_ids import SERIAL_BITS, MessageIds, first_id
from tidings.core.parcel import MOST_RESTARTS, Parcel, expiry, received, restored, set_out
from tidings.core.values import changed


def test_a_message_expires_when_its_last_destination_gives_up() -> None:
    owed = (a_destination("b2", expires_s=1.0), a_destination("b3", expires_s=4.0))
    assert expiry(10.0, owed) == 14.0
    assert expiry(10.0, (*owed, a_destination("b4"))) == inf
    assert expiry(10.0, ()) == 10.0


# A parcel of which no field is as it is by default, so that a verb that loses one is found out.
OWED = (a_destination("b4", expires_s=2.0), a_destination("b5", expires_s=4.0))
TRAVELLED = Parcel(
    a_message(),
    10.0,
    14.0,
    OWED,
    ("b1", "b2"),
    "dcrd",
    150,
    (("b1", "b9"),),
    (("b1", "b2", "b4"),),
    True,
    3,
    (Budget("b4", 0.1, (0.2, 0.3)),),
)


def changes(before: Parcel, after: Parcel) -> dict[str, object]:
    """The fields that a verb has given another value."""
    old, new = fields_of(before), fields_of(after)
    return {field: value for field, value in new.items() if value != old[field]}


def test_a_parcel_that_crosses_a_link_keeps_all_but_its_clock_and_its_path() -> None:
    envelope = TRAVELLED.on_the_wire(now=11.5)
    assert envelope.age_s == 1.5
    taken = received(envelope, "b3", OWED, born_at=110.0, size_bytes=150)
    assert changes(TRAVELLED, taken) == {
        "born_at": 110.0,
        "expires_at": 114.0,
        "path": ("b1", "b2", "b3"),
    }


def test_a_parcel_for_some_destinations_expires_with_them_and_keeps_its_plan() -> None:
    assert changes(TRAVELLED, TRAVELLED.only_for(OWED[:1])) == {
        "destinations": OWED[:1],
        "expires_at": 12.0,
    }


def test_a_new_plan_replaces_the_old_one_and_its_budgets() -> None:
    planned = TRAVELLED.only_for(OWED, (("b2", "b4"),))
    assert changes(TRAVELLED, planned) == {"plan": (("b2", "b4"),), "budgets": ()}


def test_a_parcel_remembers_who_could_not_be_reached() -> None:
    tried = (("b1", "b9"), ("b2", "b4"))
    assert changes(TRAVELLED, TRAVELLED.given_up_on("b2", "b4")) == {"given_up": tried}


def test_a_parcel_that_starts_afresh_forgets_all_but_its_age_and_that_it_did() -> None:
    assert changes(TRAVELLED, TRAVELLED.afresh("b2", OWED)) == {
        "path": ("b2",),
        "given_up": (),
        "plan": (),
        "restarts": 4,
        "budgets": (),
        "doubtful": True,  # it had given up a neighbour, who may have taken it
    }
    unsent = changed(TRAVELLED, given_up=())
    assert not unsent.afresh("b2", OWED).doubtful
    assert replace(unsent, doubtful=True).afresh("b2", OWED).doubtful


def test_restarts_are_counted_up_to_a_limit() -> None:
    often = changed(TRAVELLED, restarts=2**62)
    assert often.afresh("b2", OWED).restarts == MOST_RESTARTS


def test_what_is_stored_and_restored_has_lost_only_what_it_had_tried() -> None:
    envelope = TRAVELLED.stored(1.5, OWED[:1])
    path = ("b1", "b2")
    assert envelope == Envelope(TRAVELLED.message, 1.5, OWED[:1], path, "dcrd", durable=True)
    again = restored(envelope, OWED, born_at=110.0)
    assert again == Parcel(
        TRAVELLED.message,
        110.0,
        114.0,
        OWED,
        ("b1", "b2"),
        "dcrd",
        TRAVELLED.message.frame_bytes,
        durable=True,
    )


def test_an_older_envelope_differs_in_age_only() -> None:
    envelope = TRAVELLED.on_the_wire(now=11.5)
    assert envelope.older(0.25) == replace(envelope, age_s=1.75)


def test_a_message_sets_out_at_its_publishers_broker() -> None:
    message = Message(7, "a/b", b"12345")
    parcel = set_out(message, "b1", OWED, "dcrd", durable=True, now=10.0)
    size_bytes = HEADER_BYTES + 3 + 5
    assert parcel == Parcel(message, 10.0, 14.0, OWED, ("b1",), "dcrd", size_bytes, durable=True)


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
