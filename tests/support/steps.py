"""A history drawn at random: links that come and go, wishes that are stated and taken back."""

from __future__ import annotations

from collections.abc import Callable

from support.builders import Net

Ends = tuple[str, str]
Step = tuple[str, str, str]  # what happens, and to whom


class History:
    """What has happened to some brokers, and what there is by now."""

    def __init__(self, net: Net, pause_s: float) -> None:
        """After each step so much time passes."""
        self.links = set[Ends]()
        self.wishes: dict[str, str] = {}  # ids, by broker
        self._net, self._pause_s = net, pause_s

    def go_through(
        self, steps: list[Step], other: Callable[[str, str], None] | None = None
    ) -> None:
        """`other` is called for steps that are neither of links nor of wishes."""
        for kind, a, b in steps:
            self._step(kind, a, (min(a, b), max(a, b)), other)
            self._net.run(self._pause_s)

    def _step(
        self, kind: str, a: str, ends: Ends, other: Callable[[str, str], None] | None
    ) -> None:
        net, links, wishes = self._net, self.links, self.wishes
        if kind == "link" and ends[0] != ends[1] and ends not in links:
            links.add(ends)
            net.connect(*ends)
        elif kind == "cut" and ends in links:
            links.discard(ends)
            net.disconnect(*ends)
        elif kind == "wish" and a not in wishes:
            wishes[a] = net.subscribe(a)
        elif kind == "unwish" and a in wishes:
            net.tell(a, "unsubscribe", wishes.pop(a))
        elif other is not None:
            other(kind, a)
