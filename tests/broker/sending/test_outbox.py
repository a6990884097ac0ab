"""Several policies on one link share it fairly."""

from math import inf

from support.builders import a_message, pinned
from support.prospects import Known

from tidings.broker.sending.outbox import Outbox
from tidings.core.contract import Destination, Group
from tidings.core.parcel import Parcel


def a_box(scheduling: str = "fifo", **settings: object) -> Outbox:
    return Outbox(pinned(scheduling=scheduling, **settings), Known(s_per_byte=1e-3))


def for_policy(policy: str, size_bytes: int, id: int = 1, deadline_s: float = inf) -> Parcel:
    owed = (Destination("b2", inf, (Group(deadline_s, 1, 1.0),)),)
    message = a_message(id=id, scheduling=policy)
    return Parcel(message, 0.0, 1e9, owed, ("b1",), "d-tree", size_bytes)


def bytes_by_policy(box: Outbox, pops: int) -> dict[str, int]:
    sums: dict[str, int] = {}
    for _ in range(pops):
        parcel = box.pop(0.0)
        assert parcel is not None
        policy = parcel.message.contract.scheduling
        sums[policy] = sums.get(policy, 0) + parcel.size_bytes
    return sums


def test_policies_share_a_link_by_bytes_not_by_parcels() -> None:
    box = a_box()
    for policy, size_bytes in (("", 1_000), ("eb", 100), ("rl", 500)):
        for _ in range(600):
            box.push(for_policy(policy, size_bytes), 0.0)
    shares = bytes_by_policy(box, 500)
    assert max(shares.values()) - min(shares.values()) <= 1_000
    assert set(shares) == {"", "eb", "rl"}


def test_one_that_was_idle_gets_its_share_and_no_more() -> None:
    box = a_box()
    box.push(for_policy("eb", 100), 0.0)
    for _ in range(400):
        box.push(for_policy("", 100), 0.0)
    bytes_by_policy(box, 201)  # the one of `eb` among them
    for _ in range(200):
        box.push(for_policy("eb", 100), 0.0)
    shares = bytes_by_policy(box, 100)
    assert abs(shares[""] - shares["eb"]) <= 200


def test_what_nobody_else_wants_one_may_have() -> None:
    box = a_box()
    for _ in range(3):
        box.push(for_policy("eb", 100), 0.0)
    assert bytes_by_policy(box, 3) == {"eb": 300}
    assert box.pop(0.0) is None


def test_an_unknown_policy_and_the_brokers_own_are_one_queue() -> None:
    box = a_box("fifo")
    for id, policy in enumerate(("", "fifo", "nobody-knows-it", "")):
        box.push(for_policy(policy, 100, id), 0.0)
    assert [parcel.message.id for _ in range(4) if (parcel := box.pop(0.0))] == [0, 1, 2, 3]


def test_bytes_and_parcels_are_counted_over_all_policies() -> None:
    box = a_box(queue_parcels=3)
    for policy, size_bytes in (("", 100), ("eb", 20), ("rl", 3)):
        assert not box.full()
        box.push(for_policy(policy, size_bytes), 0.0)
    assert (len(box), box.size_bytes, box.full()) == (3, 123, True)
    assert len(list(box)) == 3
    while box.pop(0.0):
        pass
    assert (len(box), box.size_bytes) == (0, 0)


def test_what_is_deleted_takes_no_room_and_counts_for_nobody() -> None:
    box = a_box()
    assert not box.deletes
    box.push(for_policy("eb", 100, 1, deadline_s=1.0), 0.0)
    box.push(for_policy("", 100, 2, deadline_s=1.0), 0.0)
    assert box.deletes
    assert [parcel.message.id for parcel in box.doomed(2.0)] == [1]  # fifo does not delete
    assert (len(box), box.size_bytes) == (1, 100)


def patient(id: int, size_bytes: int = 100) -> Parcel:
    return Parcel(a_message(id=id), 0.0, inf, (), ("b1",), "d-tree", size_bytes)


def test_it_is_crowded_when_half_full_and_roomy_when_three_quarters_are_free() -> None:
    box = a_box(queue_parcels=8)
    states = []
    for number in range(4):
        box.push(patient(number), 0.0)
        states.append(box.crowded())
    assert states == [False, False, False, True]
    roomy = []
    while box.pop(0.0):
        roomy.append(box.roomy())
    assert roomy == [False, False, True, True]


def test_bytes_crowd_it_as_well() -> None:
    box = a_box(queue_bytes=1_000)
    box.push(patient(1, 499), 0.0)
    assert not box.crowded()
    box.push(patient(2, 1), 0.0)
    assert box.crowded()


def test_what_a_deadline_will_delete_crowds_nothing() -> None:
    box = a_box(queue_parcels=8)
    for number in range(8):
        box.push(for_policy("", 100, number), 0.0)
    assert (box.full(), box.crowded(), box.roomy()) == (True, False, True)
