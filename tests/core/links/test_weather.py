"""What the network does to a frame."""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from math import fmod, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from tidings.core.links.conditions import Conditions
from tidings.core.links.weather import LEAST_OF_MEAN, LinkWeather, occasion
from tidings.core.rng import Draws


def weather(a: str = "b1", b: str = "b2", seed: int = 1, **conditions: object) -> LinkWeather:
    return LinkWeather(a, b, Conditions(**{"delay_s": 0.05, **conditions}), Draws(seed))


def lost(link: LinkWeather, attempt: int = 1, messages: int = 20_000) -> set[int]:
    return {m for m in range(messages) if link.arrival(100, m, attempt, 0.0) is None}


def dark_epochs(link: LinkWeather, epochs: int, epoch_s: float = 1.0) -> set[int]:
    return {epoch for epoch in range(epochs) if link.dark((epoch + 0.5) * epoch_s)}


# ---- delay and rate


def test_on_a_perfect_link_everything_arrives_one_delay_later() -> None:
    link = weather()
    assert link.arrival(10**9, 1, 1, 3.0) == 3.05
    assert link.control_arrival(3.0) == 3.05
    assert not link.dark(3.0)


def test_a_rate_lets_data_frames_leave_one_after_the_other() -> None:
    link = weather(rate_bytes_per_s=1000.0)
    assert link.arrival(100, 1, 1, 0.0) == pytest.approx(0.1 + 0.05)
    assert link.arrival(200, 2, 1, 0.0) == pytest.approx(0.3 + 0.05)
    assert link.free_at() == pytest.approx(0.3)
    assert link.arrival(100, 3, 1, 5.0) == pytest.approx(5.1 + 0.05)
    assert link.control_arrival(5.0) == pytest.approx(5.05)  # small, and never behind data


def test_a_lost_frame_occupies_the_link_all_the_same() -> None:
    link = weather(rate_bytes_per_s=1000.0, loss_ratio=1.0)
    assert link.arrival(100, 1, 1, 0.0) is None
    assert link.free_at() == pytest.approx(0.1)


# ---- a rate that is drawn


def sending_s(link: LinkWeather, messages: int = 20_000, size_bytes: int = 50_000) -> list[float]:
    """How long each message keeps the link busy."""
    found = []
    for message in range(messages):
        now = link.free_at() + 1.0
        arrives_at = link.arrival(size_bytes, message, 1, now)
        assert arrives_at == pytest.approx(link.free_at() + 0.05)
        found.append(link.free_at() - now)
    return found


def test_a_drawn_rate_is_normal_in_proportion_to_the_size() -> None:
    found = sending_s(weather(s_per_byte=75e-6, deviation_s_per_byte=20e-6))
    assert kstest(found, norm(3.75, 1.0).cdf).pvalue > 0.001
    small = sending_s(weather(s_per_byte=75e-6, deviation_s_per_byte=20e-6), 100, 1000)
    assert small == pytest.approx([each / 50 for each in found[:100]], abs=1e-9)


def test_a_drawn_rate_belongs_to_the_direction_the_message_and_the_crossing() -> None:
    rate: dict[str, object] = {"s_per_byte": 1e-3, "deviation_s_per_byte": 1e-4}
    here = sending_s(weather(**rate), 50)
    assert sending_s(weather(**rate), 50) == here
    assert sending_s(weather("b2", "b1", **rate), 50) != here
    first, again = (weather(**rate).arrival(1000, 1, occasion(0, 1, n), 0.0) for n in (1, 2))
    assert first != again


def test_no_frame_is_faster_than_a_hundredth_of_the_mean_time() -> None:
    found = sending_s(weather(s_per_byte=1e-3, deviation_s_per_byte=1e-3), 5_000, 1000)
    assert min(found) == pytest.approx(LEAST_OF_MEAN)


def test_data_frames_at_a_drawn_rate_leave_one_after_the_other() -> None:
    link = weather(s_per_byte=1e-3, deviation_s_per_byte=1e-4)
    link.arrival(100, 1, 1, 0.0)
    free_at = link.free_at()
    assert link.arrival(100, 2, 1, 0.0) == link.free_at() + 0.05 > free_at + 0.05
    assert link.control_arrival(0.0) == 0.05


def test_a_link_is_limited_by_either_kind_of_rate() -> None:
    assert not Conditions(0.05).limited
    assert Conditions(0.05, rate_bytes_per_s=1e6).limited
    assert Conditions(0.05, s_per_byte=1e-6).limited


