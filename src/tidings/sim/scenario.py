"""An experiment is a value: a TOML file that reads like the setup table of a paper.

Every parameter has a name, a unit in that name, and a default. The same file runs in the simulator
(`tidings simulate`) and as a live overlay on this machine (`tidings up`).
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from tidings.broker.settings import Settings
from tidings.core.contract import Contract, Late, subscription_id
from tidings.core.document import changed, convert, read_toml, value_at
from tidings.core.errors import ConfigError
from tidings.core.policy import NotNegative, Policy, Positive, Ratio
from tidings.core.rng import Draws
from tidings.core.topology import Topology, build
from tidings.sim.sense import NOT_IN_A_FILE, faults

Count = Annotated[int, Meta(ge=1)]
Pace = Annotated[float, Meta(gt=0, le=1e6)]  # per second; an endless pace would stop the clock
Span = Annotated[float, Meta(ge=0, le=1e8)]  # three years in seconds, so that every run ends


class _Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file: a misspelt parameter is an error, not a silent default."""


class Run(_Table, frozen=True):
    name: str = "run"
    seed: int = 1
    seconds: Annotated[float, Meta(gt=0, le=1e8)] = 60.0  # of publishing
    start_s: Span = 2.0  # before the first publication: the overlay gets to know itself
    drain_s: Span = 5.0  # after the last one: what is on its way may arrive


class Links(_Table, frozen=True):
    """What holds for every link; delays come with the topology."""

    loss_ratio: Ratio = 0.0  # per transmission
    rate_kbit_per_s: Positive = inf
    ms_per_kbyte: tuple[Positive, Positive] | None = None  # mean, drawn per link; none: no limit
    ms_per_kbyte_deviation: NotNegative = 0.0  # between messages on one link
    failure_probability: Ratio = 0.0  # per link and epoch: the link is dark for all of it
    failure_epoch_s: Positive = 1.0
    processing_ms: NotNegative = 0.0  # what the receiving broker adds to each data frame
    ack: Literal["travels", "instant"] = "travels"  # instant: known at once, never lost


class Publisher(_Table, frozen=True):
    broker: str
    topic: str
    rate_per_s: Pace = 1.0
    phase_s: NotNegative | None = None  # of its first publication after start_s; absent: drawn
    payload_bytes: Annotated[int, Meta(ge=0)] = 100
    deadline_ms: Positive = inf
    price: NotNegative = 1.0
    late: Late = "deliver"

    def contract(self) -> Contract:
        return Contract(self.deadline_ms / 1000, self.price, late=self.late)


class Subscriber(_Table, frozen=True):
    broker: str
    topic: str  # a filter
    name: str = ""  # empty: s1, s2, ... in the order of the file
    where: str = ""
    deadline_ms: Positive = inf
    price: NotNegative = 1.0
    late: Late = "deliver"

    def contract(self) -> Contract:
        return Contract(self.deadline_ms / 1000, self.price, late=self.late)

    def id(self, number: int) -> str:
        """The id of the subscription, which is the file's `number`-th."""
        return subscription_id(self.broker, self.name or f"s{number}", self.topic)


class Content(_Table, frozen=True):
    """Messages with attributes, and who wants which: bounded delay, section 6.1."""

    publishers: Count = 4  # one at each of the overlay's first brokers
    rate_per_minute: Pace = 10.0  # of each publisher
    attributes: Annotated[int, Meta(ge=1, le=100)] = 2  # A1, A2, ... of each message
    attribute_range: tuple[float, float] = (0.0, 10.0)  # of their values, and of what is asked
    subscriber_brokers: Count = 16  # the overlay's last ones
    subscribers_per_broker: Count = 10
    deadlines: Literal["publisher", "subscriber", "both"] = "publisher"  # who states them
    publisher_deadline_s: tuple[Positive, Positive] = (10.0, 30.0)  # drawn per message
    subscriber_deadline_s: tuple[Positive, ...] = (10.0, 30.0, 60.0)  # one drawn per subscription
    subscriber_price: tuple[NotNegative, ...] = (3.0, 2.0, 1.0)  # beside each of these deadlines


