"""The headline figures are what a person would compute by hand from the rows."""

import time
from math import inf, isnan
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.segments import a_moment, rows_in
from support.traces import (
    BY_HAND,
    Tables,
    W,
    X,
    Y,
    Z,
    a_delivery,
    a_drop,
    a_publication,
    a_wish,
    some_frames,
    tables_of,
    write_tables,
)

from tidings.core.errors import ConfigError, FileError
from tidings.core.trace import TABLES, Row
from tidings.traces import headline
from tidings.traces.compaction import compact
from tidings.traces.headline import outcomes, per_subscriber, read_run, read_tables, summary
from tidings.traces.live_files import TraceFiles
from tidings.traces.outcomes import GRAIN_S
from tidings.traces.schemas import arrow_schema

BROKERS = ("b1", "b2", "b3")
SUBSCRIPTIONS = ("b1/a:t", "b2/b:t", "b2/c:t", "b3/d:t")


def rows_of(tables: Tables) -> dict[tuple[int, str], dict[str, object]]:
    return {(row["message"], row["subscription"]): row for row in outcomes(tables).to_pylist()}


def test_each_publication_and_interested_subscription_has_one_outcome() -> None:
    rows = rows_of(tables_of({"run": BY_HAND}))
    found = {key: (row["outcome"], row["reason"], row["hops"]) for key, row in rows.items()}
    assert found == {
        (1, W): ("in-time", None, 0),
        (1, X): ("in-time", None, 1),  # the earlier of two copies
        (1, Y): ("late", None, 3),  # dropped first, but delivered
        (1, Z): ("in-time", None, 3),  # the same message, without a deadline
        (2, X): ("dropped", "queue-full", None),  # the earlier of two reasons
        (2, Y): ("in-flight", None, None),
        (3, X): ("late", None, 1),
    }


def test_the_tighter_deadline_holds_and_prices_multiply() -> None:
    rows = rows_of(tables_of({"run": BY_HAND}))
    assert rows[1, X]["deadline_s"] == 0.1
    assert rows[3, X]["deadline_s"] == 0.01
    assert rows[1, W]["deadline_s"] == inf
    assert (rows[1, X]["price"], rows[1, Y]["price"]) == (6.0, 2.0)


def test_a_delay_is_a_difference_of_clocks_or_the_age_that_was_told() -> None:
    tables = tables_of({"run": BY_HAND})
    by_clock, by_age = outcomes(tables), outcomes(tables, by="age")
    assert by_clock["delay_s"].drop_null().to_pylist() == pytest.approx([0, 0.02, 0.08, 0.08, 0.02])
    assert set(by_age["delay_s"].drop_null().to_pylist()) == {0.5}


def test_the_summary_is_what_a_hand_computes() -> None:
    found = summary(tables_of({"run": BY_HAND}))
    assert (found.publications, found.expected, found.delivered) == (4, 7, 5)
    assert (found.delivery_ratio, found.on_time_ratio) == (5 / 7, 3 / 7)
    assert found.packets_per_subscriber == 6 / 5  # b2 and b3, b2 and b3, b2
    assert found.message_number == 6
    assert found.earnings == 10.0  # at a publisher's price of 2: w for 1, x for 3, z for 1
    assert found.delay_p50_s == pytest.approx(0.02)
    assert found.delay_p95_s == found.delay_p99_s == pytest.approx(0.08)
    assert (found.dropped, found.in_flight) == ({"queue-full": 1}, 1)


def test_each_subscriber_has_a_summary_of_its_own() -> None:
    found = {each.subscription: each for each in per_subscriber(tables_of({"run": BY_HAND}))}
    assert list(found) == [W, X, Y, Z]
    assert (found[X].broker, found[X].deadline_s, found[X].expected) == ("b2", 0.01, 3)
    assert (found[X].delivery_ratio, found[X].on_time_ratio) == (2 / 3, 1 / 3)
    assert [found[wish].earnings for wish in (W, X, Y, Z)] == [2.0, 6.0, 0.0, 2.0]
    assert found[Y].delay_p50_s == pytest.approx(0.08)


