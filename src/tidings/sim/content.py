"""Who says what, where messages are wanted for what is in them? Bounded delay, section 6.1.

Every message has the attributes A1, A2, ..., uniform on a range; every subscriber asks for `A1 < x
and A2 < y`, x and y uniform on the same range. Deadlines are stated by the publisher (PSD: one is
drawn for each message), by the subscriber (SSD: one is drawn for each subscription, with its
price), or by both, and then the tighter holds.

The attributes of a message are user properties, texts that spell numbers, as any client would
state them. All chance is keyed by the publisher and the number of its message, so every policy
meets the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.core.contract import BEST_EFFORT, Contract, Subscription, subscription_id
from tidings.core.rng import Draws
from tidings.core.topology import Topology
from tidings.sim.scenario import Scenario, Speaker

TOPIC = "content"

Properties = tuple[tuple[str, str], ...]


def publishers(scenario: Scenario, overlay: Topology) -> tuple[Speaker, ...]:
    """One at each of the first brokers."""
    workload = scenario.workload
    rate_per_s = workload.content.rate_per_minute / 60
    return tuple(
        Speaker(home, TOPIC, rate_per_s, workload.payload_bytes, BEST_EFFORT)
        for home in overlay.brokers[: workload.content.publishers]
    )


def subscriptions(scenario: Scenario, overlay: Topology) -> tuple[Subscription, ...]:
    """So many at each of the last brokers."""
    content, draws = scenario.workload.content, scenario.draws()
    width = len(str(content.subscribers_per_broker))
    names = [f"s{number:0{width}}" for number in range(1, content.subscribers_per_broker + 1)]
    return tuple(
        _subscription(scenario, draws, broker, name)
        for broker in overlay.brokers[-content.subscriber_brokers :]
        for name in names
    )


def statements(scenario: Scenario, index: int) -> Iterator[tuple[Contract, Properties]]:
    """What one publisher states with each of its messages: contract and attributes, for ever."""
    content, draws = scenario.workload.content, scenario.draws()
    contents, deadlines = draws.stream("content", index), draws.stream("deadlines", index)
    names, durable = _attributes(scenario), scenario.workload.durable
    while True:
        contract = Contract(durable=durable)
        if content.deadlines != "subscriber":
            deadline_s = float(deadlines.uniform(*content.publisher_deadline_s))
            contract = Contract(deadline_s, late=scenario.workload.late, durable=durable)
        values = contents.uniform(*content.attribute_range, len(names)).tolist()
        yield (
            contract,
            tuple((name, repr(value)) for name, value in zip(names, values, strict=True)),
        )


def _subscription(scenario: Scenario, draws: Draws, broker: str, name: str) -> Subscription:
    content, late = scenario.workload.content, scenario.workload.late
    stream = draws.stream("wish", broker, name)
    limits = stream.uniform(*content.attribute_range, content.attributes).tolist()
    chosen = int(stream.integers(len(content.subscriber_deadline_s)))
    contract = Contract(late=late)
    if content.deadlines != "publisher":
        deadline_s, price = content.subscriber_deadline_s[chosen], content.subscriber_price[chosen]
        contract = Contract(deadline_s, price, late=late)
    asked = zip(_attributes(scenario), limits, strict=True)
    where = " and ".join(f"{attribute} < {limit!r}" for attribute, limit in asked)
    return Subscription(subscription_id(broker, name, TOPIC), broker, TOPIC, where, contract)


def _attributes(scenario: Scenario) -> list[str]:
    return [f"A{number}" for number in range(1, scenario.workload.content.attributes + 1)]
