"""What can be configured for a live broker? A TOML file, checked as a whole before it listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from tidings.broker.settings import Settings
from tidings.core.document import convert, value_at
from tidings.core.errors import ConfigError, one_of
from tidings.core.links.conditions import Conditions
from tidings.core.links.estimates import LinkEstimate
from tidings.core.policy import Policy
from tidings.core.ranges import NotNegative, Positive, Ratio
from tidings.files.document_kinds import check_kind
from tidings.files.toml import read_toml
from tidings.live.config_faults import faults
from tidings.live.links.addresses import Address, address_in
from tidings.routing import SIMULATOR_ONLY, live_strategies

if TYPE_CHECKING:
    from tidings.core.links.model import LearnedLink

Port = Annotated[int, Meta(ge=0, le=65_535)]
NAME = r"^[^/\s]+\Z"  # ids are made of names: `broker/client:filter`
Name = Annotated[str, Meta(pattern=NAME)]

JOINING = "random"  # the linker of a broker that has members to join, and names no linker

HIDDEN = {"broker.policies"}  # the tables [[policy]] become that

MS_PER_S = 1000
MS_PER_KILOBYTE = 1_000_000  # for each second per byte


class _Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file: a misspelt parameter is an error, not a silent default."""


class Estimate(_Table, frozen=True):
    """What is believed of a link before anything was measured, in the units of the file."""

    delay_ms: NotNegative
    delivery_ratio: Ratio = 1.0
    availability: Ratio = 1.0  # the part of all time in which the link works
    ms_per_kilobyte: NotNegative = 0.0  # what a link of limited rate adds for every 1000 bytes
    ms_per_kilobyte_deviation: NotNegative = 0.0  # of that, between messages

    @classmethod
    def of(cls, link: LinkEstimate) -> Estimate:
        return cls(
            delay_ms=link.delay_s * MS_PER_S,
            delivery_ratio=link.delivery_ratio,
            availability=link.availability,
            ms_per_kilobyte=link.s_per_byte * MS_PER_KILOBYTE,
            ms_per_kilobyte_deviation=link.deviation_s_per_byte * MS_PER_KILOBYTE,
        )

    def link_estimate(self) -> LinkEstimate:
        return LinkEstimate(
            delay_s=self.delay_ms / MS_PER_S,
            delivery_ratio=self.delivery_ratio,
            availability=self.availability,
            s_per_byte=self.ms_per_kilobyte / MS_PER_KILOBYTE,
            deviation_s_per_byte=self.ms_per_kilobyte_deviation / MS_PER_KILOBYTE,
        )


