"""Who wanted a message, by rows alone: equal to what asking every subscription in turn gives."""

from __future__ import annotations

import json
import random
from math import inf

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scenarios import a_scenario, arrow_tables
from support.traces import tables_of

from tidings.core.message import Message, attributes, attributes_text
from tidings.core.predicate import MAX_LENGTH, parse
from tidings.core.topic import matches
from tidings.core.trace import Published, Row, Subscribed
from tidings.traces.audience import Audience, with_audience

FILTERS = ("a", "a/b", "a/+", "#", "+/b", "c")
TOPICS = ("a", "a/b", "c", "$SYS/a")
PREDICATES = ("", "x < 3", 'kind == "jet"', 'x >= 2 and kind != "jet"')
STATED = ({}, {"x": "1"}, {"x": "2", "kind": "jet"}, {"kind": "bus", "x": "7"})
INSTANTS = st.integers(0, 5).map(float)


def a_change(at: float, who: str, topic: str = "t", where: str = "", active: bool = True) -> Row:
    return Subscribed(at, who.partition("/")[0], who, topic, where, inf, 1.0, active)


def a_publication(message: int, at: float, topic: str = "t", told: str = "") -> Row:
    return Published(at, "b1", message, topic, 10, inf, 1.0, "d-tree", told)


def found(rows: list[Row], run: str = "r") -> dict[int, list[str]]:
    tables = tables_of({run: rows})
    told = with_audience(tables["published"], tables["subscribed"])
    return dict(zip(told["message"].to_pylist(), told["interested"].to_pylist(), strict=True))


def by_hand(rows: list[Row], row: Published) -> list[str]:
    """Each subscription's last word until then, asked one by one."""
    said: dict[str, Subscribed] = {}
    changes = [each for each in rows if isinstance(each, Subscribed)]
    for each in sorted(changes, key=lambda c: (c.recorded_at, c.active, c.topic, c.predicate)):
        if each.recorded_at <= row.recorded_at:
            said[each.subscription] = each
    stated = json.loads(row.attributes or "{}")
    return sorted(
        each.subscription
        for each in said.values()
        if each.active
        and matches(each.topic, row.topic)
        and (not each.predicate or parse(each.predicate).matches(stated))
    )


CHANGES = st.builds(
    a_change,
    INSTANTS,
    st.sampled_from(("b1/x", "b1/y", "b2/x", "b2/z", "b3/w")),
    st.sampled_from(FILTERS),
    st.sampled_from(PREDICATES),
    st.booleans(),
)
SAID = st.tuples(INSTANTS, st.sampled_from(TOPICS), st.sampled_from(STATED))


@given(st.lists(CHANGES, max_size=25), st.lists(SAID, max_size=15), st.randoms())
def test_the_audience_is_what_asking_each_subscription_gives(
    changes: list[Row], said: list[tuple[float, str, dict[str, str]]], chance: random.Random
) -> None:
    texts = [(at, topic, json.dumps(stated) if stated else "") for at, topic, stated in said]
    rows = [*changes, *(a_publication(number, *each) for number, each in enumerate(texts))]
    expected = {row.message: by_hand(rows, row) for row in rows if isinstance(row, Published)}
    chance.shuffle(rows)
    assert found(rows) == expected


@given(st.lists(st.lists(CHANGES, max_size=6), max_size=6), st.lists(SAID, max_size=6))
def test_rows_that_become_known_later_count_as_if_they_had_been_known_at_once(
    portions: list[list[Row]], said: list[tuple[float, str, dict[str, str]]]
) -> None:
    """And some of them twice, as copies of files hold them."""
    audience, known = Audience(), list[Row]()
    for portion in portions:
        known += portion
        audience.learn(
            (c.recorded_at, c.active, c.subscription, c.topic, c.predicate) for c in known[-8:]
        )
        for at, topic, stated in said:
            row = a_publication(1, at, topic, json.dumps(stated) if stated else "")
            assert list(audience.of(at, topic, row.attributes)) == by_hand(known, row)


