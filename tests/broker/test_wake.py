"""The one timer: `wake_at` may be too early, but never later than something that is due."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st
from support.builders import START, a_broker, a_message, a_subscription, sends

from tidings.broker.broker import Broker
from tidings.broker.frames import Ack, Data, Echo, Interests, Links, Probe, Pull

STEPS = ("publish", "ack", "lose", "echo", "subscribe", "down", "up", "wait", "sleep")


def due_at(broker: Broker) -> float:
    """The earliest of all timers, found by looking at each of them."""
    upkeep = broker._upkeep
    clocks = (upkeep.exchange._share_at, upkeep._count_at, upkeep._advertise_at)
    return min(*clocks, upkeep._monitor.next_at(), broker._transmitter._unanswered.first_due())


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.floats(0.0, 0.05)), max_size=60),
    st.sampled_from(["pinned", "measured"]),
    st.sampled_from([1, 1_000_000]),
)
def test_no_timer_is_ever_due_before_the_broker_wants_to_be_woken(
    steps: list[tuple[str, float]], estimates: str, window_bytes: int
) -> None:
    wish = a_subscription("b2", deadline_s=0.1, late="drop")
    broker = a_broker(
        wishes=[wish], estimates=estimates, window_bytes=window_bytes, transmissions=2
    )
    now, waiting, up = START, [], True
    for step, seconds in steps:
        now += seconds
        effects = broker.tick(now) if broker.wake_at() <= now else []
        match step:
            case "publish":
                effects += broker.publish(a_message(), now)
            case "ack" if waiting and not isinstance(waiting[0], Probe):
                effects += broker.receive("b2", Ack((waiting.pop(0).transmission,)), now)
            case "echo" if waiting and isinstance(waiting[0], Probe):
                effects += broker.receive("b2", Echo(waiting.pop(0).serial), now)
            case "lose" if waiting:
                waiting.pop(0)
            case "subscribe":
                effects += broker.subscribe(a_subscription("b1", f"c{len(waiting)}"), now)
            case "down" if up:
                effects += broker.link_down("b2", now)
                up = False
            case "up" if not up:
                effects += broker.link_up("b2", now) + broker.link_ready("b2", inf, now)
                up = True
            case "sleep":
                now = min(broker.wake_at(), now + 10.0)
                effects += broker.tick(now)
        waiting += [frame for _, frame in sends(effects, (Data, Interests, Links, Pull, Probe))]
        assert broker.wake_at() <= due_at(broker)


def test_after_a_tick_nothing_is_due_at_the_same_instant() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], transmissions=3)
    broker.publish(a_message(), START)
    for _ in range(20):
        now = broker.wake_at()
        broker.tick(now)
        assert broker.wake_at() > now
