import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.errors import PredicateError
from tidings.core.predicate import MAX_DEPTH, MAX_LENGTH, Comparison, parse
from tidings.core.predicate.expressions import Membership, Not, all_of, any_of

names = st.sampled_from(["x", "y_2", "position.lat", "deadline-ms", "höhe", "nothing", "inside"])
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
literals = st.one_of(
    st.tuples(st.just("number"), numbers),
    st.tuples(st.just("string"), st.text(max_size=8)),
    st.tuples(st.just("boolean"), st.booleans()),
)
comparisons = st.builds(
    lambda name, operator, literal: Comparison(
        name, "==" if literal[0] == "boolean" else operator, *literal
    ),
    names,
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    literals,
)
memberships = st.builds(
    lambda name, negated, constants: Membership(name, negated, "string", tuple(constants)),
    names,
    st.booleans(),
    st.lists(st.text(max_size=4), min_size=1, max_size=3, unique=True),
)
predicates = st.recursive(
    comparisons | memberships,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=3).map(all_of),
        st.lists(inner, min_size=1, max_size=3).map(any_of),
    ),
    max_leaves=12,
)


def wants(text, **attributes):
    return parse(text).matches(attributes)


def fault_position(text):
    """Where the text is at fault, or the predicate that it means."""
    try:
        return None, parse(text)
    except PredicateError as fault:
        return fault.position, None


@given(predicates)
def test_the_canonical_text_parses_back_to_an_equal_predicate(predicate):
    assert parse(str(predicate)) == predicate
    assert str(parse(str(predicate))) == str(predicate)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x<3", "x < 3"),
        ("3.50>=x", "x <= 3.5"),
        ("'jet'!=kind", 'kind != "jet"'),
        ("x==-0.0", "x == 0"),
        ("((x==1))and(y==2 and z==3)", "x == 1 and y == 2 and z == 3"),
        ("(x==1 or y==2)and z==true", "(x == 1 or y == 2) and z == true"),
        ("x==1 and y==2 or z==3", "x == 1 and y == 2 or z == 3"),
        ("not x<1 and y<2", "not x < 1 and y < 2"),
        ("not(x<1 and y<2)", "not (x < 1 and y < 2)"),
        ("x in(1,2,1.0)", "x in (1, 2)"),
        ("not x not in ('a')", 'not x not in ("a")'),
        (r"x == '\u00e9\'\"\n'", 'x == "é\'\\"\\n"'),
        ("x<3and y<4", "x < 3 and y < 4"),
    ],
)
def test_a_text_has_one_canonical_form(text, canonical):
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("x", 1),
        ("x <", 3),
        ("x < y", 4),
        ("3 < 4", 4),
        ("x = 3", 2),
        ("x & y", 2),
        ("x < 3 y", 6),
        ("1 < x < 5", 6),
        ("(x < 3", 6),
        ("x < 3)", 5),
        ("x in 3", 5),
        ("x in ()", 6),
        ("x in (1, 'a')", 9),
        ("x in (1, )", 9),
        ("x not 3", 6),
        ("x == 'abc", 5),
        (r"x == 'a\q'", 7),
        (r"x == '\ud800'", 6),
        ("x == 1e999", 5),
        ("flag < true", 5),
        ("true >= flag", 5),
        ("x < nan", 4),
        ("and < 3", 0),
        ("x == 3 and", 10),
        ("x == 3 AND y == 3", 7),
        ("x == 3 # y", 7),
    ],
)
def test_a_fault_is_reported_at_its_character(text, position):
    with pytest.raises(PredicateError) as fault:
        parse(text)
    assert fault.value.position == position


@given(st.text(alphabet="xy<>=!()'\"\\, 0.1e-andortif", max_size=40))
def test_any_text_either_means_something_or_has_a_fault_within_it(text):
    position, predicate = fault_position(text)
    if predicate is None:
        assert 0 <= position <= len(text)
    else:
        assert parse(str(predicate)) == predicate


