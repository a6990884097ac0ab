"""A history drawn at random: links, wishes and brokers that come and go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from support.builders import Net

from tidings.broker.broker import Broker

Ends = tuple[str, str]
Step = tuple[str, str, str]  # what happens, and to whom


class History:
    """What has happened to some brokers, and what there is by now."""

    def __init__(self, net: Net, pause_s: float, made: Callable[[str, int], Broker]) -> None:
        """After each step so much time passes; `made` gives a broker of a name and incarnation."""
        self.links = set[Ends]()
        self.wishes: dict[str, str] = {}  # ids, by broker
        self._net, self._pause_s, self._made = net, pause_s, made
        self._incarnations = count(2)

    def go_through(self, steps: list[Step]) -> None:
        """A step that cannot be is left out."""
        for kind, a, b in steps:
            if (a in self._net.brokers) != (kind == "join"):
                self._step(kind, a, b)
            self._net.run(self._pause_s)

    def _step(self, kind: str, a: str, b: str) -> None:
        net, ends = self._net, (min(a, b), max(a, b))
        if kind == "link" and a != b and b in net.brokers and ends not in self.links:
            self.links.add(ends)
            net.connect(*ends)
        elif kind == "cut" and ends in self.links:
            self.links.discard(ends)
            net.disconnect(*ends)
        elif kind == "wish" and a not in self.wishes:
            self.wishes[a] = net.subscribe(a)
        elif kind == "unwish" and a in self.wishes:
            net.tell(a, "unsubscribe", self.wishes.pop(a))
        elif kind == "say":
            net.publish(a)
        elif kind == "crash":
            self._crash(a)
        elif kind == "leave":
            self._leave(a)
        elif kind == "join":
            net.add(self._made(a, next(self._incarnations)))

    def _crash(self, name: str) -> None:
        """It dies with its links, and comes back at once with nothing but its name and clients."""
        net, near = self._net, self._near(name)
        for ends in near:
            net.disconnect(*ends)
        net.add(self._made(name, next(self._incarnations)))
        if name in self.wishes:
            net.subscribe(name)
        for ends in near:
            net.connect(*ends)

    def _leave(self, name: str) -> None:
        """In good order: its clients first."""
        net = self._net
        if name in self.wishes:
            net.tell(name, "unsubscribe", self.wishes.pop(name))
        net.tell(name, "leave")
        net.run(self._pause_s)
        for ends in self._near(name):
            self.links.discard(ends)
            net.disconnect(*ends)
        del net.brokers[name]

    def _near(self, name: str) -> list[Ends]:
        return sorted(ends for ends in self.links if name in ends)
