"""The least of the last values, beside the same by brute force."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.core.links.shortest import ShortestLately

steps = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))


@given(st.lists(steps, min_size=1), st.floats(0.01, 2.0))
def test_it_is_the_least_of_the_window(arrivals: list[tuple[float, float]], seconds: float) -> None:
    shortest, now, seen = ShortestLately(seconds), 0.0, list[tuple[float, float]]()
    for pause_s, value in arrivals:
        now += pause_s
        seen.append((now, value))
        lately = [value for at, value in seen if at >= now - seconds]
        assert shortest.add(value, now) == min(lately)