class Emulate(Conditions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Conditions put upon what leaves for a neighbour, since `started_at`."""

    delay_s: NotNegative = 0.0
    processing_s: NotNegative = 0.0  # what the receiver is made to add to messages and probes

    @classmethod
    def of(cls, conditions: Conditions, processing_s: float) -> Emulate:
        return cls(**asdict(conditions), processing_s=processing_s)

    def conditions(self) -> Conditions:
        """The same for the physics of a link, which knows of no processing."""
        return Conditions(*(getattr(self, field) for field in Conditions.__struct_fields__))


class Neighbour(_Table, frozen=True, kw_only=True):
    """A broker to have a link with. Of each pair the one whose name is smaller dials."""

    name: Name
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65_535)]  # its link_port
    estimate: Estimate | None = None
    emulate: Emulate | None = None
    # False: there is a link only while whoever has started this broker says so; see `live.app`.
    awaited: bool = True

    def known(self) -> LinkEstimate | None:
        return self.estimate.link_estimate() if self.estimate else None


class Member(_Table, frozen=True, kw_only=True):
    """A broker by which to join the overlay: it says its name, and where all the others are."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65_535)]  # its link_port

    def address(self) -> Address:
        return Address(self.host, self.port)


class Mqtt(_Table, frozen=True):
    """What clients may cost."""

    max_packet_bytes: Annotated[int, Meta(ge=128, le=8 << 20)] = 1 << 20  # a frame takes 16 MiB
    connect_within_s: Positive = 10.0  # from the connection to its CONNECT
    max_unsent_bytes: Annotated[int, Meta(ge=1024)] = 16 << 20  # beyond it a client loses messages
    max_connections: Annotated[int, Meta(ge=1)] = 10_000  # beyond it new ones are closed
    max_filters_bytes: Annotated[int, Meta(ge=1024)] = 4 << 20  # a client's; more are refused
    max_clients_bytes: Annotated[int, Meta(ge=1 << 20)] = 256 << 20  # of all clients together


class Log(_Table, frozen=True):
    """Topics whose messages this broker keeps for readers; see `live.logs.keeper`."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")]
    topic: str  # a topic filter
    keep_bytes: Annotated[int, Meta(ge=4096)] = 1 << 30  # beyond it the oldest eighth is removed
    keep_s: Positive = inf
    flush_s: Positive = 0.2  # messages reach the disk, and readers, this often
    fsync: bool = True  # whether what readers see has to survive a loss of power
    deadline_ms: Positive = inf  # of the log's own subscription, as are price and durable
    price: NotNegative = 1.0
    durable: bool = False


class BrokerFile(_Table, frozen=True):
    """What can stand in a file."""

    name: Name
    host: str = "127.0.0.1"  # where it listens
    mqtt_port: Port = 1883  # 0: any free one
    link_port: Port = 0  # for neighbours; 0: any free one
    address: str = ""  # host or host:port where others reach the link port; empty: host, as above
    neighbour: tuple[Neighbour, ...] = ()
    member: tuple[Member, ...] = ()  # to join by: the broker then chooses its links itself
    broker: Settings = Settings()
    policy: tuple[Policy, ...] = ()
    mqtt: Mqtt = Mqtt()
    log: tuple[Log, ...] = ()
    log_host: str = "127.0.0.1"  # for readers of logs: whoever reaches it can read all logs
    log_port: Port = 0  # for readers of logs; 0: any free one

    link_model: str = ""  # a file of `tidings learn`, for links without an estimate
    run: Annotated[str, Meta(pattern="^[A-Za-z0-9]")] = "live"  # names the run in the trace
    seed: int = 1  # of emulated chance
    incarnation: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0  # should grow; 0: by the clock
    started_at: float | None = None  # Unix time; emulated faults begin then, and never without it
    traces: str = "traces"  # folder
    store: str = ""  # folder for durable messages; empty: `store` in the folder of the traces
    logs: str = ""  # folder for logs; empty: `logs` in the folder of the traces
    flush_s: Positive = 1.0  # trace rows reach the disk this often

    @property
    def links_itself(self) -> bool:
        """Does this broker look for links, and take those of strangers?"""
        return bool(self.member) or self.broker.linking != "configured"

    @property
    def moves(self) -> bool:
        """May there be links to others than those that are awaited?"""
        return self.links_itself or not all(neighbour.awaited for neighbour in self.neighbour)

    def told_address(self, link_port: int) -> str:
        """Where others reach its links, as it tells them."""
        told = address_in(self.address, link_port) if self.address else None
        return str(told or Address(self.host, link_port))

    def store_file(self) -> Path:
        """Where this broker keeps its durable messages."""
        folder = Path(self.store) if self.store else Path(self.traces) / "store"
        return folder / f"{self.name}.journal"

    def log_folder(self, log: str) -> Path:
        """Where this broker keeps one of its logs."""
        folder = Path(self.logs) if self.logs else Path(self.traces) / "logs"
        return folder / self.name / log

    def known(self, source: str = "") -> dict[str, LinkEstimate | None]:
        """The first estimate of each link: as stated, as learned, or None."""
        learned: Mapping[tuple[str, str], LearnedLink] = {}
        if self.link_model:
            # Here, as a broker without a model need not hold Arrow in memory.
            from tidings.files.link_model import read_link_model

            where = source or self.name
            learned = read_link_model(Path(self.link_model), where, "link_model").links
        return {
            other.name: other.known()
            or ((link := learned.get((self.name, other.name))) and link.estimate())
            or None
            for other in self.neighbour
        }

    def settings(self) -> Settings:
        """What the broker itself is set to, with the policies of this file."""
        policies = tuple(policy.topic_policy() for policy in self.policy)
        return replace(self.broker, policies=policies)


class BrokerConfig(BrokerFile, frozen=True, omit_defaults=True):
    """What a broker runs with. Written to a file it has no source, so that it can be read back."""

    source: str = ""  # the file it was read from

    def __post_init__(self) -> None:
        """Refuses strategies that cannot run live, whether a file or a scenario names them."""
        check_strategies(self.broker, self.policy, self.source or self.name)


def check_strategies(broker: Settings, policies: Iterable[Policy], source: str) -> None:
    """A `ConfigError` for the first strategy that no live broker can follow."""
    named = [("broker.strategy", broker.strategy)]
    named += [("policy.strategy", policy.strategy) for policy in policies if policy.strategy]
    for field, strategy in named:
        if strategy in SIMULATOR_ONLY:
            accepted = (
                f"one of {', '.join(live_strategies())}; {strategy} runs in the simulator only "
                "(`tidings simulate`), as it must know what is going to fail"
            )
            raise ConfigError(source, field, strategy, accepted)
        if strategy not in live_strategies():
            raise ConfigError(source, field, strategy, one_of(live_strategies(), strategy))


def load(path: Path) -> BrokerConfig:
    """The configuration in a file."""
    return parse(read_toml(path), str(path))


def parse(document: dict[str, Any], source: str) -> BrokerConfig:
    """The configuration that a document describes."""
    check_kind(document, "a broker's configuration", source)
    if policies := value_at(document, "broker.policies"):
        accepted = "no such field; one table [[policy]] for each"
        raise ConfigError(source, "broker.policies", policies, accepted)
    config = BrokerConfig(**asdict(convert(document, BrokerFile, source, HIDDEN)), source=source)
    if config.member and value_at(document, "broker.linking") is None:
        config = replace(config, broker=replace(config.broker, linking=JOINING))
    for field, value, accepted in faults(config):
        raise ConfigError(source, field, value, accepted)
    config.settings().checked(source)
    return config
