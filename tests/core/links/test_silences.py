"""Outages are found where frames in a row have no answer, and last as long as they did."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.links.intervals import Interval, disjoint
from tidings.core.links.silences import (
    Frames,
    outages,
    outages_of_links,
    reported,
    reported_of_links,
    within,
    within_spans,
)

PROBES_AT = np.arange(0.0, 1000.0, 5.0)
WATCHED = (0.0, 1000.0)


def answered(*down: Interval) -> np.ndarray:
    return ~within(PROBES_AT, list(down))


def test_a_link_that_always_answers_has_no_outage() -> None:
    assert outages(PROBES_AT, answered(), WATCHED) == []
    assert outages(np.array([]), np.array([], bool), WATCHED) == []


def test_two_missing_answers_are_losses_and_three_an_outage() -> None:
    assert outages(PROBES_AT, answered((99.0, 109.0)), WATCHED) == []
    assert outages(PROBES_AT, answered((99.0, 111.0)), WATCHED) == [(97.5, 112.5)]


def test_a_link_that_loses_much_needs_a_longer_silence() -> None:
    drawn = np.random.default_rng(1)
    found = 0
    for _ in range(100):
        lossy = drawn.random(PROBES_AT.size) > 0.2
        found += bool(outages(PROBES_AT, lossy, WATCHED))
        failing = outages(PROBES_AT, lossy & answered((300.0, 400.0)), WATCHED)
        assert any(start <= 300.0 and end >= 395.0 for start, end in failing)
    assert found <= 10  # of 100, where 5 are expected


def test_lengths_are_right_on_average_whatever_the_phase() -> None:
    phases = np.linspace(0.0, 5.0, 50, endpoint=False)
    lengths = []
    for phase in phases:
        ((start, end),) = outages(PROBES_AT, answered((300 + phase, 332 + phase)), WATCHED)
        assert start == pytest.approx(300 + phase, abs=2.5)
        lengths.append(end - start)
    assert np.mean(lengths) == pytest.approx(32.0, abs=0.2)


def test_an_outage_at_an_edge_reaches_it() -> None:
    found = outages(PROBES_AT, answered((-1.0, 20.0), (980.0, 2000.0)), WATCHED)
    assert found == [(0.0, 17.5), (977.5, 1000.0)]


def test_a_reported_outage_counts_where_nothing_was_sent_and_only_there() -> None:
    gap = (PROBES_AT < 400) | (PROBES_AT > 460)
    sent_at = PROBES_AT[gap]
    everything = np.ones(sent_at.size, bool)
    assert outages(sent_at, everything, WATCHED, [(397.0, 461.0)]) == [(397.0, 461.0)]
    assert outages(PROBES_AT, answered(), WATCHED, [(397.0, 461.0)]) == []


def test_reports_become_intervals_and_an_open_one_lasts_to_the_end() -> None:
    at, up = [0.0, 10.0, 12.0, 20.0, 30.0], [True, False, False, True, False]
    assert reported(at, up, (0.0, 40.0)) == [(10.0, 20.0), (30.0, 40.0)]


def test_only_what_was_reported_while_the_link_was_watched_counts() -> None:
    at, up = [10.0, 20.0, 25.0, 35.0], [False, True, False, True]
    assert reported(at, up, (15.0, 30.0)) == [(15.0, 20.0)]
    assert reported(at, up, (15.0, 31.0)) == [(15.0, 20.0), (25.0, 31.0)]
    assert reported(at, up, (20.0, 40.0)) == [(25.0, 35.0)]


def test_a_link_that_goes_down_as_the_run_ends_was_taken_down_with_it() -> None:
    assert reported([36.0], [False], (0.0, 40.0)) == []
    assert reported([36.0, 39.0], [False, True], (0.0, 40.0)) == [(36.0, 39.0)]


intervals = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(
    lambda ends: (float(min(ends)), float(max(ends)))
)


@given(st.lists(intervals))
def test_disjoint_intervals_cover_the_same_instants_and_are_apart(given: list[Interval]) -> None:
    found = disjoint(given)
    instants = np.arange(0.0, 51.0, 0.5)
    naive = [any(start <= at < end for start, end in given) for at in instants]
    assert within(instants, found).tolist() == naive
    edges = [edge for interval in found for edge in interval]
    assert edges == sorted(set(edges))


# ---- many links at once


def reported_one_by_one(
    at: list[float], up: list[bool], watched: Interval, settle_s: float = 5.0
) -> list[Interval]:
    """The same as `reported`, by walking along the reports."""
    found: list[Interval] = []
    down_at: float | None = None
    for instant, is_up in sorted(zip(at, up, strict=True)):
        if is_up and down_at is not None:
            found.append((down_at, instant))
        down_at = None if is_up else instant if down_at is None else down_at
    if down_at is not None:
        found.append((down_at, watched[1]))
    inside = [(max(start, watched[0]), min(end, watched[1])) for start, end in found]
    late_at = watched[1] - settle_s
    return [(a, b) for a, b in inside if a < b and (a < late_at or b < watched[1])]


@given(st.integers(0, 2**32 - 1))
def test_links_that_are_looked_at_together_are_as_each_by_itself(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    links = int(drawn.integers(1, 8))
    sizes, reports = drawn.integers(1, 40, links), drawn.integers(0, 6, links)
    first = np.concatenate(([0], np.cumsum(sizes)))
    sent = [np.sort(drawn.uniform(0, 100, size)) for size in sizes]
    heard = [drawn.random(size) < drawn.choice([0.3, 0.8, 1.0]) for size in sizes]
    begin, end = np.array([at[0] for at in sent]), np.array([at[-1] + 8.0 for at in sent])
    frames = Frames(first, np.concatenate(sent), np.concatenate(heard), begin, end)
    at, up = drawn.integers(0, 110, reports.sum()).astype(float), drawn.random(reports.sum()) < 0.5
    of = np.repeat(np.arange(links), reports)
    down = reported_of_links(of, at, up, frames)
    found = outages_of_links(frames, down)
    inside = within_spans(frames, found)
    for link in range(links):
        watched = (float(begin[link]), float(end[link]))
        mine = of == link
        expected = reported_one_by_one(at[mine].tolist(), up[mine].tolist(), watched)
        assert reported(at[mine].tolist(), up[mine].tolist(), watched) == expected
        alone = outages(sent[link], heard[link], watched, expected)
        together = found.where(found.link == link)
        assert list(zip(together.from_s, together.to_s, strict=True)) == alone
        assert list(disjoint(alone)) == alone
        at_link = inside[first[link] : first[link + 1]]
        assert at_link.tolist() == within(sent[link], alone).tolist()
