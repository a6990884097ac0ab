"""The index finds exactly the subscriptions that asking each in turn finds."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.core.matching import MatchingIndex, conjunctions, filters, runs
from tidings.core.predicate import Comparison
from tidings.core.predicate.expressions import Membership, Not, all_of, any_of
from tidings.core.topic import matches

LEVELS = ["a", "b", "", "$x"]
NAMES = ["x", "y", "kind"]
NUMBERS = [0.0, 1.0, math.nextafter(1.0, 2.0), 2.5, -3.0, 1e300, 5e-324, 1.7976931348623157e308]
STRINGS = ["", "1", "2.5", "jet", "true", "nan", "-3"]

topics = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=3).map("/".join).filter(bool)
topic_filters = st.builds(
    lambda levels, tail: "/".join([*levels, *tail]),
    st.lists(st.sampled_from([*LEVELS, "+"]), max_size=3),
    st.sampled_from([[], ["#"]]),
).filter(bool)

operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
number_lists = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=4, unique=True)
string_lists = st.lists(st.sampled_from(STRINGS), min_size=1, max_size=3, unique=True)
names = st.sampled_from(NAMES)
leaves = st.one_of(
    st.builds(Comparison, names, operators, st.just("number"), st.sampled_from(NUMBERS)),
    st.builds(Comparison, names, operators, st.just("string"), st.sampled_from(STRINGS)),
    st.builds(Comparison, names, st.sampled_from(["==", "!="]), st.just("boolean"), st.booleans()),
    st.builds(Membership, names, st.booleans(), st.just("number"), number_lists.map(tuple)),
    st.builds(Membership, names, st.booleans(), st.just("string"), string_lists.map(tuple)),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=3).map(all_of),
        st.lists(inner, min_size=1, max_size=3).map(any_of),
    ),
    max_leaves=6,
)
values = st.one_of(
    st.sampled_from([*NUMBERS, -0.0, 1, -3, math.nan, math.inf, 10**400, None]),
    st.sampled_from(STRINGS),
    st.booleans(),
)
messages = st.tuples(st.sampled_from(["a", "$x/a"]) | topics, st.dictionaries(names, values))
# Alike enough to share tables: the same shape, filled differently.
similar = st.builds(
    lambda kind, number: all_of(
        [Comparison("kind", "==", "string", kind), Comparison("x", "<", "number", number)]
    ),
    st.sampled_from(STRINGS),
    st.sampled_from(NUMBERS),
)
subscriptions = st.tuples(
    st.sampled_from(["a", "#", "$x/+"]) | topic_filters, st.none() | similar | predicates
)
keys = st.integers(0, 11)
steps = st.lists(
    st.one_of(st.tuples(keys, subscriptions), st.tuples(keys, st.none()), messages), max_size=40
)


@pytest.fixture
def _small_limits(monkeypatch):
    """Limits so small that a handful of subscriptions goes through every path of the index."""
    monkeypatch.setattr(filters, "FRESH_LIMIT", 1)
    monkeypatch.setattr(runs, "SCAN_SHARE", 2)
    monkeypatch.setattr(conjunctions, "MAX_CONJUNCTIONS", 6)


def naive(held, topic, attributes):
    return [
        key
        for key, (topic_filter, where) in sorted(held.items())
        if matches(topic_filter, topic) and (where is None or where.matches(attributes))
    ]


@pytest.mark.usefixtures("_small_limits")
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps, st.lists(messages, min_size=1, max_size=4))
def test_the_index_equals_asking_each_in_turn_through_any_changes(steps, last_messages):
    index, held = MatchingIndex(), {}
    for first, second in steps:
        if isinstance(first, str):
            assert index.match(first, second).tolist() == naive(held, first, second)
            continue
        if held.pop(first, None) is not None:
            index.remove(first)
        if second is not None:
            index.add(first, *second)
            held[first] = second
    assert len(index) == len(held)
    for topic, attributes in last_messages:
        assert index.match(topic, attributes).tolist() == naive(held, topic, attributes)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(predicates, min_size=filters.FRESH_LIMIT + 1, max_size=60),
    st.sets(st.integers(0, 59), max_size=30),
    st.lists(st.dictionaries(names, values), min_size=1, max_size=5),
)
def test_many_predicates_at_one_filter_equal_asking_each_in_turn(wheres, removed, attributes_list):
    index = MatchingIndex()
    held = {key: ("t", where) for key, where in enumerate(wheres)}
    for key, subscription in held.items():
        index.add(key, *subscription)
    index.match("t", {})
    for key in removed & held.keys():
        index.remove(key)
        del held[key]
    for attributes in attributes_list:
        assert index.match("t", attributes).tolist() == naive(held, "t", attributes)
