"""Which patterns of outages coincide? All are compared with all that share a slice with them.

How much two patterns can have in common at most, the product of two sparse matrices tells: pieces
by slices, and slices by patterns. It is computed for some patterns at a time, so that memory does
not depend on how many there are. For the few pairs that could belong together the pieces themselves
are compared. Pairs that are of one group already need not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

TOGETHER = 0.5  # of the time in which either is down
ABOVE_CHANCE = 2.0
MOST_AT_ONCE = 2_000_000  # pairs, or pieces of pairs: some hundred megabytes
ROUNDED = 1 + 1e-9  # sums in another order differ by less

Numbers = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Pieces(NamedTuple):
    """When patterns were down: one pattern after the other, each in the order of its cells."""

    first: Numbers  # where the pieces of each pattern begin, and where those of the last one end
    cell: Numbers  # a slice of a run
    from_s: Seconds
    to_s: Seconds
    watched_s: Seconds  # of each pattern

    def down_s(self) -> Seconds:
        return np.add.reduceat(self.to_s - self.from_s, self.first[:-1])

    def matrix(self, of: Seconds) -> csr_array:
        cells = int(self.cell.max()) + 1
        return csr_array((of, self.cell, self.first), (self.watched_s.size, cells))


def group_numbers(patterns: pa.Table) -> pa.Table:
    """Of the patterns of `groups`: link, group; groups are numbered from 1 in the order of their
    first links, and a link that is in none is left out."""
    patterns = patterns.combine_chunks()
    if not patterns.num_rows:
        return pa.table({"link": pa.array([], pa.string()), "group": pa.array([], pa.int64())})
    label = coinciding(_pieces(patterns))
    links = patterns["links"].combine_chunks()
    label = label[pc.list_parent_indices(links).to_numpy()]
    table = pa.table({"link": links.flatten(), "label": label}).sort_by("link")
    found, first, place, size = np.unique(
        table["label"].to_numpy(), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(np.where((size > 1) & (found >= 0), first, table.num_rows), kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(1, order.size + 1)
    grouped = pa.table({"link": table["link"], "group": number[place]})
    return grouped.filter(pa.array((size[place] > 1) & (found[place] >= 0)))


def coinciding(pieces: Pieces) -> Numbers:
    """The group of each pattern: a number that those of one group share, or -1 where not even links
    with this very pattern belong together."""
    down_s = pieces.down_s()
    group = np.arange(down_s.size)
    for some, others in _pairs(pieces, down_s):
        count = int(np.diff(pieces.first)[some].sum()) // MOST_AT_ONCE + 1
        for one, other in zip(
            np.array_split(some, count), np.array_split(others, count), strict=True
        ):
            apart = group[one] != group[other]
            one, other = one[apart], other[apart]
            both_s = _both_s(pieces, one, other)
            belong = _belong(both_s, down_s[one], down_s[other], _longer(pieces, one, other))
            group = _merged(group, one[belong], other[belong])
    alone = np.bincount(group, minlength=group.size)[group] == 1
    return np.where(alone & ~_belong(down_s, down_s, down_s, pieces.watched_s), -1, group)


def _pieces(patterns: pa.Table) -> Pieces:
    lists = patterns["pieces"].combine_chunks()
    piece = lists.flatten()
    run, number = (piece.field(name) for name in ("run", "slice"))
    codes = pc.rank(run, tiebreaker="dense").to_numpy().astype(np.int64)  # in the order of names
    at = number.to_numpy() - pc.min(number).as_py()
    _, cell = np.unique(codes * (int(at.max()) + 1) + at, return_inverse=True)
    first = np.concatenate(([0], np.cumsum(lists.value_lengths().to_numpy())))
    from_s, to_s = (piece.field(name).to_numpy() for name in ("from_s", "to_s"))
    return Pieces(first, cell, from_s, to_s, patterns["watched_s"].to_numpy())


def _pairs(pieces: Pieces, down_s: Seconds) -> Iterator[tuple[Numbers, Numbers]]:
    """Pairs of patterns that could belong together, if they coincided wherever they share a cell;
    some at a time."""
    lengths = pieces.matrix(pieces.to_s - pieces.from_s)
    flags = pieces.matrix(np.ones(pieces.cell.size))
    work = np.cumsum(flags @ np.bincount(pieces.cell))
    by_cell, first = flags.T.tocsr(), 0
    while first < down_s.size:
        done = work[first - 1] if first else 0.0
        last = max(first + 1, int(np.searchsorted(work, done + MOST_AT_ONCE, side="right")))
        most = (lengths[first:last] @ by_cell).tocoo()
        one, other, most_s = most.row.astype(np.int64) + first, most.col.astype(np.int64), most.data
        might = _belong(most_s * ROUNDED, down_s[one], down_s[other], _longer(pieces, one, other))
        wanted = might & (one < other)
        yield one[wanted], other[wanted]
        first = last


def _belong(both_s: Seconds, one_s: Seconds, other_s: Seconds, watched_s: Seconds) -> Flags:
    either_s, chance_s = one_s + other_s - both_s, one_s * other_s / watched_s
    belong: Flags = (both_s >= TOGETHER * either_s) & (both_s >= ABOVE_CHANCE * chance_s)
    return belong


def _longer(pieces: Pieces, one: Numbers, other: Numbers) -> Seconds:
    """For how long the one was watched that was watched for longer: what the other one's outages
    are compared with lies in that time."""
    return np.maximum(pieces.watched_s[one], pieces.watched_s[other])


def _both_s(pieces: Pieces, one: Numbers, other: Numbers) -> Seconds:
    """For how long both patterns of each pair were down."""
    count = np.diff(pieces.first)[one]
    pair = np.repeat(np.arange(one.size), count)
    mine = (
        np.arange(pair.size) - np.repeat(np.cumsum(count) - count, count) + pieces.first[one][pair]
    )
    cells, owner = (
        int(pieces.cell.max()) + 1,
        np.repeat(np.arange(pieces.watched_s.size), np.diff(pieces.first)),
    )
    places = owner * cells + pieces.cell  # rising
    wanted = other[pair] * cells + pieces.cell[mine]
    theirs = np.minimum(np.searchsorted(places, wanted), places.size - 1)
    both_s = np.minimum(pieces.to_s[mine], pieces.to_s[theirs]) - np.maximum(
        pieces.from_s[mine], pieces.from_s[theirs]
    )
    shared = np.where(places[theirs] == wanted, np.maximum(both_s, 0.0), 0.0)
    return np.bincount(pair, weights=shared, minlength=one.size).astype(np.float64)


def _merged(group: Numbers, one: Numbers, other: Numbers) -> Numbers:
    """The groups, named by their first patterns, when these pairs belong together too."""
    if not one.size:
        return group
    size = group.size
    rows, columns = np.concatenate((np.arange(size), one)), np.concatenate((group, other))
    graph = coo_array((np.ones(rows.size, np.int8), (rows, columns)), (size, size))
    _, found = connected_components(graph, directed=False)
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    named: Numbers = first[place]
    return named
