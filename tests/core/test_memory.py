"""Remembering for a bounded time, against a dict that remembers exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.memory import Memory

SPAN_S = 10.0


def test_a_key_is_new_once() -> None:
    memory = Memory(SPAN_S)
    assert not memory.repeated(1, 0.0)
    assert memory.repeated(1, 0.0)
    assert not memory.repeated(2, 0.0)


def test_a_key_is_remembered_for_one_span_and_forgotten_after_two() -> None:
    for first_at in (0.0, 3.0, 9.9):
        memory = Memory(SPAN_S)
        memory.repeated(0, 0.0)
        memory.repeated(1, first_at)
        assert memory.repeated(1, first_at + SPAN_S)
    for later in (20.0, 25.0, 1e9):
        memory = Memory(SPAN_S)
        memory.repeated(1, 0.0)
        memory.repeated(2, 19.0)
        assert not memory.repeated(1, later)


@given(
    st.floats(-1e9, 1e9),
    st.lists(st.tuples(st.floats(0.0, 2.5 * SPAN_S), st.integers(0, 5)), max_size=60),
)
def test_it_equals_a_dict_of_times_within_one_and_two_spans(
    start: float, steps: list[tuple[float, int]]
) -> None:
    memory, seen_at, now = Memory(SPAN_S), dict[int, float](), start
    for seconds, key in steps:
        now += seconds
        silence_s = now - seen_at.get(key, float("-inf"))
        repeated = memory.repeated(key, now)
        if silence_s < SPAN_S - 1e-3:
            assert repeated
        if silence_s > 2 * SPAN_S + 1e-3:
            assert not repeated
        seen_at[key] = now


@given(st.lists(st.floats(0.0, 3.0), max_size=300))
def test_it_holds_no_key_longer_than_two_spans(gaps: list[float]) -> None:
    memory, times, now = Memory(SPAN_S), [], 0.0
    for key, gap in enumerate(gaps):
        now += gap
        memory.repeated(key, now)
        times.append(now)
        held = memory._younger | memory._older
        assert all(now - times[old] <= 2 * SPAN_S for old in held)


def test_memory_is_bounded_before_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.core.memory.MOST_KEYS", 100)
    memory = Memory(span_s=1e9)
    for key in range(1_000):
        assert not memory.repeated(key, 0.0)
    assert len(memory._younger) + len(memory._older) <= 202
    assert memory.repeated(999, 0.0)
    assert not memory.repeated(0, 0.0)
