"""What if somebody sets what a model knows, too? Then that holds, parameter by parameter.

A scenario's file says what holds where nothing is known of a link; so a course goes before it. What
is set beside the file (`--set`, the grid of a sweep) is asked for in this very run: there the
course forgets what it knows, and the link is as the scenario has it. In words it is said which
parameters these are, and of how many links the course did not know what the scenario says then.
"""

from __future__ import annotations

from math import inf
from typing import Any

from msgspec.structs import replace

from tidings.sim.courses.link_course import LinkCourse, LinkCourses

_FAILURES = {"availability": None, "outages": ()}
_PACE = {"s_per_byte": None, "deviation_s_per_byte": 0.0}
_DELAY = {"delay_s": None, "delay_steps": (), "repeat_s": inf}

# What a course no longer knows, by the parameter that was set.
FORGOTTEN: dict[str, dict[str, Any]] = {
    "links.failure_probability": _FAILURES,
    "links.loss_ratio": {"loss_ratio": None},
    "links.ms_per_kbyte": _PACE,
    "links.ms_per_kbyte_deviation": _PACE,  # it belongs to the scenario's mean
    "links.rate_kbit_per_s": _PACE,
    "topology.delay_ms": _DELAY,
}
SETTABLE = frozenset(FORGOTTEN)

# What the scenario says of a link whose course does not know it.
_UNKNOWN = {
    "delays": "delay_s",
    "losses": "loss_ratio",
    "failures": "availability",
    "times per byte": "s_per_byte",
}


def with_explicit(courses: LinkCourses, explicit: tuple[str, ...]) -> LinkCourses:
    """The courses without what was set explicitly, and with a description that says so."""
    forgotten: dict[str, Any] = {}
    for parameter in explicit:
        forgotten |= FORGOTTEN[parameter]
    found = {ends: replace(course, **forgotten) for ends, course in courses.links.items()}
    said = [courses.description, *_as_set(explicit), *_as_written(list(found.values()), forgotten)]
    return LinkCourses(found, "; ".join(said))


def _as_set(explicit: tuple[str, ...]) -> list[str]:
    return [f"as set explicitly: {', '.join(explicit)}"] if explicit else []


def _as_written(courses: list[LinkCourse], forgotten: dict[str, Any]) -> list[str]:
    """What is not known of links that are in the model, or in the traces."""
    unknown = {
        what: sum(getattr(course, field) is None for course in courses)
        for what, field in _UNKNOWN.items()
        if field not in forgotten
    }
    parts = [f"{what} of {count}" for what, count in unknown.items() if count]
    return [f"not known of these, so as in the scenario: {', '.join(parts)}"] if parts else []
