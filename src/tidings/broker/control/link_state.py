"""How every broker learns every link: each tells its own, the others pass it on.

Reports. A broker advertises all its links at once, under a version of its own counting; a newer
version replaces an older one, and only news travels on. Estimates are advertised when they changed
by enough, and renewed before they are too old.

Age. A report that nobody renews is forgotten after its lifetime, so that the last words of a broker
that died (or was cut off) do not outlive the truth. A report carries its age, as OSPF's do (RFC
2328, section 12.1.1), so passing it on does not make it young.

Nonsense. An estimate that cannot be (a negative delay, or NaN) is left out. A link is not used if
its other end has reported since and knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import inf

from tidings.broker.frames import Links
from tidings.core.errors import some_of
from tidings.core.links.estimates import LinkEstimate
from tidings.core.values import Value
from tidings.routing.base import View

FASTEST_S_PER_BYTE = 1e-9  # 8 Gbit/s: a smaller difference is none
MOST_ORIGINS = 10_000  # brokers that are believed to exist
MOST_NAMED, LONGEST_SHOWN = 3, 64  # of names from the wire, in a warning
FORGOTTEN_AFTER = 2  # lifetimes: a copy that left just before one had passed may be on its way
RENEWALS = 3  # of a report within its lifetime, so that one that is lost does no harm


class Report(Value, frozen=True):
    """The newest report of one broker, and when it was made, by the clock here."""

    frame: Links
    links: dict[str, LinkEstimate]  # those that make sense
    made_at: float
    named: frozenset[str]  # all to which it says there is a link


class LinkState:
    """The newest report of each broker, and the view that follows from them."""

    def __init__(
        self,
        view: View,
        incarnation: int,
        change: float,
        lifetime_s: float,
        address: str = "",
    ) -> None:
        self._address = address  # of this broker, as it tells it
        self._me, self._incarnation, self._change = view.me, incarnation, change
        self._lifetime_s = lifetime_s
        self._newest: dict[str, Report] = {}  # also what is too old to be used, to know it again
        self._used: dict[str, Report] = {}
        self._seen: dict[str, dict[str, LinkEstimate]] = {}  # what the view shows
        self.view = view
        self.expires_at = inf  # when a report may be too old to be used, or known; never too late

    # ---- what is advertised

    def advertise(
        self, mine: dict[str, LinkEstimate], now: float, insist: bool = False
    ) -> Links | None:
        """What to tell the others of these links of ours; None if it would be no news, unless
        `insist` is set. What is only renewed keeps its numbers, so that nobody computes anything
        anew."""
        old = self._newest.get(self._me)
        if old and not insist and old.frame.incarnation == self._incarnation:
            advertised = old.links
            if advertised.keys() == mine.keys() and not self._changed(advertised, mine):
                if not self._due(old, now):
                    return None
                mine = advertised
        version = old.frame.version + 1 if old else 1
        told = tuple(sorted(mine.items()))
        frame = Links(0, self._me, self._incarnation, version, told, 0.0, self._address)
        self._take(Report(frame, mine, now, frozenset(mine)))
        return frame

    def moved_to(self, address: str) -> None:
        """This broker takes links there: told from the next report on."""
        self._address = address

    def renew_at(self) -> float:
        """When our own report is to be renewed, changed or not."""
        mine = self._newest.get(self._me)
        return mine.made_at + self._lifetime_s / RENEWALS if mine else inf

    def all(self, now: float) -> list[Links]:
        """All that is believed, as it is passed on to somebody who may not know it."""
        return [_as_old_as(report, now) for report in self._in_order()]

    def begin_anew(self, incarnation: int) -> None:
        """Advertise under this incarnation from now on."""
        self._incarnation = incarnation

    # ---- what is heard

    def is_former(self, heard: Links) -> bool:
        """Is it a report of ours that we have not made? Then a former life has, with the same
        numbers or higher ones. It would be believed, and not ours."""
        if heard.origin != self._me:
            return False
        mine = self._newest.get(self._me)
        if mine and _number(mine.frame) == _number(heard):
            return heard.links != mine.frame.links
        return _number(heard) > (self._incarnation, mine.frame.version if mine else 0)

    def later_life(self, heard: Links, now: float) -> Links | None:
        """The report, used or too old, of a later life than the one that this is of."""
        known = self._newest.get(heard.origin)
        if known is None or known.frame.incarnation <= heard.incarnation:
            return None
        return _as_old_as(known, now)

    def apply(self, heard: Links, now: float) -> bool:
        """Take over what another broker says of its links; False if it was known, or too old."""
        known = self._newest.get(heard.origin)
        if known and self._is_forgotten(known, now):
            known = None
        if heard.origin == self._me or not 0 <= heard.age_s < self._lifetime_s:
            return False
        if known and (heard.incarnation, heard.version) <= _number(known.frame):
            return False
        if known is None and len(self._newest) >= MOST_ORIGINS:
            return False
        links = {b: e for b, e in heard.links if e.is_sane() and b != heard.origin}
        named = frozenset([neighbour for neighbour, _ in heard.links])
        self._take(Report(heard, links, now - heard.age_s, named))
        return True

    def expire(self, now: float) -> list[str]:
        """Use no more what nobody has renewed, and forget it when no copy can be young enough to be
        taken for news. Gives back the brokers that are forgotten."""
        if now < self.expires_at:
            return []
        forgotten = [o for o, report in self._newest.items() if self._is_forgotten(report, now)]
        for origin in forgotten:
            del self._newest[origin]
        used = {o: r for o, r in self._used.items() if self._is_fresh(r, now)}
        if len(used) < len(self._used):
            self._used, self._seen = used, {}
            self._see(used)
        others = [report for origin, report in self._newest.items() if origin != self._me]
        self.expires_at = min([self._ends_at(report) for report in others], default=inf)
        return forgotten

    def members(self) -> dict[str, int]:
        """The other brokers that report links, each with its incarnation; one that leaves says
        that it has none."""
        return {
            origin: report.frame.incarnation
            for origin, report in self._used.items()
            if origin != self._me and report.frame.links
        }

    def address(self, origin: str) -> str:
        """Where a broker takes links, if it has said so."""
        report = self._newest.get(origin)
        return report.frame.address if report else ""

    def knows(self, origin: str) -> bool:
        """Has the broker been heard of lately, or is it this one?"""
        return origin == self._me or origin in self._newest

    # ---- what follows

    def neighbours_changed(self, up: tuple[str, ...], down: tuple[str, ...]) -> None:
        """The links that are up are no longer the same."""
        self.view.neighbours, self.view.severed = up, down
        self.view.version += 1

    def serve(self) -> None:
        """Somebody subscribes here, so that messages will come."""
        if not self.view.serves:
            self.view.serves = True
            self.view.version += 1

    def _take(self, report: Report) -> None:
        origin = report.frame.origin
        before = self._used.get(origin)
        self._newest[origin] = self._used[origin] = report
        if before is None:
            self._see([origin, *(a for a, other in self._used.items() if origin in other.named)])
        elif before.links != report.links or before.named != report.named:
            self._see([origin, *(before.named ^ report.named)])
        if origin != self._me:
            self.expires_at = min(self.expires_at, self._ends_at(report))

    def _see(self, changed: Iterable[str]) -> None:
        """The links of these brokers may have changed. A link counts unless its other end says that
        there is none."""
        used = self._used
        for a in changed:
            report = used.get(a)
            if report is not None:
                self._seen[a] = {
                    b: estimate
                    for b, estimate in report.links.items()
                    if (other := used.get(b)) is None or a in other.named
                }
        self.view.links = self._seen
        self.view.version += 1

    def _ends_at(self, report: Report) -> float:
        """When a report of another broker is to be used no more. One that is not used ends, too,
        but later, or names that were heard once would add up."""
        is_used = self._used.get(report.frame.origin) is report
        return report.made_at + self._lifetime_s * (1 if is_used else FORGOTTEN_AFTER)

    def _is_fresh(self, report: Report, now: float) -> bool:
        return report.frame.origin == self._me or now < report.made_at + self._lifetime_s

    def _is_forgotten(self, report: Report, now: float) -> bool:
        """Nobody passes on what is older than a lifetime: a lower version is a new beginning."""
        known_s = FORGOTTEN_AFTER * self._lifetime_s
        return report.frame.origin != self._me and now >= report.made_at + known_s

    def _due(self, mine: Report, now: float) -> bool:
        return now >= mine.made_at + self._lifetime_s / RENEWALS

    def _in_order(self) -> list[Report]:
        return [self._used[origin] for origin in sorted(self._used)]

    def _changed(self, old: dict[str, LinkEstimate], new: dict[str, LinkEstimate]) -> bool:
        return any(_differ(old[neighbour], new[neighbour], self._change) for neighbour in old)


def aged(links: Links, more_s: float) -> Links:
    """The report when it has become older."""
    return Links(
        links.transmission,
        links.origin,
        links.incarnation,
        links.version,
        links.links,
        links.age_s + max(0.0, more_s),
        links.address,
    )


def _as_old_as(report: Report, now: float) -> Links:
    """The report with the age it has now; it had some when it came."""
    return aged(report.frame, now - report.made_at - report.frame.age_s)


def nonsense(heard: Links, me: str, neighbours: Container[str] | None) -> str:
    """What a person should know about a report; mostly nothing. Where anybody may become a
    neighbour, `neighbours` are None."""
    mad = sorted(
        shown(b)
        for b, estimate in heard.links
        if not estimate.is_sane()
        or b == heard.origin
        or (b == me and neighbours is not None and heard.origin not in neighbours)
    )
    if not mad:
        return ""
    named = some_of(mad, MOST_NAMED)
    return f"{shown(heard.origin)} reports nonsense about its links, not used: {named}."


def shown(name: str) -> str:
    """A name from the wire, as it can stand in a log."""
    return repr(name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "...")


def _number(links: Links) -> tuple[int, int]:
    return links.incarnation, links.version


def _differ(old: LinkEstimate, new: LinkEstimate, change: float) -> bool:
    """By more than this part of the old values."""
    loss = 1.0 - old.delivery_ratio
    pace = max(old.s_per_byte, FASTEST_S_PER_BYTE)
    return (
        abs(new.delay_s - old.delay_s) > change * old.delay_s
        or abs(new.delivery_ratio - old.delivery_ratio) > change * loss + change * 0.1
        or abs(new.s_per_byte - old.s_per_byte) > change * pace
        or abs(new.deviation_s_per_byte - old.deviation_s_per_byte) > change * pace
        or abs(new.availability - old.availability)
        > change * (1.0 - old.availability) + change * 0.01
    )
