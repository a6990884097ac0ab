import math

import numpy as np
import pytest

from tidings.core.errors import FilterError, TopicError
from tidings.core.matching import MatchingIndex, filters, shapes
from tidings.core.matching.conjunctions import MAX_CONJUNCTIONS, conjunctions
from tidings.core.predicate import parse

MANY = 4 * filters.FRESH_LIMIT  # enough that the subscriptions stand in tables


def an_index(*wheres, topic_filter="t"):
    index = MatchingIndex()
    for key, where in enumerate(wheres):
        index.add(key, topic_filter, where and parse(where))
    return index


def thresholds(count):
    return an_index(*(f"x < {limit}" for limit in range(count)))


def test_filters_without_predicates_match_by_topic_alone():
    index = MatchingIndex()
    for key, topic_filter in enumerate(["#", "a/+", "a/#", "a/b", "+/b", "b/#", "$SYS/#", "+"]):
        index.add(key, topic_filter)
    assert index.match("a/b", {}).tolist() == [0, 1, 2, 3, 4]
    assert index.match("a", {}).tolist() == [0, 2, 7]
    assert index.match("$SYS", {}).tolist() == [6]
    index.add(8, "$SYS/+")
    assert index.match("$SYS/load", {}).tolist() == [6, 8]
    assert not index.plan("a/b").conditional


def test_a_plan_tells_what_the_attributes_can_still_change():
    index = an_index(None, "x < 3", None)
    plan = index.plan("t")
    assert plan.unconditional.tolist() == [0, 2]
    assert plan.conditional
    assert plan.match({"x": 1}).tolist() == [0, 1, 2]
    assert plan.match({}).tolist() == [0, 2]
    index.remove(1)
    assert not index.plan("t").conditional


@pytest.mark.parametrize("count", [3, MANY])
def test_the_result_is_a_sorted_array_of_64_bit_keys_that_callers_cannot_spoil(count):
    index = MatchingIndex()
    for key in reversed(range(count)):
        index.add(key, "t")
    keys = index.match("t", {})
    assert keys.dtype == np.int64
    assert keys.tolist() == list(range(count))
    with pytest.raises(ValueError, match="read-only"):
        keys[0] = 7


def test_every_change_gives_a_new_version():
    index = MatchingIndex()
    versions = [index.version]
    index.add(1, "t")
    versions.append(index.version)
    index.remove(1)
    versions.append(index.version)
    assert len(set(versions)) == 3
    assert len(index) == 0


def test_limits_are_exact_to_the_last_bit_of_a_float():
    just_below, just_above = np.nextafter(0.1, 0), np.nextafter(0.1, 1)
    operators = ["<", "<=", ">", ">=", "==", "!="]
    index = an_index(*(f"x {operators[i % 6]} 0.1" for i in range(6 * filters.FRESH_LIMIT)))
    for value in (just_below, 0.1, just_above):
        expected = [
            i for i, op in enumerate(operators) if parse(f"x {op} 0.1").matches({"x": value})
        ]
        assert sorted(set((index.match("t", {"x": value}) % 6).tolist())) == expected


