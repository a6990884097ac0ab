"""Groups stay whole, wherever batches end; and coinciding outages are found as by hand."""

from itertools import combinations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.pipeline.transforms.links.coincidence import group_numbers
from tidings.pipeline.transforms.links.groups import BETWEEN
from tidings.pipeline.transforms.links.whole_groups import group_starts, whole_groups


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 7), st.integers(1, 20))
def test_groups_stay_whole_and_in_order(sizes: list[int], batch: int, rows: int) -> None:
    source = [f"s{number // 3:02}" for number, size in enumerate(sizes) for _ in range(size)]
    target = [f"t{number % 3}" for number, size in enumerate(sizes) for _ in range(size)]
    table = pa.table({"source": source, "target": target, "row": range(len(source))})
    found = list(whole_groups(table.to_batches(batch), ("source", "target"), rows))
    assert pa.concat_tables(found).equals(table)
    starts = [len(group_starts(part, ("source", "target"))) for part in found]
    assert sum(starts) == len(sizes)
    assert all(part.num_rows <= max(rows, 2 * max(sizes)) + batch for part in found)


# ---- outages that coincide

Piece = tuple[str, int, float, float]  # run, slice, from_s, to_s
SLICE_S = 10.0


def by_hand(links: dict[str, list[Piece]], watched_s: dict[str, float]) -> list[set[str]]:
    """Groups of links, each compared with each."""
    down_s = {link: sum(to - start for *_, start, to in pieces) for link, pieces in links.items()}
    groups = [{link} for link in links]
    for one, other in combinations(sorted(links), 2):
        both_s = sum(
            max(0.0, min(a[3], b[3]) - max(a[2], b[2]))
            for a in links[one]
            for b in links[other]
            if a[:2] == b[:2]
        )
        either_s = down_s[one] + down_s[other] - both_s
        chance_s = down_s[one] * down_s[other] / max(watched_s[one], watched_s[other])
        if both_s >= 0.5 * either_s and both_s >= 2 * chance_s:
            merged = [group for group in groups if one in group or other in group]
            groups = [group for group in groups if group not in merged] + [set().union(*merged)]
    return sorted((group for group in groups if len(group) > 1), key=min)


def tabled(links: dict[str, list[Piece]], watched_s: dict[str, float]) -> pa.Table:
    """As `groups.patterns` makes them: links of one pattern in one row."""
    same: dict[tuple[tuple[Piece, ...], float], list[str]] = {}
    for link, pieces in sorted(links.items()):
        same.setdefault((tuple(sorted(pieces)), watched_s[link]), []).append(link)
    names = ("run", "slice", "from_s", "to_s")
    rows = [
        {"pieces": [dict(zip(names, p, strict=True)) for p in pieces], "watched_s": w, "links": of}
        for (pieces, w), of in same.items()
    ]
    return pa.Table.from_pylist(rows)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_groups_are_those_that_comparing_each_with_each_finds(seed: int, whole: bool) -> None:
    drawn = np.random.default_rng(seed)
    links: dict[str, list[Piece]] = {}
    for number in range(int(drawn.integers(2, 25))):
        cells = drawn.choice(12, int(drawn.integers(1, 6)), replace=False)
        pieces = []
        for cell in cells.tolist():
            start, end = np.sort(drawn.choice(11, 2, replace=False)) if not whole else (0, 10)
            at = (cell % 6) * SLICE_S
            pieces.append((f"run{cell // 6}", cell % 6, at + start, at + end))
        links[BETWEEN.join(("a", f"n{number:02}"))] = pieces
    watched_s = {link: float(drawn.choice([60.0, 120.0, 400.0])) for link in links}
    found = group_numbers(tabled(links, watched_s)).to_pylist()
    grouped: dict[int, set[str]] = {}
    for row in found:
        grouped.setdefault(row["group"], set()).add(row["link"])
    assert sorted(grouped) == list(range(1, len(grouped) + 1))
    assert [grouped[number] for number in sorted(grouped)] == by_hand(links, watched_s)


def test_whoever_fails_with_one_of_a_group_belongs_to_it_however_many_they_are() -> None:
    chain = {
        BETWEEN.join(("a", f"n{n:04}")): [
            ("r", s, 10.0 * s, 10.0 * s + 10.0) for s in range(n, n + 4)
        ]
        for n in range(3000)
    }
    found = group_numbers(tabled(chain, dict.fromkeys(chain, 1e6)))
    assert found["group"].to_pylist() == [1] * 3000


def test_without_outages_there_is_no_group() -> None:
    empty = tabled({"a\x1fb": [("r", 0, 0.0, 10.0)]}, {"a\x1fb": 100.0})
    assert group_numbers(empty).num_rows == 0
    assert group_numbers(empty.slice(1)).num_rows == 0
