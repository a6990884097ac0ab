import pytest

from tidings.core.errors import FilterError, TopicError
from tidings.core.topic import MAX_TOPIC_BYTES, check_filter, check_topic, matches


@pytest.mark.parametrize("topic", ["a", "/", "a/b", "/a//b/", "$SYS/x", "a b/ü/日本", "a$b"])
def test_a_plain_path_is_both_a_topic_and_a_filter(topic):
    check_topic(topic)
    check_filter(topic)


@pytest.mark.parametrize("filter", ["#", "+", "a/#", "+/+/#", "a/+/b", "/+", "+/", "$SYS/#"])
def test_wildcards_alone_in_their_level_make_a_filter(filter):
    check_filter(filter)


@pytest.mark.parametrize(
    ("topic", "position"),
    [("", 0), ("a/+/b", 2), ("a/b#", 3), ("a\0b", 1), ("a/\ud800", 2), ("é/+", 2)],
)
def test_a_bad_topic_is_refused_at_its_character(topic, position):
    with pytest.raises(TopicError) as fault:
        check_topic(topic)
    assert fault.value.position == position


@pytest.mark.parametrize(
    ("filter", "position"),
    [
        ("", 0),
        ("a/#/b", 2),
        ("#/", 0),
        ("a/b#", 3),
        ("sport+", 5),
        ("a/++/b", 2),
        ("a/#+", 3),
        ("a/##", 2),
        ("a\0", 1),
    ],
)
def test_a_bad_filter_is_refused_at_its_character(filter, position):
    with pytest.raises(FilterError) as fault:
        check_filter(filter)
    assert fault.value.position == position


@pytest.mark.parametrize("character", ["a", "é", "日"])
def test_length_is_limited_in_bytes_and_the_fault_is_the_first_character_too_many(character):
    fitting = MAX_TOPIC_BYTES // len(character.encode())
    check_topic(character * fitting)
    with pytest.raises(TopicError) as fault:
        check_topic(character * (fitting + 1))
    assert fault.value.position == fitting


@pytest.mark.parametrize(
    ("filter", "topic"),
    [
        ("sport/#", "sport"),
        ("sport/#", "sport/tennis/player"),
        ("#", "a/b"),
        ("#", "/"),
        ("+", "a"),
        ("+/+", "/finance"),
        ("/+", "/finance"),
        ("sport/+", "sport/"),
        ("sport/+/player", "sport/tennis/player"),
        ("$SYS/#", "$SYS"),
        ("$SYS/+", "$SYS/load"),
        ("+/#", "a"),
        ("a/+/#", "a/b"),
        ("a", "a"),
    ],
)
def test_a_filter_matches(filter, topic):
    assert matches(filter, topic)


@pytest.mark.parametrize(
    ("filter", "topic"),
    [
        ("+", "/finance"),
        ("sport/+", "sport"),
        ("sport/+", "sport/a/b"),
        ("sport/#", "sports"),
        ("a", "A"),
        ("a", "a/"),
        ("a/b", "a"),
        ("a/+/#", "a"),
        ("#", "$SYS/load"),
        ("+/load", "$SYS/load"),
        ("+/#", "$SYS"),
    ],
)
def test_a_filter_does_not_match(filter, topic):
    assert not matches(filter, topic)