def test_a_delay_that_equals_the_deadline_is_in_time() -> None:
    tables = tables_of({"run": [a_publication(1, 1e9, (X,), 0.1), a_delivery(1, 1e9 + 0.1, X)]})
    assert rows_of(tables)[1, X]["outcome"] == "in-time"
    late = [a_publication(1, 1e3, (X,), 0.1), a_delivery(1, 1e3 + 0.1 + 10 * GRAIN_S, X)]
    assert rows_of(tables_of({"run": late}))[1, X]["outcome"] == "late"


def test_a_run_without_rows_has_figures_that_say_so() -> None:
    found = summary(tables_of({}))
    assert (found.publications, found.expected, found.dropped) == (0, 0, {})
    assert (found.earnings, found.message_number) == (0.0, 0)
    assert isnan(found.delivery_ratio)
    assert isnan(found.delay_p50_s)
    assert isnan(found.packets_per_subscriber)
    assert per_subscriber(tables_of({})) == []


def test_the_same_message_id_in_another_run_is_another_message() -> None:
    lost = [a_publication(1, 1.0, (X,))]
    kept = [*lost, a_delivery(1, 1.5, X)]
    found = outcomes(tables_of({"lost": lost, "kept": kept}))
    assert found.select(["run", "outcome"]).to_pylist() == [
        {"run": "kept", "outcome": "in-time"},
        {"run": "lost", "outcome": "in-flight"},
    ]


times = st.integers(0, 5).map(float)  # few values, so that ties are common
messages = st.integers(1, 4)
some_subscriptions = st.sets(st.sampled_from(SUBSCRIPTIONS), min_size=1).map(sorted).map(tuple)
some_rows = st.one_of(
    st.builds(a_wish, st.sampled_from(SUBSCRIPTIONS), times.map(lambda t: t + 0.5), at=times),
    st.builds(lambda m, at, s, hops: a_delivery(m, at, s, hops=hops), messages, times,
              st.sampled_from(SUBSCRIPTIONS), st.integers(0, 3)),
    st.builds(a_drop, messages, times, st.sampled_from(["expired", "no-route"]),
              st.sampled_from(BROKERS)),
)  # fmt: skip
publications = st.dictionaries(messages, st.tuples(times, some_subscriptions), max_size=4)


@settings(deadline=None)
@given(published=publications, others=st.lists(some_rows, max_size=30))
def test_outcomes_equal_those_of_looking_each_pair_up(
    published: dict[int, tuple[float, tuple[str, ...]]], others: list[Row]
) -> None:
    rows = [a_publication(m, at, wanted) for m, (at, wanted) in published.items()]
    found = rows_of(tables_of({"run": [*rows, *others]}))
    assert {key: (row["outcome"], row["reason"], row["hops"]) for key, row in found.items()} == {
        (message, wish): looked_up(message, at, wish, others)
        for message, (at, wanted) in published.items()
        for wish in wanted
    }


def looked_up(message: int, at: float, wish: str, rows: list[Row]) -> tuple[object, ...]:
    """The outcome of one pair, by going through all rows."""
    of_type = {name: [row for row in rows if type(row) is kind] for name, kind in TABLES.items()}
    wishes = sorted(
        (r.recorded_at, r.deadline_s) for r in of_type["subscribed"] if r.subscription == wish
    )
    held = [asked for asked in wishes if asked[0] <= at] or wishes[:1] or [(0.0, inf)]
    deadline_s = held[-1][1]
    arrived = [
        (r.recorded_at, r.hops)
        for r in of_type["delivered"]
        if r.message == message and wish in r.subscriptions
    ]
    if arrived:
        delivered_at, hops = min(arrived)
        return ("in-time" if delivered_at - at <= deadline_s else "late", None, hops)
    home = wish.partition("/")[0]
    dropped = [
        (r.recorded_at, r.reason)
        for r in of_type["dropped"]
        if r.message == message and home in r.destinations
    ]
    return ("dropped", min(dropped)[1], None) if dropped else ("in-flight", None, None)


