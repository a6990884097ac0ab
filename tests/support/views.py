"""What a broker sees of an overlay, for tests of strategies without brokers."""

from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View


def a_view(me: str, *links: tuple[str, str, float], down: tuple[str, ...] = ()) -> View:
    """The view when every broker has told its links (two ends, delay); `down` are links of `me`."""
    view = View(me)
    near: dict[str, dict[str, LinkEstimate]] = {}
    for a, b, delay_s in links:
        near.setdefault(a, {})[b] = near.setdefault(b, {})[a] = LinkEstimate(delay_s)
    view.links = near
    view.neighbours = tuple(sorted(n for n in near.get(me, {}) if n not in down))
    view.severed = down
    view.version = 1
    return view
