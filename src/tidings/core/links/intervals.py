"""Intervals of time, as pairs of instants: the same time in intervals that are sorted and apart."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[float, float]


def disjoint(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same time in intervals that are sorted and do not touch; empty ones are left out."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return tuple(found)
