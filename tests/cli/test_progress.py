"""Long work shows how far it is, on a terminal and nowhere else."""

import pytest

from tidings.cli.progress import step_progress


def test_a_step_is_named_with_what_is_done_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with step_progress(False, "learn x") as tell:
        tell("round trips", 0.0)
        tell("slices", 0.5)
    shown = capsys.readouterr().err
    assert "learn x: slices" in shown
    assert "50%" in shown
    assert "0:00:00" in shown  # left: as long as it took so far
    assert "left" in shown


def test_nothing_is_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with step_progress(False, "learn x") as tell:
        tell("round trips", 0.0)
    assert capsys.readouterr() == ("", "")
