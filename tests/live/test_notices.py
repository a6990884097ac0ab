"""What a broker tells whoever runs it: in the log, and of the same subject not too often."""

import logging

import pytest

from tidings.live.rate_limited import (
    AGAIN_AFTER_S,
    MOST_CHARACTERS,
    MOST_LINES,
    SUBJECTS,
    RateLimitedWarnings,
)

LOG = "tidings.broker"


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, LOG)
    return caplog


class Warnings(RateLimitedWarnings):
    """Warnings whose clock is set by hand."""

    def __init__(self, counted: bool = False, lines: int = 1) -> None:
        super().__init__(logging.getLogger(LOG), lambda: self.now, counted, lines)
        self.now = 0.0

    def say(self, text: str, now: float, subject: str = "") -> None:
        self.now = now
        self.warn(text, subject)


def test_what_is_said_stands_in_the_log_as_a_warning(heard: pytest.LogCaptureFixture) -> None:
    Warnings().say("No path to b3 is known: 100 % lost, {} and %s.", 0.0)
    [record] = heard.records
    assert (record.levelno, record.name) == (logging.WARNING, LOG)
    assert record.getMessage() == "No path to b3 is known: 100 % lost, {} and %s."


def test_the_same_words_are_said_again_only_after_a_while(
    heard: pytest.LogCaptureFixture,
) -> None:
    warnings = Warnings()
    said_at = []
    for second in range(200):
        warnings.say("the same", float(second))
        if len(heard.messages) > len(said_at):
            said_at.append(float(second))
    assert said_at == [0.0, AGAIN_AFTER_S, 2 * AGAIN_AFTER_S, 3 * AGAIN_AFTER_S]


def test_other_words_are_said_at_once(heard: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    for text in ("one", "two", "one", "three", "two"):
        warnings.say(text, 1.0)
    assert heard.messages == ["one", "two", "three"]


def test_the_subject_is_what_the_caller_names_or_what_stands_before_the_colon(
    heard: pytest.LogCaptureFixture,
) -> None:
    warnings = Warnings()
    for text, subject in (("a: 1", ""), ("a: 2", ""), ("b: 3", "a"), ("a: 4", "c"), ("d: 5", "c")):
        warnings.say(text, 1.0, subject)
    assert heard.messages == ["a: 1", "a: 4"]


def test_a_clock_that_was_set_back_silences_nobody(heard: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    warnings.say("the same", 1_000.0)
    warnings.say("the same", 10.0)
    assert heard.messages == ["the same", "the same"]


def test_trouble_that_repeats_is_told_once_a_minute_with_its_count(
    heard: pytest.LogCaptureFixture,
) -> None:
    warnings = Warnings(counted=True)
    for now in (0.0, 1.0, AGAIN_AFTER_S - 1, AGAIN_AFTER_S, AGAIN_AFTER_S + 1):
        warnings.say("again", now)
    assert heard.messages == ["again (1 so far)", "again (4 so far)"]
    assert warnings.count == 5


def test_ever_new_words_fill_neither_the_memory_nor_the_log(
    heard: pytest.LogCaptureFixture,
) -> None:
    warnings = Warnings()
    for number in range(3 * SUBJECTS):
        warnings.say(f"number {number}", 0.0)
    assert len(warnings._subjects) <= SUBJECTS
    assert len(heard.messages) == MOST_LINES
    warnings.say("later", AGAIN_AFTER_S)
    left_out = 3 * SUBJECTS - MOST_LINES
    told = f"number {3 * SUBJECTS - 1} ({left_out - 1:,} more and others left out)"
    assert heard.messages[MOST_LINES:] == [told, "later"]


def test_what_was_left_out_is_counted_and_told_with_the_next_line(
    heard: pytest.LogCaptureFixture,
) -> None:
    warnings = Warnings()
    for second in range(10):
        warnings.say("a: no", float(second))
    warnings.say("a: still no", AGAIN_AFTER_S)
    assert heard.messages == ["a: no", "a: still no (9 more like it left out)"]


@pytest.mark.parametrize("ending", [True, False])
def test_what_was_left_out_is_told_even_if_nothing_follows(
    heard: pytest.LogCaptureFixture, ending: bool
) -> None:
    warnings = Warnings()
    for number in range(10):
        warnings.say(f"a: {number}", 1.0)
    warnings.flush()
    assert heard.messages == ["a: 0"]
    warnings.now += 0.0 if ending else AGAIN_AFTER_S
    for _ in range(2):
        warnings.flush(ending)
        assert heard.messages == ["a: 0", "a: 9 (8 more like it left out)"]


def test_the_log_of_what_comes_and_goes_ends_with_how_it_is(
    heard: pytest.LogCaptureFixture,
) -> None:
    heard.set_level(logging.INFO, LOG)
    warnings = Warnings(lines=3)
    for number in range(50):
        warnings.inform("up" if number % 2 else "down", "link")
    warnings.flush(ending=True)
    assert heard.messages == ["down", "up", "down", "up (46 more like it left out)"]
    assert {record.levelno for record in heard.records} == {logging.INFO}


def test_a_line_is_one_line_whatever_a_peer_is_called(heard: pytest.LogCaptureFixture) -> None:
    Warnings().say("client a\nn2: all is well\x1b[2J lost\r", 0.0)
    Warnings().say("x" * 100_000, 0.0)
    first, second = heard.messages
    assert first == "client a n2: all is well?[2J lost"
    assert second == "x" * MOST_CHARACTERS + "..."
