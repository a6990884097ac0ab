"""What happened on these links? The past of a trace, laid over the links of a scenario.

Each second's delay is half the mean of the round trips that began in it, from either end; it stays
until the next second of which one is known. Outages are those that unanswered frames show
(`core.links.silences`), sent from either end. The run begins when the traced one began; after the
end of the trace, the last delay stays and nothing fails any more. Links that the trace does not
know are as the scenario says.

What the scenario adds by itself is subtracted first: `processing_ms` from every round trip. On
links of limited rate, and where acknowledgements take no time, only the round trips of probes
count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.errors import A_FEW, some_of
from tidings.core.links.intervals import Interval
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
    """One run, as far as its links are concerned."""

    run: str
    start_at: float
    end_at: float
    links: dict[tuple[str, str], Direction]


class RoundTrips(Struct, frozen=True):
    """How round trips are read as delays, by what the scenario says about its links."""

    processing_s: float  # of the brokers, in each of them
    of_messages: bool  # whether those of messages count, beside those of probes


def past_courses(past: PastRows, ends: Sequence[Ends], round_trips: RoundTrips) -> LinkCourses:
    """The courses of an overlay's links; a `ValueError` if the trace knows none of them."""
    found: dict[Ends, LinkCourse] = {}
    for a, b in ends:
        both = [past.links[pair] for pair in ((a, b), (b, a)) if pair in past.links]
        if both and (course := _course(both, past, round_trips)):
            found[a, b] = course
    if not found:
        names = sorted({end for pair in past.links for end in pair})
        theirs = some_of(names, A_FEW)
        raise ValueError(f"no link of this overlay is in it, only links of {theirs}")
    length_s = past.end_at - past.start_at
    description = (
        f"{length_s:.0f} s of the run {past.run}; {len(found)} of {len(ends)} links are in it"
    )
    return LinkCourses(found, description)


def _course(both: list[Direction], past: PastRows, round_trips: RoundTrips) -> LinkCourse | None:
    if not any(direction.sent_at.size for direction in both):
        return None  # nothing was sent
    broken = tuple(_outages(both, past))
    length_s = max(past.end_at - past.start_at, STEP_S)
    down_s = sum(end - start for start, end in broken)
    course = LinkCourse(availability=max(0.0, 1.0 - down_s / length_s), outages=broken)
    at, delay_s = _delays(both, round_trips)
    if not at.size:  # outages are known, but delays are as the scenario says
        return course
    steps = _steps(at - past.start_at, delay_s)
    held_s = np.diff([from_s for from_s, _ in steps], append=max(length_s, steps[-1][0] + STEP_S))
    mean_s = float(np.average([delay_s for _, delay_s in steps], weights=held_s))
    return replace(course, delay_s=mean_s, delay_steps=steps)


def _delays(both: list[Direction], round_trips: RoundTrips) -> tuple[Instants, Instants]:
    """One-way delays, and when the frames were sent."""
    at = [direction.probe_at for direction in both]
    round_trips_s = [direction.probe_s for direction in both]
    if round_trips.of_messages:
        at += [direction.message_at for direction in both]
        round_trips_s += [direction.message_s for direction in both]
    delays = np.maximum(np.concatenate(round_trips_s) - round_trips.processing_s, 0.0) / 2
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
