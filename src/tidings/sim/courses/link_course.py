"""What does a link go through in a run, where something other than the scenario says so?

A `LinkCourse` comes from a model that was learned (`sim.courses.learned`) or from what happened
before (`sim.courses.past`). What it does not know is None, and stays as the scenario has it. A
topology takes over the delays of the courses, the weather of the links all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from tidings.core.links.intervals import Interval
from tidings.core.topology import Topology

Ends = tuple[str, str]


class LinkCourse(Struct, frozen=True):
    """One link, in both directions."""

    delay_s: float | None = None  # in the long run
    delay_steps: tuple[tuple[float, float], ...] = ()  # (from_s, delay_s), the first from 0
    repeat_s: float = inf
    loss_ratio: float | None = None
    availability: float | None = None  # in the long run
    outages: tuple[Interval, ...] = ()
    s_per_byte: float | None = None
    deviation_s_per_byte: float = 0.0


class LinkCourses(Struct, frozen=True):
    """The courses of those links of which something is known, and in words how they were found."""

    links: dict[Ends, LinkCourse]
    description: str = ""

    def of(self, a: str, b: str) -> LinkCourse:
        """The course of the link between two brokers, named in either order."""
        return self.links.get((a, b)) or self.links.get((b, a)) or UNKNOWN


UNKNOWN = LinkCourse()
AS_WRITTEN = LinkCourses({})  # by the scenario


def with_course_delays(overlay: Topology, links: Mapping[Ends, LinkCourse]) -> Topology:
    """The overlay with the delays of these courses."""
    changed = []
    for link in overlay.links:
        course = links.get((link.a, link.b), UNKNOWN)
        if course.delay_s is not None:
            link = replace(
                link,
                delay_s=course.delay_s,
                delay_steps=course.delay_steps,
                repeat_s=course.repeat_s,
            )
        changed.append(link)
    return Topology(overlay.brokers, tuple(changed))
