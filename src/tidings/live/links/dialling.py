"""Whom does this broker dial, where and when?

- Neighbours that a person has written down: again whenever the link is lost, after a pause that
  doubles up to two seconds. Of each pair the smaller name does it.
- Members, of which only the address is known: until they have said their names, quickly while this
  broker is alone, else now and then. From then on they are dialled when the broker asks for them.
- Whom the broker asks for: once. It will ask again if it still wants to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tidings.core.rng import Draws
from tidings.live.config import BrokerConfig, Member, Neighbour
from tidings.live.links.addresses import Address, address_in
from tidings.live.links.notices import why_not_reached

if TYPE_CHECKING:
    from tidings.live.links.connecting import LinkConnector
    from tidings.live.links.connection import LinkConnection

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
UNHURRIED_S = 60.0  # between attempts to reach a member that is not needed, as there are links
NEXT_MEMBER_S = 0.5  # the first members are waited for so long, until the next one is dialled, too
DIAL_WITHIN_S = 5.0
DIALS_AT_ONCE = 32  # of those that the broker asks for; many of them may be lies
NOT_A_LINK = "ended the connection before it was a link (its own log may say why)"


class Dialling:
    """What one broker dials."""

    def __init__(self, connector: LinkConnector, config: BrokerConfig, draws: Draws) -> None:
        self._connector, self._me, self._draws = connector, config.name, draws
        self._neighbours, self._members = config.neighbour, config.member
        self._places: dict[str, Address] = {}  # of members, as written down, by name
        self._nameless: dict[LinkConnection, Address] = {}  # members that are asked their names
        self._asked: dict[str, asyncio.Task[None]] = {}  # to dial whom the broker asks for
        self._kept: dict[str, asyncio.Task[None]] = {}  # neighbours
        self._sought: list[asyncio.Task[None]] = []  # members without a name
        self._at_once = asyncio.Semaphore(DIALS_AT_ONCE)

    def start(self) -> None:
        driver = self._connector.driver
        driver.open_link, driver.close_link = self._open, self._close
        for neighbour in self._neighbours:
            if neighbour.awaited:
                self.keep(neighbour)
        for place, member in enumerate(self._members):
            self._sought.append(asyncio.create_task(self._find(member, place * NEXT_MEMBER_S)))

    def stop(self) -> None:
        for task in (*self._kept.values(), *self._sought, *self._asked.values()):
            task.cancel()

    # ---- neighbours

    def keep(self, neighbour: Neighbour) -> None:
        """From now on there is to be a link to it; if it is not to be dialled, it will dial."""
        if self._me < neighbour.name and neighbour.name not in self._kept:
            self._kept[neighbour.name] = asyncio.create_task(self._keep(neighbour))

    def give_up(self, neighbour: str) -> None:
        """There is to be no link to it any more."""
        task = self._kept.pop(neighbour, None)
        if task is not None:
            task.cancel()

    async def _keep(self, neighbour: Neighbour) -> None:
        """Keeps a link to a neighbour, or waits for the end of one that it has dialled itself."""
        name, failures = neighbour.name, 0
        place = Address(neighbour.host, neighbour.port)
        while True:
            if name in self._connector.linked:
                await self._connector.linked[name].ended.wait()
            connection = self._connector.connection(dialled=True, expected=name)
            why, fault = await self._dial(connection, place)
            if not why:
                await connection.ended.wait()
            failures = failures + 1 if why else 0
            pause_s = self._pause_s(failures, name)
            if why:
                self._connector.notices.not_reached(name, place, why, pause_s, fault)
            await asyncio.sleep(pause_s)

    # ---- members

    def met(self, name: str, connection: LinkConnection) -> bool:
        """A member has said its name; is there to be a link right now?"""
        place = self._nameless[connection]
        self._places[name], connection.neighbour = place, name
        if name == self._me:
            self._connector.notices.is_oneself(place)
            return False
        self._connector.driver.member_found(name)
        return not self._connector.linked  # else the broker decides whom it needs

    async def _find(self, member: Member, first_in_s: float) -> None:
        """Finds out the name of a member."""
        place, failures = member.address(), 0
        await asyncio.sleep(first_in_s)
        while place not in self._places.values():
            if self._connector.linked:
                await self._unhurried(place, failures)
            connection = self._connector.connection(dialled=True)
            self._nameless[connection] = place
            why, fault = await self._dial(connection, place)
            del self._nameless[connection]
            if not why:
                break
            if connection.neighbour:  # it has said its name: from now on the broker asks for it
                self._connector.driver.link_refused(connection.neighbour)
            failures += 1
            pause_s = self._pause_s(failures, str(place))
            self._connector.notices.not_reached("a member", place, why, pause_s, fault)
            await asyncio.sleep(pause_s)

    async def _unhurried(self, place: Address, failures: int) -> None:
        """Waits for long, or until this broker is alone."""
        loop, about = asyncio.get_running_loop(), (self._me, str(place), failures)
        end_at = loop.time() + UNHURRIED_S * self._draws.uniform(0.5, 1.0, "unhurried", *about)
        while self._connector.linked and loop.time() < end_at:
            await asyncio.sleep(LONGEST_PAUSE_S)

    # ---- what the broker asks for

    def _open(self, neighbour: str, address: str) -> None:
        if neighbour not in self._asked:
            self._asked[neighbour] = asyncio.create_task(self._try(neighbour, address))

    async def _try(self, neighbour: str, told: str) -> None:
        """Dials a broker once where it may be: as written down, and as it tells itself."""
        places = dict.fromkeys((self._places.get(neighbour), address_in(told)))
        why = "nobody has told an address of it that can be dialled"
        async with self._at_once:
            for place in filter(None, places):
                connection = self._connector.connection(dialled=True, expected=neighbour)
                why, _ = await self._dial(connection, place)
                if not why:
                    break
                why = f"{place} {why}"
        del self._asked[neighbour]
        if why:
            self._connector.notices.not_opened(neighbour, why)
            self._connector.driver.link_refused(neighbour)

    def _close(self, neighbour: str) -> None:
        """Soon, as effects are being carried out just now."""
        asyncio.get_running_loop().call_soon(self._connector.close, neighbour)

    # ---- one dial

    async def _dial(self, connection: LinkConnection, place: Address) -> tuple[str, bool]:
        """Until it is a link, or not needed; else why not, and whether that is a mistake that
        somebody has to mend."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await loop.create_connection(lambda: connection, place.host, place.port)
            await connection.settled.wait()
        except (OSError, UnicodeError) as error:
            self._connector.gone(connection)
            return why_not_reached(error, DIAL_WITHIN_S)
        except asyncio.CancelledError:
            connection.end()
            raise
        return "" if connection.was_link or connection.needless else NOT_A_LINK, False

    def _pause_s(self, failures: int, about: str) -> float:
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
        return pause_s * self._draws.uniform(0.5, 1.0, "redial", self._me, about, failures)
