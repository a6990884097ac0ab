"""What is asked for in the whole overlay? Each thing once, found by the messages that it is about.

The same filter, predicate and contract are one interest, whoever asks: so the index has a row for
each thing that can be asked for, and equal texts and contracts are in memory once.
"""

from __future__ import annotations

from functools import lru_cache

from tidings.broker.control.told import Asked
from tidings.core.cache import BoundedCache
from tidings.core.contract import Contract
from tidings.core.matching import MatchingIndex, TopicPlan
from tidings.core.matching.rows import Keys
from tidings.core.predicate import Predicate, parse
from tidings.core.topic import check_filter

PARSED_PREDICATES = 1_000  # kept: clients of one kind state the same
MOST_CONTRACTS = 10_000  # of which equal ones are one in memory; many clients state the same
PARSED_CHARACTERS = 1_000  # of one that is kept: its tree takes many times as much


class Interest:
    """Something that is asked for: by clients of this broker, and by how many elsewhere."""

    __slots__ = ("asked", "clients", "contract", "elsewhere", "key")

    def __init__(self, key: int, asked: Asked) -> None:
        self.key, self.asked, self.contract = key, asked, asked[2]
        self.clients: dict[str, None] = {}  # subscriptions here
        self.elsewhere: dict[str, int] = {}  # how many there are, by broker


class InterestIndex:
    """All interests, by what they are and by the topics that they are about."""

    def __init__(self) -> None:
        self._index = MatchingIndex()
        self._interests: dict[Asked, Interest] = {}
        self._contracts = BoundedCache[Contract, Contract](MOST_CONTRACTS)
        self._by_key: list[Interest | None] = []
        self._free_keys: list[int] = []

    def __len__(self) -> int:
        return len(self._interests)

    def known(self, topic: str, where: str, contract: Contract) -> Interest:
        """What is asked for so, in the index from now on; an error if nobody can ask so."""
        asked = (topic, where, contract)
        interest = self._interests.get(asked)
        if interest is None:
            predicate = checked_predicate(topic, where)  # before anything changes
            equal = self._contracts.get(contract) or self._contracts.keep(contract, contract)
            asked = (topic, where, equal)
            key = self._free_keys.pop() if self._free_keys else len(self._by_key)
            interest = Interest(key, asked)
            self._index.add(key, topic, predicate)
            if key == len(self._by_key):
                self._by_key.append(interest)
            else:
                self._by_key[key] = interest
            self._interests[asked] = interest
        return interest

    def drop_if_unused(self, interest: Interest) -> None:
        """Nobody may ask for it any more."""
        key = interest.key
        if interest.clients or interest.elsewhere or self._by_key[key] is not interest:
            return
        self._index.remove(key)
        self._by_key[key] = None
        self._free_keys.append(key)
        del self._interests[interest.asked]

    def plan(self, topic: str) -> TopicPlan:
        """How to match messages of this topic, until an interest comes or goes."""
        return self._index.plan(topic)

    def of(self, keys: Keys) -> list[Interest]:
        """The interests that matched."""
        found = [self._by_key[key] for key in keys.tolist()]
        return [interest for interest in found if interest is not None]


def checked_predicate(topic: str, where: str) -> Predicate | None:
    """The predicate of a wish, if that and the filter make sense."""
    check_filter(topic)
    if not where:
        return None
    return _parsed(where) if len(where) <= PARSED_CHARACTERS else parse(where)


@lru_cache(maxsize=PARSED_PREDICATES)
def _parsed(where: str) -> Predicate:
    return parse(where)
