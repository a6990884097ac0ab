"""The strategies that one broker has met, each with a router of the broker's own.

A router is made when its strategy is first needed: by a setting, a message, or a neighbour's word.
"""

from __future__ import annotations

from tidings.broker.settings import Settings
from tidings.routing import ROUTERS, SIMULATOR_ONLY
from tidings.routing.options import Foresight, Options
from tidings.routing.protocols import Router, SendsCopies, Talks


class Strategies:
    """Routers by the names of their strategies."""

    def __init__(self, settings: Settings, foresight: Foresight | None) -> None:
        self._options = Options(
            settings.transmissions,
            settings.ack_timer,
            settings.ack_slack_s,
            settings.dcrd,
            settings.harmony,
            foresight,
        )
        self._routers: dict[str, Router] = {}
        self.talking: dict[str, Talks] = {}  # those that have something to say to neighbours
        self.redundant: set[str] = set()  # the names of those that send several copies
        for name in (settings.strategy, *(p.contract.strategy for p in settings.policies)):
            self.get(name)

    def get(self, name: str) -> Router | None:
        """This broker's router for a strategy; None if there is no such strategy."""
        return self._routers.get(name) or self._make(name)

    def _make(self, name: str) -> Router | None:
        factory = ROUTERS.get(name)
        if factory is None or (name in SIMULATOR_ONLY and self._options.foresight is None):
            return None
        router = self._routers[name] = factory(self._options)
        if isinstance(router, Talks):
            self.talking[name] = router
        if isinstance(router, SendsCopies) and router.redundant:
            self.redundant.add(name)
        return router

    def have_news(self) -> bool:
        return any(router.has_news for router in self.talking.values())
