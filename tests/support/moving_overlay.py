"""A little overlay that moves, for tests of linkers: what they wish is done, round by round.

It shares nothing with brokers but the values in `linking/base.py`. A round lasts a second. Reports
travel one link a round, so everybody acts on what was so some rounds ago, and all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf
from typing import NamedTuple

from tidings.core.links.estimates import LinkEstimate
from tidings.linking.base import Known, Linker, Wishes

ROUND_S = 1.0
LONGEST_PAUSE_S = 16.0  # after refusals

Delay = Callable[[str, str], float]


class Report(NamedTuple):
    incarnation: int
    version: int
    made_at: float
    links: dict[str, LinkEstimate]


class Member:
    """One broker: its linker, and what it believes."""

    def __init__(self, name: str, incarnation: int, linker: Linker, seeds: Iterable[str]) -> None:
        self.name, self.incarnation, self.linker = name, incarnation, linker
        self.seeds = tuple(seeds)
        self.reports: dict[str, Report] = {}  # of the others, and of itself
        self.failures: dict[str, int] = {}
        self.refused: dict[str, float] = {}  # until when
        self.wishes = Wishes(())

    def members(self) -> dict[str, int]:
        known = dict.fromkeys(self.seeds, 0)
        known.update({name: report.incarnation for name, report in self.reports.items()})
        return {name: known[name] for name in sorted(known) if name != self.name}

    def view(self) -> dict[str, dict[str, LinkEstimate]]:
        """A link counts unless its other end says that there is none."""
        heard = self.reports
        return {
            a: {b: e for b, e in report.links.items() if b not in heard or a in heard[b].links}
            for a, report in heard.items()
        }

    def known(self, linked: Iterable[str]) -> Known:
        return Known(
            me=self.name,
            members=self.members(),
            configured=(),
            linked=tuple(sorted(linked)),
            links=self.view(),
            refused=tuple(sorted(self.refused)),
        )


class MovingOverlay:
    def __init__(self, linker: Callable[[], Linker], delay_s: Delay, lifetime_s: float = 30.0):
        self.now = 0.0
        self.members: dict[str, Member] = {}
        self.links: dict[tuple[str, str], str] = {}  # who opened it
        self.dials = 0
        self._linker, self._delay_s, self._lifetime_s = linker, delay_s, lifetime_s
        self._sides: tuple[Collection[str], ...] = ()
        self._lives: dict[str, int] = {}

    # ---- what happens to it

    def join(self, name: str, *seeds: str) -> None:
        self._lives[name] = self._lives.get(name, 0) + 1
        self.members[name] = Member(name, self._lives[name], self._linker(), seeds)

    def crash(self, name: str) -> None:
        """Nobody is told; its links are gone."""
        del self.members[name]
        self._drop([link for link in self.links if name in link])

    def split(self, *sides: Collection[str]) -> None:
        """Nothing passes between these until they are split otherwise."""
        self._sides = sides
        self._drop([link for link in self.links if not self._passes(*link)])

    # ---- what it does

    def round(self) -> bool:
        """Everybody hears, then everybody acts; whether any link came or went."""
        self.now += ROUND_S
        before = set(self.links)  # what wishes are about: nobody knows yet what the others close
        self._tell()
        for member in self.members.values():
            here = member.members()
            member.refused = {
                name: until
                for name, until in member.refused.items()
                if until > self.now and name in here
            }
            member.wishes = member.linker.wishes(self.known(member.name), self.now)
        for member in self.members.values():
            self._close(member)
        for name in sorted(self.members):
            self._open(self.members[name], before)
        return set(self.links) != before

    def settle(self, within: int = 600, quiet: int = 40) -> int:
        """Rounds until nothing had changed for `quiet` of them; that must come."""
        last = 0
        for number in range(1, within + 1):
            if self.round():
                last = number
            if number - last >= quiet:
                return last
        raise AssertionError(f"links come and go after {within} rounds")

    # ---- what it is like

    def known(self, name: str) -> Known:
        return self.members[name].known(self.linked(name))

    def linked(self, name: str) -> list[str]:
        return [a if b == name else b for a, b in self.links if name in (a, b)]

    def reached(self, name: str) -> set[str]:
        reached, waiting = {name}, [name]
        while waiting:
            fresh = set(self.linked(waiting.pop())) - reached
            reached |= fresh
            waiting += fresh
        return reached

    def degrees(self) -> dict[str, int]:
        return {name: len(self.linked(name)) for name in self.members}

    # ---- inside

    def _passes(self, a: str, b: str) -> bool:
        return not self._sides or any(a in side and b in side for side in self._sides)

    def _drop(self, links: Iterable[tuple[str, str]]) -> None:
        for link in links:
            del self.links[link]

    def _tell(self) -> None:
        for name, member in self.members.items():
            links = {b: LinkEstimate(self._delay_s(name, b)) for b in self.linked(name)}
            old = member.reports.get(name)
            renew_at = -inf if old is None else old.made_at + self._lifetime_s / 3
            if old is None or old.links != links or self.now >= renew_at:
                version = old.version + 1 if old else 1
                member.reports[name] = Report(member.incarnation, version, self.now, links)
        said = {name: dict(member.reports) for name, member in self.members.items()}
        for a, b in self.links:
            self._hear(self.members[a], said[b])
            self._hear(self.members[b], said[a])
        for member in self.members.values():
            fresh = self.now - self._lifetime_s
            member.reports = {n: r for n, r in member.reports.items() if r.made_at > fresh}

    def _hear(self, member: Member, reports: dict[str, Report]) -> None:
        for origin, report in reports.items():
            known = member.reports.get(origin)
            if origin != member.name and (known is None or known[:2] < report[:2]):
                member.reports[origin] = report

    def _close(self, member: Member) -> None:
        name, wishes = member.name, member.wishes
        for other in self.linked(name):
            link = (min(name, other), max(name, other))
            unwanted = self.links[link] == name and other not in wishes.wanted
            if unwanted or other in wishes.shed:
                del self.links[link]

    def _open(self, member: Member, before: Collection[tuple[str, str]]) -> None:
        name = member.name
        for other in member.wishes.wanted:
            link = (min(name, other), max(name, other))
            if link in before or link in self.links or other in member.refused:
                continue
            self.dials += 1
            if other in self.members and self._passes(name, other):
                self.links[link] = name
                member.failures.pop(other, None)
            else:
                failures = member.failures[other] = member.failures.get(other, 0) + 1
                pause_s = min(LONGEST_PAUSE_S, 2.0**failures)
                member.refused[other] = self.now + pause_s
