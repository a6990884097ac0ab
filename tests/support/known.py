"""Building what a linker may look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.core.links.estimates import LinkEstimate
from tidings.linking.base import Known


def known(
    me: str,
    *links: tuple[str, str, float],
    members: Iterable[str] = (),
    seeds: Iterable[str] = (),
    configured: Iterable[str] = (),
    refused: Iterable[str] = (),
    lives: Mapping[str, int] | None = None,
    version: int = 0,
) -> Known:
    """What `me` knows when these links are up. Whoever has one is a member."""
    near: dict[str, dict[str, LinkEstimate]] = {}
    for a, b, delay_s in links:
        near.setdefault(a, {})[b] = LinkEstimate(delay_s)
        near.setdefault(b, {})[a] = LinkEstimate(delay_s)
    incarnations = {**dict.fromkeys(seeds, 0), **dict.fromkeys([*near, *members], 1)}
    incarnations.update(lives or {})
    return Known(
        me=me,
        members={name: incarnations[name] for name in sorted(incarnations) if name != me},
        configured=tuple(sorted(configured)),
        linked=tuple(sorted(near.get(me, {}))),
        links=near,
        refused=tuple(sorted(refused)),
        version=version,
    )
