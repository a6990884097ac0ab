"""What a message is worth, to the one who sends it and the one who wants it.

Publishers and subscribers state the same kind of contract; where both speak, the tighter deadline
holds. A contract is what the whole system serves: routing may choose by it, scheduling orders by
it, and the trace judges by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf
from typing import Final, Literal

from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.ranges import NotNegative, Ratio, Whole

Late = Literal["deliver", "drop"]


CONTRACT_BYTES = 64


class Contract(Struct, frozen=True, array_like=True, gc=False):
    """A promise asked for: all of it optional, so that the default promises best effort."""

    deadline_s: NotNegative = inf  # age at which the message is late, end to end
    price: NotNegative = 1.0  # earned when it is delivered in time
    reliability: Ratio = 0.0  # least probability of arrival, for strategies that honour it
    availability: Ratio = 0.0  # least probability that some path exists, likewise
    late: Late = "deliver"  # what becomes of a message that is late
    durable: bool = False
    strategy: str = ""  # name in ROUTERS; empty: the broker's default
    scheduling: str = ""  # name in POLICIES; empty: the broker's default

    def checked(self, source: str) -> Contract:
        """Itself, if every value makes sense."""
        for field, holds, accepted in (
            ("deadline_s", self.deadline_s > 0, "a positive number of seconds"),
            ("price", 0 <= self.price < inf, "a number from 0"),
            ("reliability", 0 <= self.reliability <= 1, "a number from 0 to 1"),
            ("availability", 0 <= self.availability <= 1, "a number from 0 to 1"),
        ):
            if not holds:
                raise ConfigError(source, field, getattr(self, field), accepted)
        return self


BEST_EFFORT = Contract()


class TopicPolicy(Struct, frozen=True):
    """The contract that holds for messages on matching topics whose publisher states none."""

    topic: str  # an MQTT topic filter; the first policy that matches a topic holds
    contract: Contract


class Subscription(Struct, frozen=True, gc=False):
    """One client's wish, as its own broker knows it."""

    id: str  # see `subscription_id`
    broker: str
    topic: str  # an MQTT topic filter
    where: str = ""  # a predicate; empty: every message
    contract: Contract = BEST_EFFORT

    @property
    def size_bytes(self) -> int:
        """What it takes in memory without its index, about."""
        return len(self.id) + len(self.topic) + len(self.where) + CONTRACT_BYTES


class Wish(Struct, frozen=True, array_like=True, gc=False):
    """What clients of one broker ask for alike, as the others know it: nobody's name."""

    topic: str  # an MQTT topic filter
    where: str = ""  # a predicate; empty: every message
    contract: Contract = BEST_EFFORT
    number: Whole = 1  # of subscriptions; 0: it is taken back

    @property
    def size_bytes(self) -> int:
        """What it takes on the wire, about."""
        return len(self.topic) + len(self.where) + CONTRACT_BYTES


def subscription_id(broker: str, client: str, topic_filter: str) -> str:
    """The id of a client's subscription: the same in both worlds, and readable in a table."""
    return f"{broker}/{client}:{topic_filter}"


class Group(Struct, frozen=True, array_like=True, gc=False):
    """Subscriptions at one broker that share a deadline: what scheduling needs of them."""

    deadline_s: NotNegative
    count: Whole
    price: NotNegative  # summed over the group


class Destination(Struct, frozen=True, array_like=True, gc=False):
    """A broker that a message is owed to, and for whose sake."""

    broker: str
    expires_s: NotNegative  # age after which nobody there takes the message; inf: late is welcome
    groups: tuple[Group, ...]
    availability: Ratio = 0.0  # the highest that anybody there, or the publisher, asks for

    @property
    def deadline_s(self) -> float:
        """The tightest; groups are in the order of deadlines."""
        return self.groups[0].deadline_s if self.groups else inf


ANYBODY: Final = "/"  # the destination of an open message; no broker's name has a slash


def anybody(contract: Contract) -> Destination:
    """The destination of a message of which its publisher's broker cannot know who wants it."""
    expires_s = contract.deadline_s if contract.late == "drop" else inf
    group = Group(contract.deadline_s, 1, contract.price)
    return Destination(ANYBODY, expires_s, (group,), contract.availability)


def destination(
    broker: str, message: Contract, asked: Iterable[tuple[Contract, int]]
) -> Destination:
    """What a message under its publisher's contract owes to one broker's subscriptions, of which so
    many have each of these contracts."""
    numbers: dict[float, int] = {}
    prices: dict[float, list[float]] = {}
    expires_s, availability = 0.0, message.availability
    for wish, number in asked:
        deadline_s = min(message.deadline_s, wish.deadline_s)
        numbers[deadline_s] = numbers.get(deadline_s, 0) + number
        prices.setdefault(deadline_s, []).append(wish.price * message.price * number)
        availability = max(availability, wish.availability)
        drops = message.late == "drop" or wish.late == "drop"
        expires_s = max(expires_s, deadline_s if drops else inf)
    # The exact sum, which is the same in whichever order the wishes became known.
    groups = tuple([Group(d, numbers[d], fsum(prices[d])) for d in sorted(numbers)])
    return Destination(broker, expires_s, groups, availability)
