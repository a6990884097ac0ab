"""Everything about a broker that a person may set; the same in a scenario and in a live broker."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from tidings.core.contract import Contract, TopicPolicy
from tidings.core.document import convert
from tidings.core.errors import ConfigError, one_of
from tidings.core.ranges import Count, NotNegative, Positive, Weight, Whole
from tidings.core.trace import Level
from tidings.linking import LINKERS
from tidings.linking.options import LinkingOptions
from tidings.routing import CARRY_OPEN, ROUTERS
from tidings.routing.options import DcrdOptions, HarmonyOptions
from tidings.scheduling import COUNTING, POLICIES
from tidings.scheduling.options import BenefitOptions


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    strategy: str = "d-tree"  # name in ROUTERS, for messages whose contract names none
    scheduling: str = "fifo"  # name in POLICIES, for messages whose contract names none
    linking: str = "configured"  # name in LINKERS: whom to be linked with
    # Who hears what is asked for at a broker: all, or those within so many hops. Then messages are
    # open: they are delivered wherever somebody wants them, as far as their strategy takes them.
    interests: Literal["everywhere"] | Whole = "everywhere"

    transmissions: Count = 1  # m: times a parcel is sent to one neighbour before it is given up
    ack_timer: Positive = 2.0  # timeout in expected link delays (pinned estimates): there and back
    ack_slack_s: NotNegative = 0.010  # added to it for what both ends need to answer
    exhausted: Literal["retry", "drop"] = "retry"  # what becomes of a parcel that has no way left
    retry_every_s: Positive = 1.0  # pause before a parcel without a way tries again, if it may
    waiting_parcels: Count = 100_000  # bound of those that pause, durable ones apart
    waiting_bytes: Count = 268_435_456  # the other bound; of durable ones, too
    queue_parcels: Count = 10_000  # bound of each link's queue; publishers are slowed at half of it
    queue_bytes: Count = 67_108_864  # the other bound of each link's queue
    window_bytes: Count = 4_194_304  # unacknowledged bytes per link, at most; less on a slow one

    estimates: Literal["pinned", "measured"] = "measured"  # pinned: the configured delays, for ever
    probe_every_s: Positive = 5.0
    probe_timeout_s: Positive = 1.0
    probes_missed: Count = 3  # in a row, until the link counts as down
    suspect_after_s: Positive = 1.0  # of silence, though asked; inf: only missed probes tell
    grace_s: NotNegative = 0.050  # for what is under way when one answer is missing; 0: none
    delay_weight: Weight = 0.25  # of a new sample in the mean delay
    delay_window_s: NotNegative = 0.5  # whose shortest round trip is a sample; 0: each is one
    least_delay_s: NotNegative = 0.005  # what is told of a shorter link: hosts differ by more
    loss_weight: Weight = 0.05  # of a new probe outcome in the delivery ratio
    availability_weight: Weight = 0.001  # of the same in the long run: an hour or two of probes
    advertise_every_s: Positive = 10.0  # how often estimates are told; great changes sooner
    advertise_change: NotNegative = 0.1  # a change by less than this part of the value is not told
    report_lifetime_s: Positive = 180.0  # what others told and nobody renewed is forgotten after it
    unheard_s: Positive = 86_400.0  # durable wishes of a broker that is not heard are kept so long
    batch_s: NotNegative = 0.010  # changes of interests and links wait this long for company

    remember_s: Positive = 120.0  # how long repeats are recognised
    late_takers_s: NotNegative = 30.0  # durable messages wait so long for takers after a restart
    trace: Level = "outcomes"
    dcrd: DcrdOptions = DcrdOptions()
    harmony: HarmonyOptions = HarmonyOptions()
    benefit: BenefitOptions = BenefitOptions()
    linker: LinkingOptions = LinkingOptions()
    policies: tuple[TopicPolicy, ...] = ()

    def checked(self, source: str) -> Settings:
        """Itself, if a broker can run with it, also when no document was read to make it."""
        convert({"broker": to_builtins(replace(self, policies=()))}, _Document, source)
        _check_names("broker", self, source)
        if self.linking not in LINKERS:
            accepted = one_of(sorted(LINKERS), self.linking)
            raise ConfigError(source, "broker.linking", self.linking, accepted)
        self._check_open("broker.strategy", self.strategy, source)
        for policy in self.policies:
            policy.contract.checked(f"{source}: policy {policy.topic}")
            _check_names("policy", policy.contract, source)
            self._check_open("policy.strategy", policy.contract.strategy or self.strategy, source)
        return self

    @property
    def counts_takers(self) -> bool:
        """Whether some policy asks how many want a message."""
        named = {self.scheduling, *(policy.contract.scheduling for policy in self.policies)}
        return not COUNTING.isdisjoint(named)

    @property
    def is_open(self) -> bool:
        """Are messages open, as not all brokers hear what is asked for?"""
        return self.interests != "everywhere"

    def _check_open(self, field: str, strategy: str, source: str) -> None:
        if self.is_open and strategy not in CARRY_OPEN:
            accepted = f"{one_of(sorted(CARRY_OPEN), strategy)}, as broker.interests is a number"
            raise ConfigError(source, field, strategy, accepted)


class _Document(Struct):
    """Settings in the place where files have them, so that errors name it."""

    broker: Settings


def _check_names(table: str, named: Settings | Contract, source: str) -> None:
    """What types cannot say: names of what exists. A contract may leave them empty."""
    for field, known in (("strategy", ROUTERS), ("scheduling", POLICIES)):
        name = getattr(named, field)
        if name not in known and (name or table == "broker"):
            raise ConfigError(source, f"{table}.{field}", name, one_of(sorted(known), name))
