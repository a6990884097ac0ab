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

Many links at once
------------------
A table of measurements has hundreds of thousands of links. So all of this works on the frames of
many links in one array; a single link is many of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.core.links.intervals import Interval

UNANSWERED = 3  # in a row, at least: the brokers' own default of `probes_missed`
BY_CHANCE = 0.05  # with this probability losses alone look like an outage somewhere in a history
SETTLE_S = 5.0  # before the end of a run: what was sent later may have been answered after it
SAME_INSTANT_S = 1e-5  # by rounding, an instant and a difference of instants deviate so much

Instants = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Frames(NamedTuple):
    """The frames of many links, one link after the other, each link's in the order in which they
    were sent; and from when to when each link was watched."""

    first: Numbers  # where the frames of each link begin, and where those of the last one end
    sent_at: Instants
    answered: Flags
    from_at: Instants  # of each link
    end_at: Instants  # of each link

    def link(self) -> Numbers:
        """The number of each frame's link."""
        return np.repeat(np.arange(self.from_at.size), np.diff(self.first))


class Spans(NamedTuple):
    """Intervals of many links, sorted by link and by time."""

    link: Numbers
    from_s: Instants
    to_s: Instants

    def where(self, wanted: Flags) -> Spans:
        return Spans(self.link[wanted], self.from_s[wanted], self.to_s[wanted])


def outages(
    sent_at: Instants,
    answered: Flags,
    watched: Interval,
    down: Iterable[Interval] = (),
    unanswered: int | None = None,
) -> list[Interval]:
    """The outages of one link while it was watched, sorted and disjoint; frames in the order in
    which they were sent. `unanswered` in a row are one; None: as many as chance hardly gives."""
    frames = _of_one(sent_at, answered, watched)
    from_s, to_s = np.array(sorted(down), np.float64).reshape(-1, 2).T
    least = None if unanswered is None else np.array([unanswered])
    found = outages_of_links(frames, Spans(np.zeros(from_s.size, np.int64), from_s, to_s), least)
    return list(zip(found.from_s.tolist(), found.to_s.tolist(), strict=True))


def reported(at: Iterable[float], up: Iterable[bool], watched: Interval) -> list[Interval]:
    """The intervals of the watched time in which one link was reported down."""
    instants, flags = np.array([*at], np.float64), np.array([*up], bool)
    frames = _of_one(instants[:0], flags[:0], watched)
    found = reported_of_links(np.zeros(instants.size, np.int64), instants, flags, frames)
    return list(zip(found.from_s.tolist(), found.to_s.tolist(), strict=True))


def outages_of_links(frames: Frames, down: Spans, unanswered: Numbers | None = None) -> Spans:
    """The outages of each link; `down` is when each was reported so."""
    silent = silences(frames, unusual(frames) if unanswered is None else unanswered)
    quiet = down.where(~_asked(frames, down))
    return _disjoint(
        Spans(
            np.concatenate((silent.link, quiet.link)),
            np.concatenate((silent.from_s, quiet.from_s)),
            np.concatenate((silent.to_s, quiet.to_s)),
        )
    )


def unusual(frames: Frames) -> Numbers:
    """Of each link: how many frames in a row without an answer are more than losses."""
    link, answered = frames.link(), frames.answered
    before, links = answered[:-1] & (link[:-1] == link[1:]), frames.from_at.size
    heard = np.bincount(link[:-1][before], minlength=links)
    lost = np.bincount(link[:-1][before & ~answered[1:]], minlength=links)
    least, tells = np.full(links, UNANSWERED), (lost > 0) & (lost < heard)
    by_chance = np.log(BY_CHANCE / np.diff(frames.first)[tells])
    in_a_row = np.ceil(by_chance / np.log(lost[tells] / heard[tells]))
    least[tells] = np.maximum(UNANSWERED, in_a_row.astype(np.int64))
    return least


def silences(frames: Frames, unanswered: Numbers) -> Spans:
    """Where so many frames in a row, or more, were not answered."""
    link, sent_at, answered = frames.link(), frames.sent_at, frames.answered
    changes = (np.diff(answered.astype(np.int8)) != 0) | (np.diff(link) != 0)
    edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [answered.size]))
    starts, ends = edges[:-1], edges[1:]
    if not answered.size:
        starts = ends = starts[:0]
    wanted = ~answered[starts] & (ends - starts >= unanswered[link[starts]])
    starts, ends = starts[wanted], ends[wanted]
    of = link[starts]
    middles = np.concatenate(([0.0], (sent_at[:-1] + sent_at[1:]) / 2, [0.0]))
    from_s = np.where(starts == frames.first[of], frames.from_at[of], middles[starts])
    to_s = np.where(ends == frames.first[of + 1], frames.end_at[of], middles[ends])
    return Spans(of, from_s, to_s).where(from_s < to_s)


