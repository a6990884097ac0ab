"""An experiment is a value: a TOML file that reads like the setup table of a paper.

Every parameter has a name, a unit in that name, and a default. The same file runs in the simulator
(`tidings simulate`) and as a live overlay on this machine (`tidings up`).
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from tidings.broker.settings import Settings
from tidings.core.contract import Contract, Late, subscription_id
from tidings.core.policy import Policy
from tidings.core.ranges import Count, NotNegative, Positive, Ratio
from tidings.core.rng import Draws

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


class LinkDefaults(_Table, frozen=True):
    """What holds for every link of which no model knows better; delays come with the topology."""

    loss_ratio: Ratio = 0.0  # per transmission
    rate_kbit_per_s: Positive = inf
    ms_per_kbyte: tuple[Positive, Positive] | None = None  # mean, drawn per link; none: no limit
    ms_per_kbyte_deviation: NotNegative = 0.0  # between messages on one link
    failure_probability: Ratio = 0.0  # per link and epoch: the link is dark for all of it
    failure_epoch_s: Positive = 1.0
    processing_ms: NotNegative = 0.0  # what the receiving broker adds to messages and probes
    # Whether a publisher's broker adds it too, to what its own clients publish.
    processing_at: Literal["every-hop", "every-broker"] = "every-hop"
    ack: Literal["travels", "instant"] = "travels"  # instant: known at once, never lost
    model: str = ""  # a learned link model: where it knows a link, that holds instead
    replay: str = ""  # a folder of traces: where they know a link, what happened on it does

    @property
    def processing_s(self) -> float:
        return self.processing_ms / 1000

    @property
    def first_processing_s(self) -> float:
        """What a message waits at the broker of its publisher."""
        return self.processing_s if self.processing_at == "every-broker" else 0.0


class Speaker(Struct, frozen=True):
    """A publisher of which everything is known."""

    broker: str
    topic: str
    rate_per_s: float
    payload_bytes: int
    contract: Contract
    phase_s: float | None = None  # of its first publication after start_s; absent: drawn


class Publisher(_Table, frozen=True):
    """One line of the load; what it leaves out, the workload says for all."""

    broker: str
    topic: str
    rate_per_s: Pace | None = None
    phase_s: NotNegative | None = None  # of its first publication after start_s; absent: drawn
    payload_bytes: Annotated[int, Meta(ge=0)] | None = None
    deadline_ms: Positive = inf
    price: NotNegative = 1.0
    availability: Ratio = 0.0
    late: Late = "deliver"

    def speaker(self, workload: Workload) -> Speaker:
        rate_per_s, payload_bytes = self.rate_per_s, self.payload_bytes
        return Speaker(
            self.broker,
            self.topic,
            workload.rate_per_s if rate_per_s is None else rate_per_s,
            workload.payload_bytes if payload_bytes is None else payload_bytes,
            Contract(
                self.deadline_ms / 1000,
                self.price,
                availability=self.availability,
                late=self.late,
                durable=workload.durable,
            ),
            self.phase_s,
        )


class Subscriber(_Table, frozen=True):
    broker: str
    topic: str  # a filter
    name: str = ""  # empty: s1, s2, ... in the order of the file
    where: str = ""
    deadline_ms: Positive = inf
    price: NotNegative = 1.0
    availability: Ratio = 0.0
    late: Late = "deliver"

    def contract(self) -> Contract:
        deadline_s, availability = self.deadline_ms / 1000, self.availability
        return Contract(deadline_s, self.price, availability=availability, late=self.late)

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
    durable: bool = False  # of all messages: written down until they have arrived
    content: Content = Content()
    publisher: tuple[Publisher, ...] = ()
    subscriber: tuple[Subscriber, ...] = ()


class Fault(_Table, frozen=True):
    """One thing that is broken for a while, in seconds since the run began."""

    from_s: NotNegative
    to_s: Positive
    link: tuple[str, str] | None = None
    broker: str = ""


class Slots(_Table, frozen=True):
    """Slots of time, one after the other, for all of which a link may be bad (Harmony, section 3):
    drawn per link and slot, after a while in which all links are good."""

    probability: Ratio = 0.0  # of each link in each slot
    clean_s: NotNegative = 180.0  # after run.start_s
    slot_s: Positive = 180.0
    count: Annotated[int, Meta(ge=1, le=100_000)] = 10
    # What a bad link's delay is; absent: it carries nothing.
    delay_ms: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class Faults(_Table, frozen=True):
    """Failures drawn as Poisson processes with exponential lengths, and failures listed."""

    link_failures_per_hour: NotNegative = 0.0  # of each link
    link_outage_s: Positive = 30.0  # mean
    broker_failures_per_hour: NotNegative = 0.0  # of each broker
    broker_outage_s: Positive = 30.0  # mean
    schedule: tuple[Fault, ...] = ()
    slots: Slots = Slots()


class Absence(_Table, frozen=True):
    """A broker that is not there for a while, in seconds since the run began: from 0 on, it joins
    at the end; until inf, it never comes back."""

    broker: str
    from_s: NotNegative = 0.0
    to_s: Positive = inf
    leaves: bool = False  # in good order, its clients first; else it crashes


class Dynamics(_Table, frozen=True):
    """A network that never holds still (semi-probabilistic routing, section 4.1): links break and
    others appear, brokers come and go."""

    break_every_s: Positive = inf  # a link breaks so often, somewhere in the overlay
    repair_s: NotNegative = 0.1  # until another one appears, elsewhere
    degree: Annotated[int, Meta(ge=0)] = 0  # brokers keep it within one; 0: the topology's mean
    delay_ms: tuple[NotNegative, NotNegative] = (10.0, 50.0)  # of links that appear
    departures_per_hour: NotNegative = 0.0  # of each broker; another one of its name comes back
    absence_s: Positive = 30.0  # mean, exponential
    crash_share: Ratio = 1.0  # of departures; the others leave in good order
    absence: tuple[Absence, ...] = ()  # listed ones
    awake_s: Positive = inf  # each broker is awake for so long, then asleep: its links are silent
    asleep_s: NotNegative = 0.0
    join_every_s: NotNegative = 0.0  # brokers join one after the other; 0: all are there at first
    contacts: Count = 2  # members that a broker knows at first, where it looks for links itself

    @property
    def moves(self) -> bool:
        """Do links or brokers come and go by a schedule?"""
        members = self.departures_per_hour > 0 or bool(self.absence) or self.join_every_s > 0
        return self.break_every_s < inf or members


class Live(_Table, frozen=True):
    """Where a live overlay of this scenario listens; the simulator ignores it."""

    host: str = "127.0.0.1"
    mqtt_port: Annotated[int, Meta(ge=0, le=65_000)] = 18_831  # then one up each; 0: any free
    traces: str = "traces"  # folder
    flush_s: Positive = 1.0  # trace rows reach the disk this often


class Scenario(_Table, frozen=True):
    run: Run = Run()
    topology: dict[str, Any] = field(default_factory=lambda: {"kind": "full-mesh"})
    links: LinkDefaults = LinkDefaults()
    broker: Settings = Settings()
    policy: tuple[Policy, ...] = ()
    workload: Workload = Workload()
    faults: Faults = Faults()
    dynamics: Dynamics = Dynamics()
    live: Live = Live()

    source: str = ""  # the file it was read from
    folder: str = ""  # what file names in it are relative to
    # What was set beside the file (--set, the grid of a sweep) of what a link's course may know:
    # such a parameter holds whatever a model says.
    explicit: tuple[str, ...] = ()

    def draws(self) -> Draws:
        return Draws(self.run.seed)

    @property
    def links_itself(self) -> bool:
        """Do brokers choose their links, rather than the topology and the schedule?"""
        return self.broker.linking != "configured"

    def settings(self) -> Settings:
        """What every broker of this scenario is set to."""
        policies = tuple(policy.topic_policy() for policy in self.policy)
        return msgspec.structs.replace(self.broker, policies=policies).checked(self.source)
