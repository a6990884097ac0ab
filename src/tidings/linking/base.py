"""The question every linker answers, and what it may look at.

A linker says with whom this broker *wants* to be linked; the broker carries that out. It opens what
is wanted and not linked (with growing pauses after refusals), and closes what it has opened itself
and wants no longer. So a link exists as long as one of its ends wants it. A linker is asked again
when what is known has changed, when a link has come up or gone down, and at `again_at`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Protocol

from tidings.core.links.estimates import LinkEstimate
from tidings.core.values import Value


class Known(Value, frozen=True):
    """What one broker knows that matters for linking."""

    me: str
    members: Mapping[str, int]  # other brokers, sorted → incarnation; 0: a seed not heard of yet
    configured: tuple[str, ...]  # neighbours that a person has written down, sorted
    linked: tuple[str, ...]  # whose link is up, sorted
    links: Mapping[str, Mapping[str, LinkEstimate]]  # the view: from → to, as reported
    refused: tuple[str, ...] = ()  # those that could not be reached, until they are tried again
    version: int = 0  # changes whenever members or links do; 0: nothing may be kept between calls


class Wishes(Value, frozen=True):
    """Whom a broker wants to be linked with; all sorted."""

    wanted: tuple[str, ...]
    shed: tuple[str, ...] = ()  # links that are up, whoever opened them, and are too many here
    again_at: float = inf  # when to ask again, even if nothing has changed


class Linker(Protocol):
    """Asked twice about the same, it wants the same; also when its wishes have come true."""

    def wishes(self, known: Known, now: float) -> Wishes: ...
