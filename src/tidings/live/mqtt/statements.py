"""What has a client stated, and can this broker keep it?

The user properties of MQTT 5 are read by `mqtt.contracts`. Here it is checked that the strategies,
policies and predicates they name exist; if not, the error says which do. Messages of one kind state
the same again and again, so results are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tidings.core.cache import BoundedCache
from tidings.core.contract import BEST_EFFORT, Contract, Subscription, subscription_id
from tidings.core.errors import PredicateError, WireError
from tidings.core.message import Message
from tidings.core.predicate import parse
from tidings.mqtt.contracts import stated_contract
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import Properties, UserProperties
from tidings.mqtt.publishing import headers_of
from tidings.mqtt.reasons import ReasonCode
from tidings.routing import live_strategies
from tidings.scheduling import POLICIES

REMEMBERED_STATEMENTS = 8_192  # a few megabytes at the most

_Stated = tuple[Contract, UserProperties, bytes]


class Publications:
    """Turns PUBLISH packets that carry properties into messages."""

    def __init__(self, default_contract: Callable[[str], Contract]) -> None:
        self._default_contract = default_contract
        self._known = BoundedCache[tuple[str, Properties], _Stated](REMEMBERED_STATEMENTS)

    def message(self, message_id: int, packet: Publish) -> Message:
        """The message that a packet brings, under the contract it states."""
        key = (packet.topic, packet.properties)
        contract, pairs, headers = self._known.get(key) or self._read(*key)
        return Message(message_id, packet.topic, packet.payload, contract, pairs, headers)

    def _read(self, topic: str, properties: Properties) -> _Stated:
        pairs, default = properties.user_properties, self._default_contract(topic)
        contract, _ = stated_contract(pairs, properties.message_expiry_s, default)
        _check_names(contract)
        return self._known.keep((topic, properties), (contract, pairs, headers_of(properties)))


def wishes(
    broker: str, client: str, topics: list[str], pairs: UserProperties
) -> list[Subscription]:
    """The subscriptions of one SUBSCRIBE, whose properties hold for all its filters."""
    contract, where = stated_contract(pairs, None, BEST_EFFORT)
    _check_names(contract)
    if where:
        try:
            parse(where)
        except PredicateError as fault:
            raise WireError(str(fault), ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR) from None
    return [
        Subscription(subscription_id(broker, client, topic), broker, topic, where or "", contract)
        for topic in topics
    ]


def _check_names(contract: Contract) -> None:
    _check("strategy", contract.strategy, live_strategies())
    _check("scheduling", contract.scheduling, sorted(POLICIES))


def _check(name: str, stated: str, known: Collection[str]) -> None:
    if stated and stated not in known:
        accepted = f"one of {', '.join(known)}"
        problem = f"user property {name} is {stated!r}, but accepted is: {accepted}."
        raise WireError(problem, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
