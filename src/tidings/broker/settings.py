"""Everything about a broker that a person may set; the same in a scenario and in a live broker."""

from __future__ import annotations

from math import inf
from typing import Literal

from msgspec import Struct

from tidings.core.contract import TopicPolicy
from tidings.core.errors import ConfigError
from tidings.core.trace import Level
from tidings.routing import ROUTERS
from tidings.routing.options import DcrdOptions, HarmonyOptions
from tidings.scheduling import POLICIES
from tidings.scheduling.options import BenefitOptions


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    strategy: str = "d-tree"  # name in ROUTERS, for messages whose contract names none
    scheduling: str = "fifo"  # name in POLICIES, for messages whose contract names none

    transmissions: int = 1  # m: times a parcel is sent to one neighbour before it is given up
    ack_timer: float = 2.0  # timeout in expected link delays (pinned estimates): there and back
    ack_slack_s: float = 0.010  # added to it for what both ends need to answer
    exhausted: Literal["drop", "retry"] = "drop"  # what becomes of a parcel that has no way left
    retry_every_s: float = 1.0  # pause before a parcel without a way tries again, if it may
    waiting_parcels: int = 100_000  # bound of those that pause, durable ones apart
    queue_parcels: int = 10_000  # bound of each link's queue; what comes then is dropped
    queue_bytes: int = 67_108_864  # the other bound of each link's queue
    window_bytes: int = 4_194_304  # unacknowledged bytes per link, at most; less on a slow one

    estimates: Literal["pinned", "measured"] = "measured"  # pinned: the configured delays, for ever
    probe_every_s: float = 5.0
    probe_timeout_s: float = 1.0
    probes_missed: int = 3  # in a row, until the link counts as down
    delay_weight: float = 0.25  # of a new sample in the mean delay
    loss_weight: float = 0.05  # of a new probe outcome in the delivery ratio
    availability_weight: float = 0.001  # of the same in the long run: an hour or two of probes
    advertise_every_s: float = 10.0  # how often estimates are told; great changes sooner
    advertise_change: float = 0.1  # a change smaller than this part of the old value is not told
    report_lifetime_s: float = 180.0  # what others told and nobody renewed is forgotten after it
    batch_s: float = 0.010  # changes of interests and links wait this long for company

    remember_s: float = 120.0  # how long repeats are recognised
    trace: Level = "outcomes"
    dcrd: DcrdOptions = DcrdOptions()
    harmony: HarmonyOptions = HarmonyOptions()
    benefit: BenefitOptions = BenefitOptions()
    policies: tuple[TopicPolicy, ...] = ()

    def checked(self, source: str) -> Settings:
        """Itself, if a broker can run with it."""
        for field, holds, accepted in (
            ("strategy", self.strategy in ROUTERS, f"one of {', '.join(sorted(ROUTERS))}"),
            ("scheduling", self.scheduling in POLICIES, f"one of {', '.join(sorted(POLICIES))}"),
            ("transmissions", self.transmissions >= 1, "a whole number from 1"),
            ("retry_every_s", self.retry_every_s > 0, "a positive number of seconds"),
            ("waiting_parcels", self.waiting_parcels >= 1, "a whole number from 1"),
            ("queue_parcels", self.queue_parcels >= 1, "a whole number from 1"),
            ("queue_bytes", self.queue_bytes >= 1, "a whole number from 1"),
            ("window_bytes", self.window_bytes >= 1, "a whole number from 1"),
            ("ack_timer", self.ack_timer > 0, "a positive number of link delays"),
            ("ack_slack_s", self.ack_slack_s >= 0, "a number of seconds from 0"),
            ("probe_every_s", self.probe_every_s > 0, "a positive number of seconds"),
            ("probe_timeout_s", self.probe_timeout_s > 0, "a positive number of seconds"),
            ("probes_missed", self.probes_missed >= 1, "a whole number from 1"),
            ("delay_weight", 0 < self.delay_weight <= 1, "a number above 0, up to 1"),
            ("loss_weight", 0 < self.loss_weight <= 1, "a number above 0, up to 1"),
            ("availability_weight", 0 < self.availability_weight <= 1, "a number above 0, up to 1"),
            ("report_lifetime_s", self.report_lifetime_s > 0, "a positive number of seconds"),
            ("advertise_every_s", self.advertise_every_s > 0, "a positive number of seconds"),
            ("advertise_change", self.advertise_change >= 0, "a number from 0"),
            ("batch_s", self.batch_s >= 0, "a number of seconds from 0"),
            ("remember_s", self.remember_s > 0, "a positive number of seconds"),
        ):
            if not holds:
                raise ConfigError(source, f"broker.{field}", getattr(self, field), accepted)
        for field in ("tolerance", "deadline_step_s"):
            if not 0 <= (value := getattr(self.dcrd, field)) < inf:
                raise ConfigError(source, f"broker.dcrd.{field}", value, "a number from 0")
        self._check_harmony(source)
        for field, most in (("weight", 1.0), ("unlikely", 1.0), ("postponement", inf)):
            if not 0 <= (value := getattr(self.benefit, field)) <= most or value == inf:
                accepted = "a number from 0" + (" to 1" if most == 1.0 else "")
                raise ConfigError(source, f"broker.benefit.{field}", value, accepted)
        for policy in self.policies:
            policy.contract.checked(f"{source}: policy {policy.topic}")
            for field, known in (("strategy", ROUTERS), ("scheduling", POLICIES)):
                named = getattr(policy.contract, field)
                if named and named not in known:
                    accepted = f"one of {', '.join(sorted(known))}"
                    raise ConfigError(source, f"policy.{field}", named, accepted)
        return self

    def _check_harmony(self, source: str) -> None:
        harmony = self.harmony
        for field, holds, accepted in (
            ("recheck_s", 0 < harmony.recheck_s < inf, "a positive number of seconds"),
            ("improvement", 0 <= harmony.improvement < 1, "a number from 0 to below 1"),
            ("choices", 2 <= harmony.choices <= 1000, "a whole number from 2 to 1000"),
            ("most_paths", 1 <= harmony.most_paths <= 8, "a whole number from 1 to 8"),
        ):
            if not holds:
                value = getattr(harmony, field)
                raise ConfigError(source, f"broker.harmony.{field}", value, accepted)
