"""The bits that remember messages, against a plain set."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.core.message_ids import first_id
from tidings.sim.seen import Seen

IDS = st.builds(
    lambda broker, serial: first_id(broker, 1) + serial,
    st.sampled_from(["b1", "b2"]),
    st.one_of(st.integers(0, 40), st.integers(8_000, 70_000)),
)


@given(st.lists(IDS), st.lists(IDS))
def test_what_was_added_is_seen_and_nothing_else(added: list[int], asked: list[int]) -> None:
    seen = Seen()
    for message in added:
        seen.add(message)
    assert [message in seen for message in (*added, *asked)] == [
        message in set(added) for message in (*added, *asked)
    ]