# ---- delays that move


def test_a_frame_takes_the_delay_that_holds_when_it_is_put_on_the_link() -> None:
    link = weather(delay_steps=((10.0, 0.2), (20.0, 0.01)))
    for sent_at, delay_s in ((0.0, 0.05), (9.999, 0.05), (10.0, 0.2), (19.99, 0.2), (20.0, 0.01)):
        assert link.arrival(100, 1, 1, sent_at) == sent_at + delay_s
        assert link.control_arrival(sent_at) == sent_at + delay_s
    assert link.delay_at(1e9) == 0.01  # the last step stays
    assert link.delay_s == 0.05  # what it was at the start


def test_a_frame_that_leaves_after_a_step_down_may_overtake_one_that_left_before_it() -> None:
    link = weather(delay_s=0.5, delay_steps=((1.0, 0.1),))
    slow, fast = link.arrival(100, 1, 1, 0.9), link.arrival(100, 2, 1, 1.1)
    assert (slow, fast) == (pytest.approx(1.4), pytest.approx(1.2))


def test_steps_that_repeat_begin_again_with_the_delay_of_the_start() -> None:
    link = weather(delay_s=0.3, delay_steps=((1.0, 0.1), (2.0, 0.2)), repeat_s=3.0)
    one_round = [link.delay_at(at) for at in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)]
    assert one_round == [0.3, 0.3, 0.1, 0.1, 0.2, 0.2]
    for rounds in (1, 2, 1000):
        again = [link.delay_at(3.0 * rounds + at) for at in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)]
        assert again == one_round


def test_a_limited_link_adds_its_steps_to_the_time_of_sending() -> None:
    link = weather(rate_bytes_per_s=1000.0, delay_steps=((1.0, 0.2),))
    assert link.arrival(100, 1, 1, 0.95) == pytest.approx(0.95 + 0.1 + 0.05)
    assert link.arrival(100, 2, 1, 1.0) == pytest.approx(0.95 + 0.1 + 0.1 + 0.2)


@given(st.lists(st.floats(0.0, 10.0), max_size=8), st.floats(0.0, 1000.0))
def test_steps_are_as_a_search_from_the_first_to_the_last_finds_them(
    lengths_s: list[float], now: float
) -> None:
    edges = sorted(set(accumulate(lengths_s)))
    steps = tuple((from_s, float(number)) for number, from_s in enumerate(edges))
    repeat_s = edges[-1] + 1.0 if edges else inf
    expected_s = 99.0
    for from_s, delay_s in steps:
        if from_s <= fmod(now, repeat_s):
            expected_s = delay_s
    link = weather(delay_s=99.0, delay_steps=steps, repeat_s=repeat_s)
    assert link.delay_at(now) == expected_s
    assert link.arrival(100, 1, 1, now) == now + expected_s


def test_steps_change_neither_losses_nor_failures() -> None:
    still = weather(loss_ratio=0.2, failure_probability=0.2)
    moving = weather(loss_ratio=0.2, failure_probability=0.2, delay_steps=((50.0, 0.2),))
    times = [0.1 * number for number in range(1_000)]
    for number, at in enumerate(times):
        lost = still.arrival(100, number, 1, at) is None
        assert (moving.arrival(100, number, 1, at) is None) is lost


# ---- loss


@pytest.mark.parametrize("ratio", [0.001, 0.05, 0.5])
def test_the_share_of_lost_frames_is_the_loss_ratio(ratio: float) -> None:
    messages = 40_000
    spread = 5 * (ratio * (1 - ratio) / messages) ** 0.5
    assert len(lost(weather(loss_ratio=ratio), messages=messages)) / messages == pytest.approx(
        ratio, abs=spread
    )
    link = weather(loss_ratio=ratio)
    misses = sum(link.control_arrival(0.0) is None for _ in range(messages))
    assert misses / messages == pytest.approx(ratio, abs=spread)


def test_losses_belong_to_seed_link_direction_message_and_attempt() -> None:
    here = lost(weather(loss_ratio=0.1))
    assert lost(weather(loss_ratio=0.1)) == here
    for other in (
        lost(weather(loss_ratio=0.1, seed=2)),
        lost(weather("b1", "b3", loss_ratio=0.1)),
        lost(weather("b2", "b1", loss_ratio=0.1)),
        lost(weather(loss_ratio=0.1), attempt=2),
    ):
        both = len(here & other) / len(here)
        assert both == pytest.approx(0.1, abs=0.04)  # what independence gives


