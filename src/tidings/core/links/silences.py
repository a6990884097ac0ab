"""When was a link out of order? When several frames in a row were not answered.

Losses and outages
------------------
A frame without an answer was lost; several in a row, with none answered between them, are an
outage: at least three, and on a link that loses many so many that losses alone would hardly explain
them. How often a frame without an answer follows one with an answer shows how many are lost, since
an outage adds one such case, however long it is.

Begin and end
-------------
An outage began somewhere between the last frame that was answered and the first that was not, and
ended likewise: the middle of each gap is taken, so that lengths are right on average, however often
frames are sent. Outages shorter than a few frames take are seen as losses.

Links that were reported down
-----------------------------
A broker may also notice that a neighbour is gone (a connection breaks), and send nothing until it
is back. So an interval in which a link was reported down counts too, if nothing was sent in it; if
probes went on, they show more exactly when it ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

import numpy as np
import numpy.typing as npt

from tidings.core.intervals import Interval, disjoint

UNANSWERED = 3  # in a row, at least: the brokers' own default of `probes_missed`
BY_CHANCE = 0.05  # with this probability losses alone look like an outage somewhere in a history
SETTLE_S = 5.0  # before the end of a run: what was sent later may have been answered after it
SAME_INSTANT_S = 1e-5  # by rounding, an instant and a difference of instants deviate so much

Instants = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def outages(
    sent_at: Instants,
    answered: Flags,
    watched: Interval,
    down: Iterable[Interval] = (),
    unanswered: int | None = None,
) -> list[Interval]:
    """The outages of a link while it was watched, sorted and disjoint; frames in the order in which
    they were sent. `unanswered` in a row are one; None: as many as chance hardly gives."""
    silent = silences(sent_at, answered, watched, unanswered or unusual(answered))
    quiet = [interval for interval in down if not _asked(sent_at, *interval)]
    return list(disjoint([*silent, *quiet]))


def unusual(answered: Flags) -> int:
    """How many frames in a row without an answer are more than losses."""
    heard = int(answered[:-1].sum())
    lost = int((answered[:-1] & ~answered[1:]).sum())
    if not 0 < lost < heard:
        return UNANSWERED
    return max(UNANSWERED, ceil(log(BY_CHANCE / answered.size) / log(lost / heard)))


def silences(
    sent_at: Instants, answered: Flags, watched: Interval, unanswered: int
) -> list[Interval]:
    """Where so many frames in a row, or more, were not answered."""
    if not sent_at.size:
        return []
    change = np.flatnonzero(np.diff(answered.astype(np.int8))) + 1
    starts = np.concatenate(([0], change))
    ends = np.concatenate((change, [answered.size]))
    wanted = ~answered[starts] & (ends - starts >= unanswered)
    middles = np.concatenate(([watched[0]], (sent_at[:-1] + sent_at[1:]) / 2, [watched[1]]))
    from_s, to_s = middles[starts], middles[ends]
    found = zip(from_s[wanted].tolist(), to_s[wanted].tolist(), strict=True)
    return [(start, end) for start, end in found if start < end]


def reported(at: Iterable[float], up: Iterable[bool], watched: Interval) -> list[Interval]:
    """The intervals of the watched time in which a link was reported down. One that never came up
    lasts to the end; one that begins just before the end is the run's own end, and does not count.
    """
    from_at, end_at = watched
    found: list[Interval] = []
    down_at: float | None = None
    for instant, is_up in sorted(zip(at, up, strict=True)):
        if is_up and down_at is not None:
            found.append((down_at, instant))
        down_at = None if is_up else instant if down_at is None else down_at
    if down_at is not None:
        found.append((down_at, end_at))
    inside = ((max(start, from_at), min(end, end_at)) for start, end in found)
    late_at = end_at - SETTLE_S
    return [
        (start, end) for start, end in inside if start < end and (start < late_at or end < end_at)
    ]


def within(instants: Instants, intervals: list[Interval]) -> Flags:
    """Which of the instants lie in one of the intervals, which are sorted and disjoint."""
    edges = np.array([edge for interval in intervals for edge in interval])
    inside: Flags = np.searchsorted(edges, instants, side="right") % 2 == 1
    return inside


def _asked(sent_at: Instants, start: float, end: float) -> bool:
    """Was anything sent in between? A link that comes up is asked at the same instant."""
    first = np.searchsorted(sent_at, start + SAME_INSTANT_S, side="right")
    last = np.searchsorted(sent_at, end - SAME_INSTANT_S, side="left")
    return bool(last > first)
