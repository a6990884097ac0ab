"""What has a client stated, and can this broker keep it?

The user properties of MQTT 5 are read by `mqtt.contracts`. Here it is checked that the strategies,
policies and predicates they name exist; if not, the error says which do. Messages of one kind state
the same again and again, so results are cached.

A name that is nearly one of ours is refused in a SUBSCRIBE, whose properties are for the broker
alone. In a PUBLISH it may be an attribute that subscribers wait for: it travels on, and the log
tells whoever runs the broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from tidings.core.cache import BoundedCache
from tidings.core.contract import BEST_EFFORT, Contract, Subscription, subscription_id
from tidings.core.errors import PredicateError
from tidings.core.message import Message, properties_bytes
from tidings.core.near_names import suggestion
from tidings.core.predicate import parse
from tidings.live.rate_limited import RateLimitedWarnings
from tidings.mqtt.contracts import BadStatement, bad_value, misspelt, shown, stated_contract
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import Properties, UserProperties
from tidings.mqtt.publishing import headers_of
from tidings.routing import live_strategies
from tidings.scheduling import POLICIES

REMEMBERED_BYTES = 8 << 20
STATEMENT_BYTES = 800  # of one that is remembered, beside the texts in it: measured

_Stated = tuple[Contract, UserProperties, bytes, dict[str, str]]

logger = logging.getLogger("tidings.mqtt")


class Publications:
    """Turns PUBLISH packets that carry properties into messages."""

    def __init__(self, default_contract: Callable[[str], Contract]) -> None:
        self._default_contract = default_contract
        self._known = BoundedCache[tuple[str, Properties], _Stated](REMEMBERED_BYTES)
        self._warnings = RateLimitedWarnings(logger)

    def message(self, message_id: int, packet: Publish, client_id: str) -> Message:
        """The message that a client's packet brings, under the contract it states."""
        contract, pairs, headers, slips = self.check(packet)
        if slips:
            self._warn_of(slips, client_id)
        return Message(message_id, packet.topic, packet.payload, contract, pairs, headers)

    def check(self, packet: Publish) -> _Stated:
        """What the packet states; raises `BadStatement` if that cannot be kept."""
        key = (packet.topic, packet.properties)
        return self._known.get(key) or self._read(*key)

    def _read(self, topic: str, properties: Properties) -> _Stated:
        pairs, default = properties.user_properties, self._default_contract(topic)
        contract, _ = stated_contract(pairs, properties.message_expiry_s, default)
        _check_names(contract)
        headers = headers_of(properties)
        stated = (contract, pairs, headers, _misspelt_publication(pairs))
        texts_bytes = len(topic) + 2 * len(headers) + properties_bytes(pairs)
        return self._known.keep((topic, properties), stated, STATEMENT_BYTES + texts_bytes)

    def _warn_of(self, slips: dict[str, str], client_id: str) -> None:
        for name, meant in slips.items():
            problem = f"publishes with user property {shown(name)}, which states nothing"
            line = f"client {shown(client_id)} {problem}. Did you mean {meant!r}?"
            self._warnings.warn(line, subject=name)  # many a client has a new name each time


def _misspelt_publication(pairs: UserProperties) -> dict[str, str]:
    """Without slips of `where`, which states nothing about a publication."""
    return {name: meant for name, meant in misspelt(pairs).items() if meant != "where"}


def wishes(
    broker: str, client: str, topics: list[str], pairs: UserProperties
) -> list[Subscription]:
    """The subscriptions of one SUBSCRIBE, whose properties hold for all its filters."""
    contract, where = stated_contract(pairs, None, BEST_EFFORT)
    _check_names(contract)
    for name, meant in misspelt(pairs).items():
        problem = f"user property {shown(name)} is not known. Did you mean {meant!r}?"
        raise BadStatement(meant, problem)
    if where:
        try:
            parse(where)
        except PredicateError as fault:
            raise BadStatement("where", str(fault)) from None
    return [
        Subscription(subscription_id(broker, client, topic), broker, topic, where or "", contract)
        for topic in topics
    ]


def _check_names(contract: Contract) -> None:
    _check("strategy", contract.strategy, live_strategies())
    _check("scheduling", contract.scheduling, sorted(POLICIES))


def _check(name: str, stated: str, known: Collection[str]) -> None:
    if stated and stated not in known:
        raise bad_value(name, stated, f"one of {', '.join(known)}", suggestion(stated, known))