def test_a_loss_does_not_depend_on_what_else_was_sent() -> None:
    link = weather(loss_ratio=0.1)
    expected = lost(weather(loss_ratio=0.1), messages=500)
    found = {m for m in reversed(range(500)) if link.arrival(100, m, 1, 0.0) is None}
    assert found == expected


def test_a_ratio_of_one_loses_all_and_of_none_nothing() -> None:
    assert len(lost(weather(loss_ratio=1.0), messages=100)) == 100
    assert not lost(weather(loss_ratio=0.0), messages=100)


# ---- failures


def test_a_link_fails_for_whole_epochs_as_often_as_it_is_told_to() -> None:
    epochs = 20_000  # over several of the blocks in which they are drawn
    dark = dark_epochs(weather(failure_probability=0.06), epochs)
    assert len(dark) / epochs == pytest.approx(0.06, abs=5 * (0.06 * 0.94 / epochs) ** 0.5)
    link = weather(failure_probability=0.06)
    for epoch in sorted(dark)[:50]:
        assert link.dark(float(epoch))
        assert link.dark(epoch + 0.999)
        assert link.arrival(100, 1, 1, epoch + 0.5) is None
        assert link.control_arrival(epoch + 0.5) is None


def test_both_directions_of_a_link_fail_together_and_other_links_on_their_own() -> None:
    here = dark_epochs(weather(failure_probability=0.1), 5_000)
    assert dark_epochs(weather("b2", "b1", failure_probability=0.1), 5_000) == here
    other = dark_epochs(weather("b1", "b3", failure_probability=0.1), 5_000)
    assert len(here & other) / len(here) == pytest.approx(0.1, abs=0.05)


def test_failures_do_not_depend_on_when_one_looks() -> None:
    forwards, backwards = (weather(failure_probability=0.2) for _ in range(2))
    times = [0.37 * step for step in range(1_000)]
    assert [forwards.dark(at) for at in times] == [backwards.dark(at) for at in times[::-1]][::-1]


def test_an_epoch_may_have_another_length() -> None:
    short = dark_epochs(weather(failure_probability=0.1, failure_epoch_s=0.25), 1_000, 0.25)
    assert short == dark_epochs(weather(failure_probability=0.1), 1_000)


def test_an_outage_begins_with_its_first_instant_and_ends_before_its_last() -> None:
    link = weather(outages=((1.0, 2.0), (5.0, 6.0), (6.0, 7.0)))
    looks = [(0.999, False), (1.0, True), (1.999, True), (2.0, False), (4.0, False)]
    looks += [(5.0, True), (6.0, True), (6.999, True), (7.0, False)]
    for at, dark in looks:
        assert link.dark(at) is dark, at
        assert (link.arrival(100, 1, 1, at) is None) is dark


def test_what_left_before_an_outage_still_arrives() -> None:
    assert weather(outages=((1.0, 2.0),)).arrival(100, 1, 1, 0.99) == pytest.approx(1.04)


def test_outages_and_epochs_add_up() -> None:
    alone = dark_epochs(weather(failure_probability=0.1), 1_000)
    both = dark_epochs(weather(failure_probability=0.1, outages=((100.0, 200.0),)), 1_000)
    assert both == alone | set(range(100, 200))


def test_a_link_is_not_dark_for_unlikely_long_if_failures_are_rare() -> None:
    dark = sorted(dark_epochs(weather(failure_probability=0.05), 20_000))
    assert max(runs(dark)) <= 6


def runs(numbers: list[int]) -> Iterator[int]:
    length = 1
    for earlier, later in pairwise(numbers):
        length = length + 1 if later == earlier + 1 else 1
        yield length


@pytest.mark.parametrize(
    "crossings",
    [
        (occasion(0, 1, 1), occasion(0, 3, 1)),
        (occasion(0, 1, 1), occasion(0, 1, 2)),
        (occasion(0, 1, 1), occasion(1, 1, 1)),
    ],
)
def test_a_message_that_crosses_a_link_again_has_a_new_chance(crossings: tuple[int, int]) -> None:
    link = weather(loss_ratio=0.5)
    first, again = (
        [link.arrival(100, m, crossing, 0.0) is None for m in range(2_000)]
        for crossing in crossings
    )
    both = sum(a and b for a, b in zip(first, again, strict=True))
    assert 400 < both < 600
