"""What does a scenario become on this machine? A configuration for each broker, with its ports."""

from __future__ import annotations

import re
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.links.conditions import Conditions
from tidings.core.topology import Topology
from tidings.files.folders import writable_folder
from tidings.live.config import NAME, BrokerConfig, Emulate, Estimate, Neighbour
from tidings.sim.scenario import Scenario
from tidings.sim.setup import Setup
from tidings.sim.workload import Load
from tidings.testbed.moving_links import LinkSchedule
from tidings.testbed.overlay import Intervals


class Plan(Struct, frozen=True):
    """All that is needed to run a scenario live."""

    scenario: Scenario
    run: str  # names this run's rows
    traces: Path
    brokers: dict[str, BrokerConfig]
    broker_outages: dict[str, Intervals]
    leaving: dict[str, tuple[float, ...]]  # which of these are departures in good order
    links: LinkSchedule  # that come and go, if any do
    load: Load


def plan(setup: Setup, run: str, traces: Path, reserved: ExitStack | None = None) -> Plan:
    """Chooses the ports. Those of links stay reserved until `reserved` is closed; an MQTT port that
    somebody uses is an error that says what to do."""
    scenario, overlay = setup.scenario, setup.overlay
    from_file = traces == Path(scenario.live.traces)
    writable_folder(traces, f"{scenario.source}: live.traces" if from_file else "--traces")
    _check_names(scenario, overlay)
    _check_host(scenario)
    _check_linking(scenario)
    links = setup.conditions
    both_ways = links | {(b, a): condition for (a, b), condition in links.items()}
    link_ports = dict(zip(overlay.brokers, _link_ports(scenario, overlay, reserved), strict=True))
    mqtt_ports = dict(zip(overlay.brokers, _mqtt_ports(scenario, overlay), strict=True))
    brokers = {
        name: BrokerConfig(
            name=name,
            host=scenario.live.host,
            mqtt_port=mqtt_ports[name],
            link_port=link_ports[name],
            neighbour=tuple(_neighbours(setup, name, link_ports, both_ways)),
            broker=scenario.broker,
            policy=scenario.policy,
            run=run,
            seed=scenario.run.seed,
            traces=str(traces.absolute()),
            flush_s=scenario.live.flush_s,
        )
        for name in overlay.brokers
    }
    outages, moving = setup.outages, _schedule(setup)
    return Plan(
        scenario, run, traces, brokers, outages.brokers, outages.leaving, moving, setup.load
    )


def _neighbours(
    setup: Setup,
    name: str,
    ports: dict[str, int],
    links: dict[tuple[str, str], Conditions],
) -> list[Neighbour]:
    """All with which a broker has a link at some time."""
    scenario, known = setup.scenario, setup.estimates(name)
    return [
        Neighbour(
            name=other,
            host=scenario.live.host,
            port=ports[other],
            estimate=Estimate.of(link) if (link := known[other]) else None,
            emulate=Emulate.of(links[name, other], scenario.links.processing_ms / 1000),
            awaited=not scenario.dynamics.moves,
        )
        for other in setup.ever_linked.neighbours(name)
    ]


def _schedule(setup: Setup) -> LinkSchedule:
    if not setup.scenario.dynamics.moves:
        return LinkSchedule()
    return LinkSchedule(tuple((link.a, link.b) for link in setup.overlay.links), setup.moves)


def _check_names(scenario: Scenario, overlay: Topology) -> None:
    for name in overlay.brokers:
        if not re.search(NAME, name):
            accepted = "names of brokers without slashes and white space"
            raise ConfigError(scenario.source, "topology", name, accepted)


def _check_linking(scenario: Scenario) -> None:
    if scenario.links_itself:
        accepted = "configured; other linkers run in `tidings simulate`, and in brokers that join"
        raise ConfigError(scenario.source, "broker.linking", scenario.broker.linking, accepted)


def _check_host(scenario: Scenario) -> None:
    host = scenario.live.host
    try:
        socket.create_server((host, 0)).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        accepted = f"a name or IPv4 address of this machine (here: {why})"
        raise ConfigError(scenario.source, "live.host", host, accepted) from None


def _link_ports(scenario: Scenario, overlay: Topology, reserved: ExitStack | None) -> list[int]:
    """Ports that are free now, one per broker; all are held until all are found, or longer.

    On Linux a port stays reserved while a socket is bound to it and does not listen: who asks for
    any free port does not get it, but a broker that asks for it by number can listen there. Other
    systems refuse that broker, so there a port is given back at once, and somebody could take it.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(_bound(scenario.live.host)) for _ in overlay.brokers]
        ports = [bound.getsockname()[1] for bound in sockets]
        if reserved is not None and sys.platform == "linux":
            reserved.push(held.pop_all())
    return ports


def _bound(host: str) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, 0))
    return bound


def _mqtt_ports(scenario: Scenario, overlay: Topology) -> list[int]:
    first = scenario.live.mqtt_port
    if not first:
        return [0] * len(overlay.brokers)
    ports = list(range(first, first + len(overlay.brokers)))
    for port in ports:
        try:
            socket.create_server((scenario.live.host, port)).close()
        except OSError as error:
            accepted = (
                f"the first of {len(ports)} free ports, but {port} cannot be used "
                f"({error.strerror}); try another, or 0 for any: --set live.mqtt_port=0"
            )
            raise ConfigError(scenario.source, "live.mqtt_port", first, accepted) from None
    return ports
