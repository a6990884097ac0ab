"""Who may be a neighbour, and over which connection? Overlay links over TCP.

Whoever dials waits until the other end has said who it is, and then says so itself. A broker that
looks for links itself takes strangers; others know their neighbours, and of each pair the one with
the smaller name dials. Where both ends may dial, both may do so at once: the connection that the
smaller name has dialled survives, by a rule that both apply alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.core.errors import SHOWN_CHARACTERS, Unwelcome
from tidings.core.links.estimates import LinkEstimate
from tidings.core.rng import Draws
from tidings.linking.options import MOST_LINKS
from tidings.live.config import NAME, BrokerConfig
from tidings.live.driver import Driver
from tidings.live.links.connection import HELLO_WITHIN_S, LinkConnection
from tidings.live.links.dialling import DIAL_WITHIN_S, Dialling
from tidings.live.links.notices import LinkNotices, why_silent
from tidings.live.links.wire import Wire

RACE_S = DIAL_WITHIN_S + HELLO_WITHIN_S  # between the two ends of a dial that met another one
LONGEST_NAME = 250  # of a stranger


class LinkConnector:
    """Makes and keeps all links of one broker: dials some neighbours, is dialled by others."""

    def __init__(
        self,
        driver: Driver,
        config: BrokerConfig,
        known: Mapping[str, LinkEstimate | None],
        draws: Draws,
    ) -> None:
        """`known` is what is known of links, by neighbour."""
        self.known = known
        self.driver, self.me = driver, driver.broker.name
        self._neighbours = {neighbour.name: neighbour for neighbour in config.neighbour}
        self._strangers_too = config.links_itself
        self.notices = LinkNotices(driver.clock, self._neighbours)
        driver.link_changed = self._changed
        self._dialling = Dialling(self, config, draws)
        self._connections: set[LinkConnection] = set()
        self.linked: dict[str, LinkConnection] = {}  # by the neighbour's name

    def start(self) -> None:
        """Begin to dial those who wait for us."""
        self._dialling.start()

    def accept(self) -> LinkConnection:
        """The protocol of a connection that somebody opened to us."""
        return self.connection(dialled=False)

    def up(self) -> list[str]:
        """The neighbours that are connected, by name."""
        return sorted(self.linked)

    def _changed(self, neighbour: str, up: bool) -> None:
        """What the broker thinks of a connection that is there."""
        if up:
            self.notices.answers(neighbour)
            return
        broker, settings = self.driver.broker, self.driver.broker.settings
        quiet_s = broker.quiet_s(neighbour, self.driver.clock())
        why = why_silent(quiet_s, settings.suspect_after_s, settings.probes_missed)
        self.notices.silent(neighbour, why)

    def busy(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._connections)

    def stop(self) -> None:
        self._dialling.stop()
        for connection in list(self._connections):
            connection.end()

    def link(self, neighbour: str) -> None:
        """A link to a neighbour that is not always awaited is to be there."""
        self._dialling.keep(self._neighbours[neighbour])

    def unlink(self, neighbour: str) -> None:
        """It is gone, as if somebody had cut the cable: nothing more leaves."""
        self._dialling.give_up(neighbour)
        connection = self.linked.get(neighbour)
        if connection is not None:
            connection.cut()

    def close(self, neighbour: str) -> None:
        """End a link that the broker wants no longer."""
        connection = self.linked.get(neighbour)
        if connection is not None:
            self.notices.down(neighbour, "it is not wanted any more")
            connection.end()
            connection.let_go()

    # ---- for connections

    def connection(self, dialled: bool, expected: str | None = None) -> LinkConnection:
        """A new one; of one that is dialled the other end's name is expected, if it is known."""
        connection = LinkConnection(self, dialled, expected)
        self._connections.add(connection)
        return connection

    def gone(self, connection: LinkConnection) -> None:
        self._connections.discard(connection)

    def wire_for(self, name: str, connection: LinkConnection) -> Wire | None:
        """The wire to a peer that says it has this name; none if a link is not needed."""
        expected = connection.expected
        if expected is not None and name != expected:
            raise Unwelcome(f"it says it is {_shown(name)}, but {expected!r} was dialled")
        if connection.dialled and expected is None:
            if name != self.me:
                self._check_name(name)
            if not self._dialling.met(name, connection):
                return None
        self._check_welcome(name, connection)
        older = self.linked.get(name)
        if older is not None:
            if not self._survives(connection, older):
                return None
            older.end()
            older.let_go()
        wires = self.driver.wires
        wire = wires[name] if name in wires else self.driver.add_wire(name)
        self.linked[name] = connection
        return wire

    def let_go(self, wire: Wire) -> None:
        """A connection was a link and is none any more. Nothing is kept for a stranger."""
        neighbour = wire.neighbour
        del self.linked[neighbour]
        self.driver.link_down(neighbour)
        if neighbour not in self._neighbours:
            del self.driver.wires[neighbour]

    def _check_welcome(self, name: str, connection: LinkConnection) -> None:
        """May a broker of this name have a link here?"""
        if self._strangers_too:
            self._check_name(name)
            if name not in self.driver.wires and len(self.driver.wires) >= MOST_LINKS:
                raise Unwelcome(f"there are {MOST_LINKS} links already")
        elif name not in self._neighbours:
            known = ", ".join(self._neighbours) or "none"
            problem = f"it says it is {_shown(name)}, but the neighbours here are: {known}"
            raise Unwelcome(problem, "it is no neighbour of this broker")
        elif not connection.dialled and self.me < name:
            raise Unwelcome(f"{name!r} dialled, but is to be dialled by {self.me!r}")

    def _check_name(self, name: str) -> None:
        if name == self.me:
            raise Unwelcome(f"it has the name of this broker, {name!r}")
        if len(name) > LONGEST_NAME or not re.match(NAME, name):
            raise Unwelcome(f"it says it is {_shown(name)}, a name that no broker can have")

    def _survives(self, connection: LinkConnection, older: LinkConnection) -> bool:
        """Both are links to the same peer: is the new one to take the place of the older one?"""
        name = older.neighbour
        raced = connection.dialled != older.dialled and older.age_s() < RACE_S
        if not raced:
            problem = f"{name!r} is connected already, from {older.place()}"
            raise Unwelcome(problem, f"{name!r} is connected already, from elsewhere")
        return connection.dialled == (self.me < name)


def _shown(name: str) -> str:
    return repr(name[:SHOWN_CHARACTERS])
