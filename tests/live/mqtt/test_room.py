"""The memory of clients: who may have more when there is little left."""

from msgspec import Struct

from tidings.live.mqtt.room import ClientRoom


class Client(Struct, eq=False):
    held_bytes: int


def test_while_there_is_room_one_client_may_have_most_of_it() -> None:
    client, other = Client(0), Client(0)
    room = ClientRoom({client: None, other: None}, 1_000)
    assert room.has_room(client, 900)


def test_without_room_only_those_below_an_equal_share_get_more() -> None:
    greedy, modest = Client(900), Client(100)
    room = ClientRoom({greedy: None, modest: None}, 1_000)
    room.recount()
    assert not room.has_room(greedy, 1)
    assert room.has_room(modest, 400)
    assert not room.has_room(modest, 401)


def test_what_was_taken_counts_at_once_and_what_was_freed_at_the_next_count() -> None:
    client, other = Client(900), Client(0)
    room = ClientRoom({client: None, other: None}, 1_000)
    room.taken(950)
    assert not room.has_room(client, 100)
    client.held_bytes = 0
    assert room.has_room(client, 100), "it is below its share"
    room.recount()
    assert room.has_room(client, 1_000)
