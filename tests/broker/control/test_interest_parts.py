"""Interests larger than a frame travel in parts."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_subscription, connected, some_interests, wishes_of

from tidings.broker.codec import MAX_FRAME_BYTES, encode
from tidings.broker.control import interest_parts as parts
from tidings.broker.control.interest_parts import PART_BYTES, Assembly, joined, split
from tidings.broker.frames import Interests
from tidings.core.contract import Subscription


def large(count: int, broker: str = "b2") -> list[Subscription]:
    where = " or ".join(f"a{n} < {n}" for n in range(100))
    return [a_subscription(broker, f"c{n}", topic=f"t/{n}", where=where) for n in range(count)]


def test_a_small_update_is_one_part() -> None:
    update = some_interests(a_subscription("b2"))
    assert split(update) == [update]
    assert Assembly().gather(update) == [update]


def test_every_part_of_a_large_update_fits_into_a_frame_and_nothing_is_lost() -> None:
    update = some_interests(*large(3_000))
    pieces = split(update)
    assert len(pieces) > 1
    assert max(len(encode(piece)) for piece in pieces) < 2 * PART_BYTES < MAX_FRAME_BYTES
    assert joined(pieces) == update


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_parts_make_the_update_in_any_order_and_only_when_all_are_there(
    count: int, order: Random
) -> None:
    update = Interests(7, "b2", 1, 0, 4, wishes_of(*large(count)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 4_000)
        pieces = split(update)
    arriving = list(pieces)
    order.shuffle(arriving)
    assembly = Assembly()
    assert all(assembly.gather(piece) == [] for piece in arriving[:-1])
    whole = joined(assembly.gather(arriving[-1]))
    assert whole.wishes == update.wishes


def test_a_newer_update_takes_the_place_of_an_unfinished_one() -> None:
    def pieces(version: int) -> list[Interests]:
        return split(Interests(1, "b2", 1, 0, version, wishes_of(*large(1_000))))

    old, new = pieces(1), pieces(2)
    assembly = Assembly()
    assert assembly.gather(old[0]) == []
    assert [assembly.gather(piece) for piece in new[:-1]] == [[]] * (len(new) - 1)
    assert assembly.gather(old[-1]) == []
    assert joined(assembly.gather(new[-1])).version == 2


def test_large_interests_reach_a_broker_two_hops_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 10_000)
    net = connected(("b1", "b2"), ("b2", "b3"))
    for wish in large(60, "b3"):
        net.tell("b3", "subscribe", wish)
    net.run(5.0)
    pieces = net.frames(Interests, sender="b2", receiver="b1")
    assert max(piece.parts for piece in pieces) > 1
    assert net.brokers["b1"].subscriptions == 60