@pytest.mark.parametrize("removed", [0, 1, MANY // 3])
@pytest.mark.parametrize("value", [0.5, MANY / 2, MANY - 10.5, MANY - 2.5, MANY - 1])
def test_few_or_many_matches_come_sorted_and_without_the_removed(value, removed):
    limits = [(7 * key) % MANY for key in range(MANY)]  # so that keys and limits rise differently
    index = an_index(*(f"x < {limit}" for limit in limits))
    index.match("t", {})
    gone = sorted(range(MANY), key=lambda key: -limits[key])[:removed]
    for key in gone:
        index.remove(key)
    expected = [key for key in range(MANY) if value < limits[key] and key not in gone]
    assert index.match("t", {"x": value}).tolist() == expected


def test_equalities_pick_their_span_and_bounds_are_tested_within_it():
    wheres = [f"kind == 'k{i % 5}' and level in (1, {i}) and x > {i}" for i in range(MANY)]
    message = {"kind": "k3", "level": "1", "x": "20"}
    assert an_index(*wheres).match("t", message).tolist() == [3, 8, 13, 18]


def test_a_key_with_several_matching_alternatives_comes_once():
    index = an_index(*["x < 5 or y < 5 or x in (1, 2) or not x > 3"] * MANY)
    assert index.match("t", {"x": 1, "y": 1}).tolist() == list(range(MANY))


def test_what_has_no_columns_is_evaluated_directly():
    index = an_index(*(f"name < 'm' and x >= {i}" for i in range(MANY)))
    assert index.match("t", {"name": "abc", "x": 1}).tolist() == [0, 1]
    assert index.match("t", {"name": "xyz", "x": 1}).tolist() == []


def test_too_many_alternatives_are_not_multiplied_out():
    wide = " and ".join(f"(a{i} < 1 or b{i} < 1)" for i in range(40))
    assert len(conjunctions(parse(wide))) <= MAX_CONJUNCTIONS
    index = an_index(*[wide] * MANY)
    for letter in "ab":
        one_side = {f"{letter}{i}": 0 for i in range(40)}
        assert len(index.match("t", one_side)) == MANY
        assert len(index.match("t", one_side | {f"{letter}39": 2})) == 0


@pytest.mark.parametrize("text", ["x < 3 and x > 5", "x == 1 and x == 2", "x < 3 and x >= 3"])
def test_a_contradiction_takes_no_rows(text):
    assert conjunctions(parse(text)) == []


def test_excluding_numbers_leaves_the_gaps_between_them():
    gaps = conjunctions(parse("x not in (1, 2, 3)"))
    assert len(gaps) == 4


def test_a_key_used_again_is_the_new_subscription_only():
    index = thresholds(MANY)
    index.match("t", {})
    for key in range(0, MANY, 2):
        index.remove(key)
        index.add(key, "t", parse("y == 1"))
    assert index.match("t", {"x": -1}).tolist() == list(range(1, MANY, 2))
    assert index.match("t", {"y": 1}).tolist() == list(range(0, MANY, 2))


def test_an_emptied_index_is_as_new():
    index = thresholds(MANY)
    index.match("t", {})
    for key in range(MANY):
        index.remove(key)
    assert len(index) == 0
    assert index.match("t", {"x": -1}).tolist() == []
    assert not index.plan("t").conditional
    assert index._trie._root.children == {}


def test_misuse_is_refused():
    index = an_index(None)
    with pytest.raises(ValueError, match="in use"):
        index.add(0, "t")
    with pytest.raises(KeyError):
        index.remove(7)
    with pytest.raises(FilterError):
        index.add(1, "a/#/b")
    with pytest.raises(TopicError):
        index.plan("a/+")
    assert len(index) == 1
    assert index.match("t", {}).tolist() == [0]


def test_a_filter_with_very_many_levels_is_no_deeper_recursion():
    deep = "/" * 60_000
    index = an_index(None, topic_filter=deep + "#")
    assert index.match(deep, {}).tolist() == [0]
    index.remove(0)
    assert index.match(deep, {}).tolist() == []


def test_a_row_is_copied_a_logarithmic_number_of_times(monkeypatch):
    copied = []
    run = shapes.SortedRun
    monkeypatch.setattr(
        shapes, "SortedRun", lambda sides, rows: copied.append(len(rows.keys)) or run(sides, rows)
    )
    index, count = MatchingIndex(), 100 * filters.FRESH_LIMIT
    for key in range(count):  # a message between any two changes: the worst case for laziness
        index.add(key, "t", parse(f"x < {key}"))
        index.match("t", {"x": 0})
    assert sum(copied) < 6 * count * np.log2(count / filters.FRESH_LIMIT)
    copied.clear()
    for key in range(count):
        index.remove(key)
        index.match("t", {"x": 0})
    assert count / 2 < sum(copied) < 3 * count  # the dead are not kept, nor paid for too often


def test_rows_stand_in_a_logarithmic_number_of_runs():
    table = shapes.ShapeTable(conjunctions(parse("x < 3"))[0].shape)
    for key in range(1000):
        table.add([(key, *conjunctions(parse(f"x < {key}")))])
        assert len(table.match({"x": 0})) <= 1 + math.log(key + 1, shapes.GROWTH)


def test_equalities_find_their_rows_after_any_merges():
    index = MatchingIndex()
    for key in range(5 * MANY):
        index.add(key, "t", parse(f"kind == 'k{key * key % 11}'"))
        index.match("t", {})
    for rest in range(11):
        expected = [key for key in range(5 * MANY) if key * key % 11 == rest]
        assert index.match("t", {"kind": f"k{rest}"}).tolist() == expected
