"""`flooding`: to everybody, once, and nothing vanishes."""

from support.builders import LINE, TRIANGLE, a_message, a_parcel, connected

from tidings.broker.frames import Data
from tidings.core.trace import Dropped
from tidings.routing.base import View
from tidings.routing.flooding import REMEMBER_S, Flooding


def a_view(neighbours: tuple[str, ...], severed: tuple[str, ...] = ()) -> View:
    view = View("b1")
    view.neighbours, view.severed = neighbours, severed
    return view


def next_hops(router: Flooding, path: tuple[str, ...], view: View, id: int = 1) -> list[str]:
    parcel = a_parcel("b9", path=path, message=a_message(id=id))
    return [hop.neighbour for hop in router.route(parcel, view, 0.0).hops]


def test_the_first_copy_goes_to_all_neighbours_but_those_it_has_passed() -> None:
    assert next_hops(Flooding(), ("b2", "b1"), a_view(("b2", "b3", "b4"))) == ["b3", "b4"]


def test_later_copies_of_a_message_end_here_and_other_messages_do_not() -> None:
    router, view = Flooding(), a_view(("b2", "b3", "b4"))
    next_hops(router, ("b2", "b1"), view)
    assert next_hops(router, ("b3", "b1"), view) == []
    assert next_hops(router, ("b3", "b1"), view, id=2) == ["b2", "b4"]


def test_a_copy_that_would_go_over_a_link_that_is_down_is_given_up() -> None:
    parcel = a_parcel("b9")
    route = Flooding().route(parcel, a_view(("b2",), severed=("b3",)), 0.0)
    assert [hop.neighbour for hop in route.hops] == ["b2"]
    assert route.stranded == parcel.destinations


def test_a_link_that_is_down_to_where_the_message_came_from_does_not_matter() -> None:
    route = Flooding().route(a_parcel("b9", path=("b3", "b1")), a_view((), severed=("b3",)), 0.0)
    assert (route.hops, route.stranded) == ((), ())


def test_the_memory_of_a_flood_ends() -> None:
    router, view, message = Flooding(), a_view(("b2",)), a_message()
    parcel = a_parcel("b9", message=message, path=("b3", "b1"))
    assert router.route(parcel, view, 0.0).hops
    assert not router.route(parcel, view, REMEMBER_S - 1).hops
    assert router.route(parcel, view, 10 * REMEMBER_S).hops


def test_what_begins_here_once_more_is_told_once_more() -> None:
    """A durable message that found no way is flooded again after a pause."""
    router, view, parcel = Flooding(), a_view(("b2",)), a_parcel("b9", path=("b1",))
    assert router.route(parcel, view, 0.0).hops
    assert router.route(parcel, view, 1.0).hops


def test_in_a_triangle_every_link_carries_the_message_and_everybody_gets_it_once() -> None:
    net = connected(*TRIANGLE, strategy="flooding")
    wishes = [net.subscribe("b2"), net.subscribe("b3")]
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert sorted(net.delivered) == [(wish, message) for wish in wishes]
    carried = {(a, b) for _, a, b, frame in net.said if isinstance(frame, Data)}
    assert {("b1", "b2"), ("b1", "b3")} <= carried
    assert not net.rows_of(Dropped)


def test_whom_the_flood_cannot_reach_is_named_in_a_dropped_row() -> None:
    net = connected(*LINE, strategy="flooding")
    net.subscribe("b1")
    net.run(1.0)
    net.disconnect("b1", "b2")
    net.run(1.0)
    message = net.publish("b2")  # b3 gets it, but b3 cannot help
    net.run(1.0)
    assert not net.delivered
    assert ("b2", message, ("b1",)) in [
        (row.broker, row.message, row.destinations) for row in net.rows_of(Dropped)
    ]
