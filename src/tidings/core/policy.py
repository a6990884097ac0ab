"""How does a person write down a topic's contract? As a table of a TOML file, the same in a
scenario and in a live broker's configuration."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from tidings.core.contract import Contract, Late, TopicPolicy
from tidings.core.ranges import NotNegative, Positive, Ratio


class Policy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The contract of messages on some topics whose publisher states none."""

    topic: str
    deadline_ms: Positive = inf
    price: NotNegative = 1.0
    reliability: Ratio = 0.0
    availability: Ratio = 0.0
    late: Late = "deliver"
    durable: bool = False
    strategy: str = ""
    scheduling: str = ""

    def topic_policy(self) -> TopicPolicy:
        contract = Contract(
            self.deadline_ms / 1000,
            self.price,
            self.reliability,
            self.availability,
            self.late,
            self.durable,
            self.strategy,
            self.scheduling,
        )
        return TopicPolicy(self.topic, contract)
