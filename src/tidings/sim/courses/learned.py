"""What would links go through that behave as those of a model? Drawn from what was learned.

Delays
------
They change from slice to slice: each is a draw from the link's shifted gamma, multiplied by the
factor of its hour (a run begins at midnight). Neighbouring slices are correlated as they were
measured: a normal value keeps `persistence` of itself from slice to slice, and its place in the
normal distribution is the place in the gamma.

Outages
-------
Outages and the times between them are exponential with the learned means; links of a group share
theirs.

Which link of the model
-----------------------
Brokers are hosts of the model by name; if there is no such name at all, the brokers in the order of
their names stand for the hosts in the order of theirs. A link is learned in both directions; the
direction with more samples is taken for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, inf, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtr

from tidings.core.errors import ConfigError
from tidings.core.links.intervals import Interval
from tidings.core.links.model import BYTES, HOURS, LearnedLink, LinkModel
from tidings.core.rng import Draws
from tidings.sim.courses.link_course import Ends, LinkCourse, LinkCourses

MOST_STEPS = 10_000  # of one link; after them its steps begin again
HOUR_S = 3600


def learned_courses(
    model: LinkModel,
    brokers: Sequence[str],
    ends: Sequence[Ends],
    draws: Draws,
    length_s: float,
    place: tuple[str, str, str],
) -> LinkCourses:
    """The courses of an overlay's links; `place` is where the model was named, for errors: the
    file, the field, and its value."""
    hosts, how = _matched(model, brokers, place)
    groups = _groups(model)
    found: dict[Ends, LinkCourse] = {}
    for a, b in ends:
        if link := _better_known(model, hosts.get(a, ""), hosts.get(b, "")):
            found[a, b] = _course(link, model.slice_s, groups, draws, length_s)
    if ends and not found:
        accepted = "a model with at least one of the links of this overlay"
        raise ConfigError(*place, accepted)
    return LinkCourses(found, f"{how}; {len(found)} of {len(ends)} links are in it")


def _matched(
    model: LinkModel, brokers: Sequence[str], place: tuple[str, str, str]
) -> tuple[dict[str, str], str]:
    """The host of each broker, and how that was decided."""
    hosts = model.hosts()
    if same := set(brokers) & set(hosts):
        return {name: name for name in same}, f"{len(same)} of {len(brokers)} brokers by name"
    if len(hosts) < len(brokers):
        accepted = (
            f"a model with hosts of the brokers' names, or with {len(brokers)} hosts to stand for "
            f"them; it has {len(hosts)}: {', '.join(hosts[:5])}, ..."
        )
        raise ConfigError(*place, accepted)
    ordered = dict(zip(sorted(brokers), hosts, strict=False))
    first, host = next(iter(ordered.items()))
    return ordered, f"no host has a broker's name, so {first} is {host} and so on in order"


def _better_known(model: LinkModel, a: str, b: str) -> LearnedLink | None:
    """The direction of a link that has more samples."""
    both = [link for ends in sorted([(a, b), (b, a)]) if (link := model.links.get(ends))]
    return max(both, key=lambda link: link.samples, default=None)


def _course(
    link: LearnedLink,
    slice_s: float,
    groups: dict[int, tuple[float, float]],
    draws: Draws,
    length_s: float,
) -> LinkCourse:
    delivered, pace = link.delivery_ratio, link.transfer_mean_s_per_kilobyte
    steps = tuple(_steps(link, slice_s, draws, length_s))
    return LinkCourse(
        delay_s=link.delay_mean_s,
        delay_steps=steps,
        repeat_s=len(steps) * slice_s if steps else inf,
        loss_ratio=None if delivered is None else 1.0 - delivered,
        availability=link.availability,
        outages=tuple(_outages(link, groups, draws, length_s)),
        s_per_byte=None if pace is None else pace / BYTES,
        deviation_s_per_byte=sqrt(link.transfer_variance_s2_per_kilobyte2 or 0.0) / BYTES,
    )


def _steps(
    link: LearnedLink, slice_s: float, draws: Draws, length_s: float
) -> Iterator[tuple[float, float]]:
    shift_s, shape, scale_s = link.delay_shift_s, link.delay_shape, link.delay_scale_s
    if shift_s is None or shape is None or scale_s is None:
        if link.delay_mean_s is None or link.hourly_factors is None:
            return  # the mean is all that is known
        shift_s, shape, scale_s = link.delay_mean_s, 1.0, 0.0
    count = min(MOST_STEPS, ceil(length_s / slice_s))
    places = _places(count, link.persistence or 0.0, draws, *_ends(link))
    delays_s = shift_s + scale_s * gammaincinv(shape, places)
    for number, delay_s in enumerate(delays_s.tolist()):
        at = number * slice_s
        hour = int(at / HOUR_S) % HOURS
        yield at, delay_s * (link.hourly_factors[hour] if link.hourly_factors else 1.0)


def _places(count: int, keep: float, draws: Draws, *ends: str) -> npt.NDArray[np.float64]:
    """Correlated draws from (0, 1): each is uniform, and follows the one before."""
    fresh = draws.stream("weather-delay", *ends).standard_normal(count)
    values, spread = fresh.copy(), sqrt(1.0 - keep * keep)
    for number in range(1, count):
        values[number] = keep * values[number - 1] + spread * fresh[number]
    places: npt.NDArray[np.float64] = ndtr(values)
    return places


def _outages(
    link: LearnedLink, groups: dict[int, tuple[float, float]], draws: Draws, length_s: float
) -> Iterator[Interval]:
    """As often and as long as they were, on average; the link may be down when the run begins."""
    if link.availability is None or not link.outage_mean_s or link.availability >= 1.0:
        return
    availability, mean_s, key = link.availability, link.outage_mean_s, _ends(link)
    if link.group is not None:
        (availability, mean_s), key = groups[link.group], ("group", str(link.group))
    if availability <= 0.0:
        yield 0.0, length_s
        return
    stream, up_s = draws.stream("weather-outages", *key), mean_s * availability / (1 - availability)
    at = 0.0 if stream.random() >= availability else float(stream.exponential(up_s))
    while at < length_s:
        until = at + float(stream.exponential(mean_s))
        yield at, until
        at = until + float(stream.exponential(up_s))


def _ends(link: LearnedLink) -> tuple[str, str]:
    a, b = sorted((link.source, link.target))
    return a, b


def _groups(model: LinkModel) -> dict[int, tuple[float, float]]:
    """What the links of each group are like on average: availability, and mean outage."""
    members: dict[int, list[tuple[float, float]]] = {}
    for link in model.links.values():
        if link.group is not None and link.availability is not None and link.outage_mean_s:
            members.setdefault(link.group, []).append((link.availability, link.outage_mean_s))
    return {
        group: (sum(a for a, _ in links) / len(links), sum(s for _, s in links) / len(links))
        for group, links in members.items()
    }
