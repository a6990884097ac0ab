"""What a broker tells whoever runs it: in the log, and of the same subject not too often."""

import logging

import pytest

from tidings.live.rate_limited import AGAIN_AFTER_S, SUBJECTS, RateLimitedWarnings

LOG = "tidings.broker"


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, LOG)
    return caplog


class Warnings(RateLimitedWarnings):
    """Warnings whose clock is set by hand."""

    def __init__(self, counted: bool = False) -> None:
        super().__init__(logging.getLogger(LOG), lambda: self.now, counted)
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


def test_ever_new_words_are_not_remembered_for_ever(heard: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    for number in range(3 * SUBJECTS):
        warnings.say(f"number {number}", 0.0)
        assert len(warnings._written_at) <= SUBJECTS
    assert len(heard.messages) == 3 * SUBJECTS