def test_who_subscribes_at_the_instant_of_a_publication_wants_it_and_who_does_later_does_not() -> (
    None
):
    rows = [a_change(1.0, "b1/x"), a_change(2.0, "b2/y"), a_change(2.0, "b1/x", active=False)]
    published = [a_publication(n, at) for n, at in enumerate((0.5, 1.0, 1.5, 2.0))]
    assert found([*rows, *published]) == {0: [], 1: ["b1/x"], 2: ["b1/x"], 3: ["b2/y"]}


def test_a_renewal_replaces_what_was_asked_for_until_then() -> None:
    rows = [a_change(1.0, "b1/x", "a"), a_change(2.0, "b1/x", "b")]
    published = [
        a_publication(n, at, topic)
        for n, (at, topic) in enumerate(((1.5, "a"), (1.5, "b"), (2.0, "a"), (2.5, "b")))
    ]
    assert found([*rows, *published]) == {0: ["b1/x"], 1: [], 2: [], 3: ["b1/x"]}


def test_runs_have_subscriptions_of_their_own() -> None:
    runs = {
        "one": [a_change(0.0, "b1/x"), a_publication(1, 1.0)],
        "two": [a_publication(2, 1.0), a_change(0.0, "b2/y")],
    }
    tables = tables_of(runs)
    told = with_audience(tables["published"], tables["subscribed"])
    assert told["interested"].to_pylist() == [["b1/x"], ["b2/y"]]


def test_a_row_of_an_older_version_names_its_audience_itself() -> None:
    assert found([a_change(0.0, "b1/x"), a_publication(1, 1.0, told='["b2/z","b3/w"]')]) == {
        1: ["b2/z", "b3/w"]
    }


@pytest.mark.parametrize(
    ("properties", "payload", "told"),
    [
        ((), b"plain", {}),
        ((), b'{"x": 2, "far": [1], "none": null, "on": true}', {"x": 2, "on": True}),
        ((("x", "3"), ("y", "4")), b'{"x": 2}', {"x": "3", "y": "4"}),
        ((("x", "3"),), b"{cut", {"x": "3"}),
        ((("long", "z" * 9_000),), b"", {"long": "z" * (MAX_LENGTH + 1)}),
    ],
)
def test_a_row_tells_all_that_a_predicate_can_ask(
    properties: tuple[tuple[str, str], ...], payload: bytes, told: dict[str, object]
) -> None:
    text = attributes_text(Message(1, "t", payload, properties=properties))
    assert (json.loads(text) if text else {}) == told


@pytest.mark.parametrize("where", ['long == "zz"', 'long > "zz"', 'long < "zzz"', "x < 3", "on"])
def test_a_predicate_decides_alike_by_a_message_and_by_its_row(where: str) -> None:
    message = Message(1, "t", b'{"x": 2, "on": true}', properties=(("long", "z" * 9_000),))
    predicate = parse(where if where != "on" else "on == true")
    told = json.loads(attributes_text(message))
    assert predicate.matches(attributes(message)) == predicate.matches(told)


def test_the_rows_of_a_run_name_just_those_whom_it_served() -> None:
    """In a run without any loss, told by brokers that deliver by themselves."""
    scenario = a_scenario(
        {
            "workload.kind": "content",
            "workload.content.subscriber_brokers": 3,
            "workload.content.publishers": 1,
            "workload.content.rate_per_minute": 600.0,
        }
    )
    tables = arrow_tables(scenario)
    told = with_audience(tables["published"], tables["subscribed"])
    taken = {
        (row["message"], who)
        for row in tables["delivered"].to_pylist()
        for who in row["subscriptions"]
    }
    wanted = {(r["message"], who) for r in told.to_pylist() for who in r["interested"]}
    assert wanted == taken
    sizes = set(pc.list_value_length(told["interested"]).to_pylist())
    assert len(sizes) > 2, "predicates decide by each message"
