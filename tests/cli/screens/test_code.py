"""A person reads which code has run, and why not the other."""

import pytest

from tidings.cli.screens.code import code_here, simulated_by
from tidings.native_code import COMPILED, SWITCH

OTHER = "interpreted (it was compiled for another Python or machine)"
ALONE = "interpreted (it came without compiled code)"
BY_HAND = "interpreted (TIDINGS_NATIVE=0)"


@pytest.mark.parametrize(
    ("ran_by", "here", "words"),
    [
        ({}, COMPILED, ""),
        ({COMPILED: 3}, COMPILED, "Simulated by compiled code."),
        (
            {OTHER: 3},
            COMPILED,
            "Simulated by the source as it stands (it was compiled for another Python or machine).",
        ),
        ({ALONE: 3}, BY_HAND, "Simulated by the source as it stands (TIDINGS_NATIVE=0)."),
        (
            {COMPILED: 2, OTHER: 1},
            COMPILED,
            "Simulated by compiled code: 2 points; by the source as it stands (it was compiled for "
            "another Python or machine): 1.",
        ),
    ],
)
def test_which_code_has_simulated_is_said_in_one_line(
    ran_by: dict[str, int], here: str, words: str
) -> None:
    assert simulated_by(ran_by, here) == words


def test_an_overlay_says_which_code_runs_and_how_to_have_the_other() -> None:
    assert code_here().startswith(("Code: interpreted (", "Code: compiled ("))
    assert "make native" in code_here() or SWITCH in code_here()