def test_tables_come_back_from_files_and_missing_ones_are_empty(tmp_path: Path) -> None:
    tables = tables_of({"run": BY_HAND})
    write_tables(tmp_path, tables)
    (tmp_path / "published" / ".draft.parquet").write_bytes(b"half a file")
    found = read_tables(tmp_path)
    assert found == tables
    assert found["probed"].schema == arrow_schema(TABLES["probed"])
    assert summary(found) == summary(tables)


def test_a_folder_without_traces_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a folder without traces.*published/\*\.parquet"):
        read_tables(tmp_path)
    with pytest.raises(FileError, match=r"nowhere: No such file or directory\.$"):
        read_tables(tmp_path / "nowhere")


def test_rows_of_another_version_are_refused(tmp_path: Path) -> None:
    rows = tables_of({"run": BY_HAND})["carried"].replace_schema_metadata({"tidings": "999"})
    write_tables(tmp_path, {"carried": rows})
    with pytest.raises(ConfigError, match=r"rows\.parquet.*version.*'999'"):
        read_tables(tmp_path)


def test_a_run_is_read_without_a_look_at_what_else_lies_in_the_folder(tmp_path: Path) -> None:
    tables = tables_of({"new-1": BY_HAND})
    write_tables(tmp_path, tables, "new-1-b1-000000")
    write_tables(tmp_path, tables_of({"old-1": BY_HAND}), "old-1-b1-000000")
    write_tables(tmp_path, tables_of({"new-1-x": BY_HAND}), "new-1-x-b1-000000")
    (tmp_path / "published" / "old-1-b1-000001.parquet").write_bytes(b"cut")
    (tmp_path / "probed").mkdir()
    (tmp_path / "probed" / "new-1-b1-000001.parquet").write_bytes(b"no figure needs it")
    found, problems = read_run(tmp_path, "new-1")
    assert problems == []
    assert found == {name: tables[name] for name in found}
    assert summary(found) == summary(tables)
    assert per_subscriber(found) == per_subscriber(tables)


def test_a_bad_file_of_a_run_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    for number in range(4):
        rows = [a_publication(number, float(number), (X,))]
        write_tables(tmp_path, tables_of({"r": rows}), f"r-b1-{number:06}")
    bad = tmp_path / "published" / "r-b1-000002.parquet"
    bad.write_bytes(bad.read_bytes()[:-20])
    found, (problem,) = read_run(tmp_path, "r")
    assert found["published"]["message"].to_pylist() == [0, 1, 3]
    assert str(bad) in problem


def test_a_run_that_is_gathered_while_it_ends_is_read_once(tmp_path: Path) -> None:
    run = "a b:c%20"  # no file can have this name
    for number in range(4):
        trace = TraceFiles(tmp_path, run, "b1")
        for row in a_moment(number):
            trace.rows[type(row)].append(row)
        trace.close()
    before, _ = read_run(tmp_path, run)
    assert compact(tmp_path, 0.0, time.time() + 1.0).segments == 6
    after, problems = read_run(tmp_path, run)
    assert before["published"].num_rows == 8
    assert {name: rows_in(rows) for name, rows in after.items()} == {
        name: rows_in(rows) for name, rows in before.items()
    }
    assert problems == []


def test_a_run_that_left_nothing_has_empty_tables(tmp_path: Path) -> None:
    found, problems = read_run(tmp_path, "r")
    assert (summary(found).expected, problems) == (0, [])


def test_what_was_carried_before_any_outcome_counts_nobody() -> None:
    rows = tables_of({"run": [some_frames("data", 3), a_publication(1, 1.0, (W,))]})
    assert isnan(headline.packets_per_subscriber(outcomes(rows), rows["carried"]))
    assert isinstance(outcomes(rows), pa.Table)
