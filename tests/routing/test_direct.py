"""`direct`: every destination by its own link, or not at all."""

from support.builders import LINE, a_parcel, connected

from tidings.core.trace import Dropped
from tidings.routing.base import View
from tidings.routing.direct import Direct


def test_each_neighbour_gets_its_own_copy_and_others_are_stranded() -> None:
    view = View("b1")
    view.neighbours = ("b2", "b3")
    route = Direct().route(a_parcel("b2", "b3", "b4"), view, 0.0)
    served = [(hop.neighbour, [d.broker for d in hop.destinations]) for hop in route.hops]
    assert served == [("b2", ["b2"]), ("b3", ["b3"])]
    assert [d.broker for d in route.stranded] == ["b4"]


def test_over_two_links_nothing_arrives() -> None:
    net = connected(*LINE, strategy="direct", exhausted="drop")
    near, far = net.subscribe("b2"), net.subscribe("b3")
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert net.takers("b1") == net.of(near, far)
    assert net.delivered == [(near, message)]
    [dropped] = net.rows_of(Dropped)
    assert (dropped.reason, dropped.destinations) == ("no-route", ("b3",))
