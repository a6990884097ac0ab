"""`configured` and `full-mesh`, and what holds for all linkers."""

from __future__ import annotations

import pytest
from support.known import known

from tidings.linking import LINKERS
from tidings.linking.options import LinkingOptions

EVERY = sorted(LINKERS)


def test_configured_wants_what_is_written_down_and_nobody_else() -> None:
    linker = LINKERS["configured"](LinkingOptions())
    wishes = linker.wishes(known("b1", ("b1", "b4", 0.1), configured=["b3", "b2"]), 0.0)
    assert wishes.wanted == ("b2", "b3")
    assert wishes.shed == ()


def test_full_mesh_wants_everybody() -> None:
    linker = LINKERS["full-mesh"](LinkingOptions())
    about = known("b3", ("b1", "b2", 0.1), seeds=["b9"], configured=["b0"])
    assert linker.wishes(about, 0.0).wanted == ("b0", "b1", "b2", "b9")


@pytest.mark.parametrize("name", EVERY)
def test_a_broker_alone_in_the_world_wants_nobody(name: str) -> None:
    wishes = LINKERS[name](LinkingOptions()).wishes(known("b1"), 0.0)
    assert wishes.wanted == wishes.shed == ()


@pytest.mark.parametrize("name", EVERY)
def test_what_a_person_has_written_down_is_wanted_by_every_linker(name: str) -> None:
    linker = LINKERS[name](LinkingOptions(degree=1))
    near = [("b1", f"b{number}", 0.01) for number in range(2, 6)]
    about = known("b1", *near, ("b1", "b9", 5.0), configured=["b8", "b9"])
    assert {"b8", "b9"} <= set(linker.wishes(about, 0.0).wanted)


@pytest.mark.parametrize("name", sorted({*LINKERS} - {"configured"}))
def test_a_broker_that_knows_one_member_wants_it_at_once(name: str) -> None:
    linker = LINKERS[name](LinkingOptions())
    assert linker.wishes(known("b1", seeds=["b7"]), 0.0).wanted == ("b7",)
