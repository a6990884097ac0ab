"""What happened on these links? The past of a trace, laid over the links of a scenario.

Each second's delay is half the mean of the round trips that began in it, from either end; until the
next one that is known it stays. Outages are those that unanswered frames tell
(`core.links.silences`), asked from either end. The run begins when the traced one began; when the
trace is over, the last delay stays and nothing fails any more. Links that the trace does not know
are as the scenario says.

What the scenario adds by itself is taken off first: `processing_ms` off every round trip.
On links of limited rate, and where acknowledgements take no time, only probes tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.intervals import Interval
from tidings.core.links.silences import SETTLE_S, Flags, Instants, outages, reported
from tidings.sim.courses.link_course import Ends, LinkCourse, LinkCourses

STEP_S = 1.0


class Direction(Struct, frozen=True):
    """One direction of a link, in the order of time."""

    sent_at: Instants  # of every frame that was to be answered
    answered: Flags
    probe_at: Instants  # of the frames whose round trip is known
    probe_s: Instants
    message_at: Instants
    message_s: Instants
    changed_at: Instants
    up: Flags


class PastRows(Struct, frozen=True):
    """One run."""

    run: str
    start_at: float
    end_at: float
    links: dict[tuple[str, str], Direction]


class Reading(Struct, frozen=True):
    """What the scenario says about how round trips come about."""

    processing_s: float
    messages_tell: bool


def past_courses(past: PastRows, ends: Sequence[Ends], reading: Reading) -> LinkCourses:
    """The courses of an overlay's links; a `ValueError` if the trace knows none of them."""
    found: dict[Ends, LinkCourse] = {}
    for a, b in ends:
        both = [past.links[pair] for pair in ((a, b), (b, a)) if pair in past.links]
        if both and (course := _course(both, past, reading)):
            found[a, b] = course
    if not found:
        names = sorted({end for pair in past.links for end in pair})
        raise ValueError(f"no link of this overlay is in it, only links of {', '.join(names)}")
    length_s = past.end_at - past.start_at
    description = (
        f"{length_s:.0f} s of the run {past.run}; {len(found)} of {len(ends)} links are in it"
    )
    return LinkCourses(found, description)


def _course(both: list[Direction], past: PastRows, reading: Reading) -> LinkCourse | None:
    if not any(direction.sent_at.size for direction in both):
        return None  # nobody asked
    broken = tuple(_outages(both, past))
    length_s = max(past.end_at - past.start_at, STEP_S)
    down_s = sum(end - start for start, end in broken)
    course = LinkCourse(availability=max(0.0, 1.0 - down_s / length_s), outages=broken)
    at, delay_s = _delays(both, reading)
    if not at.size:  # no answer told a delay, so only that is as the scenario says
        return course
    steps = _steps(at - past.start_at, delay_s)
    held_s = np.diff([from_s for from_s, _ in steps], append=max(length_s, steps[-1][0] + STEP_S))
    mean_s = float(np.average([delay_s for _, delay_s in steps], weights=held_s))
    return replace(course, delay_s=mean_s, delay_steps=steps)


def _delays(both: list[Direction], reading: Reading) -> tuple[Instants, Instants]:
    """One-way delays, and when the frames were sent."""
    at = [direction.probe_at for direction in both]
    round_trips_s = [direction.probe_s for direction in both]
    if reading.messages_tell:
        at += [direction.message_at for direction in both]
        round_trips_s += [direction.message_s for direction in both]
    delays = np.maximum(np.concatenate(round_trips_s) - reading.processing_s, 0.0) / 2
    return np.concatenate(at), delays


def _steps(since_s: Instants, delay_s: Instants) -> tuple[tuple[float, float], ...]:
    """The mean of each second, from its beginning; what was before the first is like the first."""
    seconds, place = np.unique(np.floor(np.maximum(since_s, 0.0) / STEP_S), return_inverse=True)
    means = np.bincount(place, weights=delay_s) / np.bincount(place)
    steps = list(zip((seconds * STEP_S).tolist(), means.tolist(), strict=True))
    if steps[0][0] > 0.0:
        steps.insert(0, (0.0, steps[0][1]))
    return tuple(steps)


def _outages(both: list[Direction], past: PastRows) -> list[Interval]:
    """In seconds since the run began; what was under way at the end does not count."""
    sent_at = np.concatenate([direction.sent_at for direction in both])
    answered: Flags = np.concatenate([direction.answered for direction in both])
    order = np.argsort(sent_at, kind="stable")
    sent_at, answered = sent_at[order], answered[order]
    settled = answered | (sent_at <= past.end_at - SETTLE_S)
    watched = (past.start_at, past.end_at)
    down = [
        interval
        for direction in both
        for interval in reported(direction.changed_at.tolist(), direction.up.tolist(), watched)
    ]
    found = outages(sent_at[settled], answered[settled], watched, down)
    return [(max(0.0, a - past.start_at), b - past.start_at) for a, b in found]