@pytest.mark.parametrize("opening", ["(", "not ", "not ("])
def test_deep_nesting_is_a_clean_error(opening):
    deep = opening * 600 + "x == 1"
    with pytest.raises(PredicateError, match="nested more than"):
        parse(deep)


def test_nesting_up_to_the_limit_is_accepted():
    nested = "not " * MAX_DEPTH + "x == 1"
    assert parse(nested).matches({"x": 1})
    with pytest.raises(PredicateError):
        parse("not " + nested)


def test_a_text_is_limited_in_length_and_so_is_its_canonical_form():
    with pytest.raises(PredicateError, match="at most"):
        parse("x == '" + "a" * MAX_LENGTH + "'")
    compact = "x in (" + ",".join(f"{n}e15" for n in range(1, 600)) + ")"
    assert len(compact) < MAX_LENGTH
    with pytest.raises(PredicateError, match="written out"):
        parse(compact)


@pytest.mark.parametrize(
    "text",
    [
        "x < 3",
        "not (x < 3)",
        "x != 3",
        "not (x == 3)",
        "x not in (1, 2)",
        "not (x in (1, 2))",
        "x == true",
        "x != false",
        "x < 3 or x >= 3",
        "not (x < 3 and y == 1)",
        "not (x < 3 or y == 2)",
    ],
)
@pytest.mark.parametrize(
    "attributes",
    [{}, {"x": None}, {"x": math.nan}, {"x": math.inf}, {"x": "nan"}, {"x": [1]}, {"x": "1_0"}],
)
def test_a_missing_or_unreadable_attribute_never_matches(text, attributes):
    assert not parse(text).matches({"y": 1, **attributes})


def test_what_is_known_decides_whatever_is_unknown_about_the_rest():
    assert wants("x < 3 or y == 1", y=1)
    assert wants("not (x < 3 and y == 2)", y=1)
    assert not wants("x < 3 and y == 1", y=1)
    assert not wants("not (x < 3 or y == 2)", y=1)


@pytest.mark.parametrize("value", [2500, 2500.0, "2500", "+2.5e3", "2500."])
def test_a_numeric_literal_reads_numbers_and_strings_that_spell_one(value):
    assert wants("altitude < 3000 and altitude in (1, 2500)", altitude=value)
    assert not wants("altitude != 2500", altitude=value)


@pytest.mark.parametrize("value", [True, "jet", " 2500", "", "٣", "1e999", 10**400, {}])
def test_a_numeric_literal_reads_nothing_else(value):
    assert not wants("x < 3000 or x >= 3000", x=value)


def test_a_string_literal_reads_strings_only_and_compares_by_code_points():
    assert wants("code == '7'", code="7")
    assert not wants("code == '7' or code != '7'", code=7)
    assert wants("'b' > name and name >= 'a'", name="alpha")


@pytest.mark.parametrize(("value", "expected"), [(True, True), ("true", True), (False, False)])
def test_a_boolean_literal_reads_booleans_and_their_names(value, expected):
    assert wants("flag == true", flag=value) is expected
    assert wants("flag in (false)", flag=value) is not expected


@pytest.mark.parametrize("value", [1, "True", "yes", 0])
def test_a_boolean_literal_reads_nothing_else(value):
    assert not wants("flag == true or flag == false", flag=value)


def test_one_and_true_are_different_literals():
    assert parse("x == 1") != parse("x == true")
    assert parse("x in (1)") != parse("x in (true)")


@given(predicates, st.dictionaries(names, st.one_of(numbers, st.text(max_size=2), st.booleans())))
def test_a_predicate_and_its_negation_never_both_match(predicate, attributes):
    matched, negated = predicate.matches(attributes), Not(predicate).matches(attributes)
    assert not (matched and negated)
    assert (matched or negated) == (predicate.evaluate(attributes) is not None)