class Workload(_Table, frozen=True):
    """Either drawn (by topics or by content) or listed (publisher, subscriber)."""

    kind: Literal["topics", "content"] = "topics"
    topics: Count = 10  # one publisher each, at brokers drawn without repetition
    rate_per_s: Pace = 1.0  # of each publisher
    arrivals: Literal["periodic", "poisson"] = "periodic"
    payload_bytes: Annotated[int, Meta(ge=0)] = 100
    subscribe_probability: tuple[Ratio, Ratio] = (0.2, 0.6)  # drawn per topic, then per broker
    deadline_factor: Positive = 3.0  # times the shortest delay from publisher to subscriber
    late: Late = "deliver"
    content: Content = Content()
    publisher: tuple[Publisher, ...] = ()
    subscriber: tuple[Subscriber, ...] = ()


class Fault(_Table, frozen=True):
    """One thing that is broken for a while, in seconds since the run began."""

    from_s: NotNegative
    to_s: Positive
    link: tuple[str, str] | None = None
    broker: str = ""


class Faults(_Table, frozen=True):
    """Failures drawn as Poisson processes with exponential lengths, and failures listed."""

    link_failures_per_hour: NotNegative = 0.0  # of each link
    link_outage_s: Positive = 30.0  # mean
    broker_failures_per_hour: NotNegative = 0.0  # of each broker
    broker_outage_s: Positive = 30.0  # mean
    schedule: tuple[Fault, ...] = ()


class Live(_Table, frozen=True):
    """Where a live overlay of this scenario listens; the simulator ignores it."""

    host: str = "127.0.0.1"
    mqtt_port: Annotated[int, Meta(ge=0, le=65_000)] = 18_831  # then one up each; 0: any free
    traces: str = "traces"  # folder
    flush_s: Positive = 1.0  # trace rows reach the disk this often


class Scenario(_Table, frozen=True):
    run: Run = Run()
    topology: dict[str, Any] = field(default_factory=lambda: {"kind": "full-mesh"})
    links: Links = Links()
    broker: Settings = Settings()
    policy: tuple[Policy, ...] = ()
    workload: Workload = Workload()
    faults: Faults = Faults()
    live: Live = Live()

    source: str = ""  # the file it was read from
    folder: str = ""  # what file names in it are relative to

    def draws(self) -> Draws:
        return Draws(self.run.seed)

    def overlay(self) -> Topology:
        """The topology that the file describes."""
        parameters = dict(self.topology)
        kind = parameters.pop("kind", "full-mesh")
        place = f"{self.source}: topology"
        return build(str(kind), parameters, self.draws(), place, Path(self.folder))

    def settings(self) -> Settings:
        """What every broker of this scenario is set to."""
        policies = tuple(policy.topic_policy() for policy in self.policy)
        return msgspec.structs.replace(self.broker, policies=policies).checked(self.source)

    def digest(self) -> str:
        """The name of the result: whatever could change it is in here."""
        text = msgspec.json.encode(
            (self.overlay(), msgspec.structs.replace(self, source="", folder="", live=Live())),
            order="sorted",
        )
        return sha256(text).hexdigest()[:16]


def load(path: Path, changes: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a file, with some of its parameters replaced."""
    return parse(changed(read_toml(path), changes or {}), str(path), str(path.parent))


def parse(document: Mapping[str, Any], source: str, folder: str) -> Scenario:
    """The scenario that a document describes, checked as far as can be without running it."""
    for name, accepted in NOT_IN_A_FILE.items():
        if (value := value_at(document, name)) is not None:
            raise ConfigError(source, name, value, accepted)
    scenario = convert(document, Scenario, source)
    scenario = msgspec.structs.replace(scenario, source=source, folder=folder)
    scenario.settings()
    for fault in faults(scenario, scenario.overlay()):
        raise ConfigError(source, *fault)
    return scenario
