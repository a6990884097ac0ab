"""What does one broker see of the overlay as a graph?

Links without direction, each with the delay of its slower direction. About links of its own it
believes itself: what is up is there, whatever others say; one that is not measured yet has no
finite delay. About all others it believes the reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf

from tidings.core.graphs.joined import Joined
from tidings.linking.base import Known


def surroundings(known: Known) -> dict[str, dict[str, float]]:
    """The graph, with every broker that has a link, and with this one."""
    me = known.me
    near: dict[str, dict[str, float]] = {me: {}}
    mine = known.links.get(me, {})
    for neighbour in known.linked:
        estimate = mine.get(neighbour)
        delay_s = inf if estimate is None else estimate.delay_s
        near[me][neighbour] = delay_s
        near[neighbour] = {me: delay_s}
    for a, links in known.links.items():
        if a == me:
            continue
        for b, estimate in links.items():
            if b in (me, a):
                continue
            others = near.setdefault(a, {})
            delay_s = max(estimate.delay_s, others.get(b, 0.0))
            others[b] = delay_s
            near.setdefault(b, {})[a] = delay_s
    return near


def spread(near: Joined, starts: Mapping[str, float], below: float) -> dict[str, float]:
    """For each broker the least of a start's number and the delays from there on, if it is `below`
    that. Dijkstra (1959) from several starts at once."""
    least: dict[str, float] = {}
    waiting: list[tuple[float, str]] = []
    for start, number in starts.items():
        heappush(waiting, (number, start))
    while waiting:
        number, here = heappop(waiting)
        if here in least:
            continue
        least[here] = number
        for onward, delay_s in near.get(here, {}).items():
            if onward not in least and number + delay_s < below:
                heappush(waiting, (number + delay_s, onward))
    return least