def reported_of_links(link: Numbers, at: Instants, up: Flags, frames: Frames) -> Spans:
    """The intervals of the watched time in which links were reported down. One that never came up
    lasts to the end; one that begins just before the end is the run's own end, and does not count.
    """
    order = np.lexsort((up, at, link))
    link, at, up = link[order], at[order], up[order]
    other = np.diff(link, prepend=-1) != 0
    starts = np.flatnonzero(~up & (other | np.roll(up, 1)))
    edges = np.append(np.flatnonzero(up | other), link.size)
    ends = edges[np.searchsorted(edges, starts, side="right")]
    of, late_at = link[starts], frames.end_at - SETTLE_S
    comes_up = (np.append(link, -1)[ends] == of) & np.append(up, False)[ends]
    until = np.where(comes_up, np.append(at, 0.0)[ends], frames.end_at[of])
    from_s, to_s = np.maximum(at[starts], frames.from_at[of]), np.minimum(until, frames.end_at[of])
    before_the_end = (from_s < late_at[of]) | (to_s < frames.end_at[of])
    return Spans(of, from_s, to_s).where((from_s < to_s) & before_the_end)


def within(instants: Instants, intervals: Sequence[Interval]) -> Flags:
    """Which of the instants lie in one of the intervals, which are sorted and disjoint."""
    edges = np.array([edge for interval in intervals for edge in interval])
    inside: Flags = np.searchsorted(edges, instants, side="right") % 2 == 1
    return inside


def within_spans(frames: Frames, spans: Spans) -> Flags:
    """Which frames were sent in one of their link's spans, which are disjoint."""
    steps = np.zeros(frames.sent_at.size + 1, np.int64)
    np.add.at(steps, _place(frames, spans.link, spans.from_s), 1)
    np.add.at(steps, _place(frames, spans.link, spans.to_s), -1)
    return np.cumsum(steps[:-1]) > 0


def _of_one(sent_at: Instants, answered: Flags, watched: Interval) -> Frames:
    from_at, end_at = np.array([watched[0]]), np.array([watched[1]])
    return Frames(np.array([0, sent_at.size]), sent_at, answered, from_at, end_at)


def _asked(frames: Frames, spans: Spans) -> Flags:
    """Was anything sent in between? A link that comes up is asked at the same instant."""
    begins, ends = spans.from_s + SAME_INSTANT_S, spans.to_s - SAME_INSTANT_S
    first = _place(frames, spans.link, np.nextafter(begins, np.inf))
    asked: Flags = _place(frames, spans.link, ends) > first
    return asked


def _place(frames: Frames, link: Numbers, instants: Instants) -> Numbers:
    """The first frame of a link that was sent at an instant or later: a bisection for many links
    at once."""
    low, high, sent_at = frames.first[link], frames.first[link + 1], np.append(frames.sent_at, 0.0)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        earlier = open_ & (sent_at[middle] < instants)
        low, high = np.where(earlier, middle + 1, low), np.where(open_ & ~earlier, middle, high)
    return low


def _disjoint(spans: Spans) -> Spans:
    """The same time in spans that are sorted and do not touch (`core.intervals.disjoint`)."""
    order = np.lexsort((spans.to_s, spans.from_s, spans.link))
    link, from_s, to_s = spans.link[order], spans.from_s[order], spans.to_s[order]
    if not link.size:
        return Spans(link, from_s, to_s)
    # Where each span stands among all by its end: later links stand higher, so the highest so far
    # is the latest end of the same link.
    by_end = np.lexsort((to_s, link))
    standing = np.empty_like(by_end)
    standing[by_end] = np.arange(link.size)
    latest_s = to_s[by_end][np.maximum.accumulate(standing)]
    apart = (np.diff(link) != 0) | (from_s[1:] > latest_s[:-1])
    starts = np.concatenate(([0], np.flatnonzero(apart) + 1))
    ends = np.append(starts[1:], link.size) - 1
    return Spans(link[starts], from_s[starts], latest_s[ends])
