"""Who still owes an answer."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_parcel

from tidings.broker.frames import Pull
from tidings.broker.sending.retransmission import Pending, Unanswered


def pending(transmission: int, neighbour: str = "b2", with_parcel: bool = False) -> Pending:
    parcel = a_parcel("b2") if with_parcel else None
    return Pending(neighbour, Pull(transmission, "b9"), parcel, 64, 0.0)


def test_answers_are_overdue_in_the_order_of_their_instants() -> None:
    unanswered = Unanswered()
    for transmission, until in ((1, 3.0), (2, 1.0), (3, 2.0)):
        unanswered.wait(transmission, pending(transmission), until)
    assert unanswered.first_due() == 1.0
    assert [t for t, _ in unanswered.overdue(2.0)] == [2, 3]
    assert unanswered.first_due() == 3.0
    assert len(unanswered) == 1


def test_what_was_answered_is_never_overdue() -> None:
    unanswered = Unanswered()
    unanswered.wait(1, pending(1), 1.0)
    unanswered.wait(2, pending(2), 2.0)
    assert unanswered.answered(1, "b9") is None  # it was sent to somebody else
    assert unanswered.answered(1, "b2") is not None
    assert unanswered.answered(1, "b2") is None
    assert unanswered.first_due() == 2.0
    assert unanswered.answered(2, "b2") is not None
    assert unanswered.first_due() == inf
    assert list(unanswered.overdue(9.0)) == []


def test_waiting_again_for_what_is_overdue_takes_a_new_instant() -> None:
    unanswered = Unanswered()
    unanswered.wait(1, pending(1), 1.0)
    for transmission, found in unanswered.overdue(1.0):
        unanswered.wait(transmission, found, 5.0)
    assert unanswered.first_due() == 5.0


def test_a_neighbour_that_is_gone_is_not_waited_for() -> None:
    unanswered = Unanswered()
    unanswered.wait(1, pending(1, "b2", with_parcel=True), 1.0)
    unanswered.wait(2, pending(2, "b3", with_parcel=True), 2.0)
    assert [lost.neighbour for lost in unanswered.forget("b2")] == ["b2"]
    assert len(list(unanswered.parcels())) == 1
    assert unanswered.first_due() == 2.0


def test_control_frames_have_no_parcels() -> None:
    unanswered = Unanswered()
    unanswered.wait(1, pending(1), 1.0)
    assert list(unanswered.parcels()) == []


@given(st.lists(st.tuples(st.sampled_from("wadf"), st.integers(0, 300)), max_size=400))
def test_it_equals_a_plain_dict_of_instants(steps: list[tuple[str, int]]) -> None:
    """Wait, answer, let time pass, forget a neighbour: as one would do it without a heap."""
    unanswered, naive, serial = Unanswered(), dict[int, tuple[float, str]](), 0
    for step, number in steps:
        match step:
            case "w":
                serial += 1
                until, neighbour = float(number), f"b{number % 3}"
                unanswered.wait(serial, pending(serial, neighbour), until)
                naive[serial] = (until, neighbour)
            case "a":
                transmission, neighbour = number % (serial + 1), f"b{number % 3}"
                answered = unanswered.answered(transmission, neighbour)
                theirs = naive.get(transmission, (0.0, ""))[1] == neighbour
                assert (answered is not None) == theirs
                if theirs:
                    del naive[transmission]
            case "d":
                due = sorted((until, t) for t, (until, _) in naive.items() if until <= number)
                assert [t for t, _ in unanswered.overdue(float(number))] == [t for _, t in due]
                naive = {t: found for t, found in naive.items() if found[0] > number}
            case "f":
                gone = f"b{number % 3}"
                unanswered.forget(gone)
                naive = {t: found for t, found in naive.items() if found[1] != gone}
        assert unanswered.first_due() == min((until for until, _ in naive.values()), default=inf)
        assert len(unanswered) == len(naive)
