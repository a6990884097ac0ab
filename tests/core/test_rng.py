"""Keyed chance: a draw belongs to what it is about, never to the order of drawing."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest, norm

from tidings.core.rng import Draws


def test_the_same_key_gives_the_same_draws_and_another_key_others() -> None:
    draws = Draws(7)
    assert draws.uniform(0, 1, "delay", "b1", "b2") == Draws(7).uniform(0, 1, "delay", "b1", "b2")
    others = {
        draws.uniform(0, 1, "delay", "b2", "b1"),
        draws.uniform(0, 1, "loss", "b1", "b2"),
        Draws(8).uniform(0, 1, "delay", "b1", "b2"),
        draws.uniform(0, 1, "delay", "b1"),
        draws.uniform(0, 1, "delay", "b1b2"),
        draws.uniform(0, 1, "delay", "b1", "b2"),
    }
    assert len(others) == 6


def test_the_order_of_drawing_does_not_matter() -> None:
    one, other = Draws(1), Draws(1)
    keys = [("p", n) for n in range(20)]
    forwards = {key: one.uniform(0, 1, *key) for key in keys}
    backwards = {key: other.uniform(0, 1, *key) for key in reversed(keys)}
    assert forwards == backwards


def test_a_short_draw_is_the_beginning_of_its_stream_whatever_was_drawn_before() -> None:
    draws = Draws(3)
    for number in range(50):
        whole = draws.stream("p", number).permutation(number)
        assert draws.chosen(range(number), 7, "p", number) == whole[:7].tolist()
        assert draws.uniform(2.0, 4.0, "p", number) == draws.stream("p", number).uniform(2.0, 4.0)
        draws.stream("p", number).random(3)


def test_uniform_draws_fill_their_interval() -> None:
    found = [Draws(1).uniform(2.0, 4.0, "x", n) for n in range(2_000)]
    assert all(2.0 <= value < 4.0 for value in found)
    assert sum(found) / len(found) == pytest.approx(3.0, abs=0.07)


def test_a_choice_has_no_repetitions_and_all_items_a_chance() -> None:
    items = list("abcde")
    chosen = [Draws(seed).chosen(items, 2, "who") for seed in range(400)]
    assert all(len(set(pair)) == 2 for pair in chosen)
    firsts = [pair[0] for pair in chosen]
    assert all(40 <= firsts.count(item) <= 120 for item in items)
    assert sorted(Draws(1).chosen(items, 5, "who")) == items


def test_a_larger_choice_begins_with_the_smaller_one() -> None:
    items = list(range(50))
    assert Draws(3).chosen(items, 20, "who")[:7] == Draws(3).chosen(items, 7, "who")


def test_nothing_is_lost_where_the_ratio_is_none() -> None:
    assert Draws(1).loss_test(0.0, "b1", "b2") is None


def test_rarer_losses_are_among_the_more_frequent_ones() -> None:
    rare, frequent = Draws(1).loss_test(0.01, "b1"), Draws(1).loss_test(0.1, "b1")
    assert rare is not None
    assert frequent is not None
    lost = [(rare(m, 1), frequent(m, 1)) for m in range(20_000)]
    assert any(r for r, _ in lost)
    assert all(f for r, f in lost if r)


def test_normal_draws_are_normal_and_belong_to_their_key() -> None:
    drawn = Draws(1).normal(75.0, 20.0, 1.0, "pace", "b1", "b2")
    found = [drawn(message, 1) for message in range(20_000)]
    assert kstest(found, norm(75.0, 20.0).cdf).pvalue > 0.001
    again = Draws(1).normal(75.0, 20.0, 1.0, "pace", "b1", "b2")
    assert found[:100] == [again(message, 1) for message in range(100)]
    for other in (
        Draws(2).normal(75.0, 20.0, 1.0, "pace", "b1", "b2"),
        Draws(1).normal(75.0, 20.0, 1.0, "pace", "b2", "b1"),
        lambda message, _: drawn(message, 2),
        lambda message, _: drawn(message + 1, 1),
    ):
        others = [other(message, 1) for message in range(20_000)]
        assert abs(np.corrcoef(found, others)[0, 1]) < 0.03  # what independence gives


def test_a_normal_draw_is_never_below_the_least() -> None:
    drawn = Draws(1).normal(1.0, 1.0, 0.25, "pace")
    found = [drawn(message, 1) for message in range(20_000)]
    assert min(found) == 0.25
    assert found.count(0.25) / len(found) == pytest.approx(norm.cdf(-0.75), abs=0.015)


def test_a_normal_draw_without_a_deviation_is_the_mean() -> None:
    drawn = Draws(1).normal(75.0, 0.0, 1.0, "pace")
    assert {drawn(message, 1) for message in range(100)} == {75.0}


def test_chance_is_the_same_in_every_process() -> None:
    program = (
        "from tidings.core.rng import Draws\n"
        "d = Draws(5); lost = d.loss_test(0.3, 'b1', 'b2')\n"
        "slow = d.normal(1, 1, 0, 'pace', 'b1'); print([slow(m, 1) for m in range(9)])\n"
        "print(d.uniform(0, 1, 'x', 'y'), d.failed_epochs(0.5, 16, 'a').hex(),"
        " ''.join(str(lost(m, 1)) for m in range(64)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(printed) == 1
