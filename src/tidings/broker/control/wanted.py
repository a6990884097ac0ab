"""Who wants a message? Clients of this broker, and so many at other brokers."""

from __future__ import annotations

from tidings.core.cache import BoundedCache
from tidings.core.contract import Contract, Destination, destination
from tidings.core.values import Value

DESTINATION_BYTES = 200  # of what is owed to one of several brokers, in memory

Owed = BoundedCache[tuple[int, Contract], tuple[Destination, ...]]  # by plan and contract
Counted = tuple[tuple[Contract, int], ...]  # how many ask for the same


class Wanted(Value, frozen=True):
    """Who wants a message: here, and at which other brokers."""

    local: tuple[tuple[Contract, tuple[str, ...]], ...]  # the clients' subscriptions by contract
    local_ids: tuple[str, ...]  # all of them, sorted
    takes_late: bool  # every local subscription takes a late message
    durable: bool  # some other broker's subscription must not miss it
    remote: tuple[tuple[str, Counted], ...]
    brokers: tuple[str, ...]  # of `remote`
    plan: int  # its number in `owed`; 0 if it is for one message only
    owed: Owed

    def destinations(self, contract: Contract) -> tuple[Destination, ...]:
        """What a message under this contract owes to other brokers."""
        known = self.owed.get((self.plan, contract))
        if known is None:
            known = tuple([destination(broker, contract, asked) for broker, asked in self.remote])
            if self.plan:
                self.owed.keep((self.plan, contract), known, DESTINATION_BYTES * (1 + len(known)))
        return known

    def in_time(self, contract: Contract, age_s: float) -> tuple[str, ...]:
        """The local subscriptions that take a message of this age under this contract."""
        taking: list[str] = []
        for wished, ids in self.local:
            if _takes(wished, contract, age_s):
                taking += ids
        taking.sort()
        return tuple(taking)


def _takes(wished: Contract, stated: Contract, age_s: float) -> bool:
    """Whether who has asked so takes a message of this age, under this contract."""
    is_late = age_s > min(stated.deadline_s, wished.deadline_s)
    return not is_late or (stated.late == "deliver" and wished.late == "deliver")
