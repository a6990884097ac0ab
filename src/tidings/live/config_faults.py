"""What can be wrong with a broker's configuration that the types of its fields do not exclude?"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from tidings.core.errors import FilterError
from tidings.core.topic import check_filter
from tidings.linking import LINKERS
from tidings.live.links.addresses import address_in

if TYPE_CHECKING:
    from tidings.live.config import BrokerConfig, Emulate

EVERYWHERE = ("", "0.0.0.0", "::")  # hosts that say where to listen, and not where one is

Fault = tuple[str, object, str]


def faults(config: BrokerConfig) -> Iterator[Fault]:
    """All that are found, each as field, value, and what is accepted."""
    if config.links_itself:
        yield from _faults_of_joining(config)
    pinned, names = config.broker.estimates == "pinned", {config.name}
    known = config.known(config.source)
    for place, neighbour in enumerate(config.neighbour):
        where = f"neighbour[{place}]"
        if neighbour.name in names:
            yield f"{where}.name", neighbour.name, "a name of its own, not this broker's"
        names.add(neighbour.name)
        if pinned and known[neighbour.name] is None:
            yield f"{where}.estimate", None, 'a delay_ms, because broker.estimates is "pinned"'
        if neighbour.emulate:
            yield from _faults_of_emulation(f"{where}.emulate", neighbour.emulate)
    for table in ("policy", "log"):
        for place, entry in enumerate(getattr(config, table)):
            try:
                check_filter(entry.topic)
            except FilterError as fault:
                yield f"{table}[{place}].topic", entry.topic, f"a topic filter ({fault.problem})"
    for place, log in enumerate(config.log):
        if log.name in {other.name for other in config.log[:place]}:
            yield f"log[{place}].name", log.name, "a name of its own"


def _faults_of_joining(config: BrokerConfig) -> Iterator[Fault]:
    """Of a broker that others have to find."""
    linking, estimates = config.broker.linking, config.broker.estimates
    if linking == "configured":
        others = ", ".join(sorted(LINKERS.keys() - {linking}))
        accepted = f"one of {others}; with [[member]] a broker looks for links itself"
        yield "broker.linking", linking, accepted
    if estimates != "measured":
        accepted = '"measured", as nobody can state what links will be chosen'
        yield "broker.estimates", estimates, accepted
    where = "host:port, or a host alone, by which others reach link_port"
    if not config.address and config.host in EVERYWHERE:
        yield "address", None, f"{where}, because host is {config.host!r}"
    if config.address and address_in(config.address, config.link_port or 1) is None:
        yield "address", config.address, where
    for place, member in enumerate(config.member):
        if not member.address().is_sane():
            yield f"member[{place}].host", member.host, "a host's name or address"
        if config.member.index(member) < place:
            yield f"member[{place}]", str(member.address()), "a member that stands there once"


def _faults_of_emulation(where: str, emulate: Emulate) -> Iterator[Fault]:
    edges = [edge for outage in emulate.outages for edge in outage]
    if edges != sorted(set(edges)):
        yield f"{where}.outages", emulate.outages, "[from, to] pairs, sorted and disjoint"
    steps_at = [from_s for from_s, _ in emulate.delay_steps]
    if steps_at != sorted(set(steps_at)):
        accepted = "[from_s, delay_s] pairs, each from a later instant than the one before"
        yield f"{where}.delay_steps", emulate.delay_steps, accepted
    if emulate.s_per_byte and emulate.rate_bytes_per_s < inf:
        accepted = "0, as rate_bytes_per_s says how fast the link is"
        yield f"{where}.s_per_byte", emulate.s_per_byte, accepted
    if steps_at and emulate.repeat_s <= steps_at[-1]:
        accepted = f"an instant after the last step ({steps_at[-1]:g} s)"
        yield f"{where}.repeat_s", emulate.repeat_s, accepted
