"""What every link of a scenario is like: the physics that either world applies."""

from __future__ import annotations

from tidings.core.estimates import LinkEstimate
from tidings.core.topology import Topology
from tidings.core.weather import Conditions
from tidings.sim.faults import Outages
from tidings.sim.scenario import Scenario


def conditions(
    scenario: Scenario, overlay: Topology, outages: Outages
) -> dict[tuple[str, str], Conditions]:
    """The conditions of each link, by its two ends in the overlay's order."""
    links = scenario.links
    deviation = links.ms_per_kbyte_deviation / 1e6
    return {
        (link.a, link.b): Conditions(
            delay_s=link.start_delay_s,
            loss_ratio=links.loss_ratio,
            rate_bytes_per_s=links.rate_kbit_per_s * 1000 / 8,
            failure_probability=links.failure_probability,
            failure_epoch_s=links.failure_epoch_s,
            outages=outages.links[link.a, link.b],
            delay_steps=link.delay_steps,
            repeat_s=link.repeat_s,
            s_per_byte=_drawn_pace(scenario, link.a, link.b),
            deviation_s_per_byte=deviation,
        )
        for link in overlay.links
    }


def estimates(scenario: Scenario, overlay: Topology, broker: str) -> dict[str, LinkEstimate | None]:
    """What a broker is told of its links before it starts: nothing if it is to measure, else the
    long-run truth (mean delay and processing, delivery over losses and failures, time per byte)."""
    if scenario.settings().estimates == "measured":
        return dict.fromkeys(overlay.neighbours(broker))
    links = scenario.links
    arrives = (1.0 - links.failure_probability) * (1.0 - links.loss_ratio)
    processing_s, s_per_byte = links.processing_ms / 1000, 8 / (links.rate_kbit_per_s * 1000)
    return {
        neighbour: LinkEstimate(
            delay_s + processing_s,
            arrives,
            s_per_byte + _drawn_pace(scenario, broker, neighbour),
            links.ms_per_kbyte_deviation / 1e6,
        )
        for neighbour, delay_s in overlay.delays[broker].items()
    }


def _drawn_pace(scenario: Scenario, a: str, b: str) -> float:
    """The mean time per byte of a link, in both directions; 0: no such limit."""
    milliseconds = scenario.links.ms_per_kbyte
    if milliseconds is None:
        return 0.0
    return scenario.draws().uniform(*milliseconds, "ms-per-kbyte", *sorted((a, b))) / 1e6
