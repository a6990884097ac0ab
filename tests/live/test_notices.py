"""What a broker tells whoever runs it: in the log, and the same words not too often."""

import logging

import pytest

from tidings.live.notices import MOST_REMEMBERED, SAY_AGAIN_AFTER_S, Notices

LOG = "tidings.broker"


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, LOG)
    return caplog


def test_what_is_said_stands_in_the_log_as_a_warning(heard: pytest.LogCaptureFixture) -> None:
    Notices().say("No path to b3 is known: 100 % lost, {} and %s.", 0.0)
    [record] = heard.records
    assert (record.levelno, record.name) == (logging.WARNING, LOG)
    assert record.getMessage() == "No path to b3 is known: 100 % lost, {} and %s."


def test_the_same_words_are_said_again_only_after_a_while(
    heard: pytest.LogCaptureFixture,
) -> None:
    notices = Notices()
    said_at = []
    for second in range(200):
        notices.say("the same", float(second))
        if len(heard.messages) > len(said_at):
            said_at.append(float(second))
    assert said_at == [0.0, SAY_AGAIN_AFTER_S, 2 * SAY_AGAIN_AFTER_S, 3 * SAY_AGAIN_AFTER_S]


def test_other_words_are_said_at_once(heard: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    for text in ("one", "two", "one", "three", "two"):
        notices.say(text, 1.0)
    assert heard.messages == ["one", "two", "three"]


def test_a_clock_that_was_set_back_silences_nobody(heard: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    notices.say("the same", 1_000.0)
    notices.say("the same", 10.0)
    assert heard.messages == ["the same", "the same"]


def test_ever_new_words_are_not_remembered_for_ever(heard: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    for number in range(3 * MOST_REMEMBERED):
        notices.say(f"number {number}", 0.0)
        assert len(notices._said) <= MOST_REMEMBERED
    assert len(heard.messages) == 3 * MOST_REMEMBERED
