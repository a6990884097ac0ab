"""What a person may set about strategies, and what a world lends to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tidings.core.ranges import Finite

# How long will a message take from one broker to another if it is sent at that instant? Infinitely
# long, if the link or the other broker fails. Only a simulator can tell.
Foresight = Callable[[str, str, float], float]


class DcrdOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`[broker.dcrd]`: the readings of delay-cognizant reliable delivery."""

    order: Literal["theorem-1", "exact"] = "exact"  # exact: a failed attempt costs what it costs
    filter: Literal["last-resort", "paper"] = "last-resort"  # of neighbours expected to be late
    # After a failure: only where known links may lead to the destination; paper: to everybody.
    search: Literal["pruned", "paper"] = "pruned"
    tolerance: Finite = 0.01  # a smaller change of delay (relative) or ratio is no news
    deadline_step_s: Finite = 0.0  # filter "paper" rounds deadlines up to this; 0: keeps them exact


class HarmonyOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`[broker.harmony]`: paths that are chosen at the source and follow the network."""

    recheck_s: Annotated[float, Meta(gt=0, le=1e9)] = 30.0  # how often a better path is sought
    # A path is left for one that is better by this part of its delay.
    improvement: Annotated[float, Meta(ge=0, lt=1)] = 0.2
    reroute: bool = False  # a broker that gets no answer sends by its next best path at once
    # Shortest paths among which several are chosen; more if none are disjoint.
    choices: Annotated[int, Meta(ge=2, le=1000)] = 10
    # For one destination, whatever availability is asked for.
    most_paths: Annotated[int, Meta(ge=1, le=8)] = 4
    failures: Literal["equal", "measured"] = "measured"  # of links and brokers; equal: all alike


class Options(Struct, frozen=True):
    """What a strategy is made with."""

    transmissions: int = 1  # m: times a parcel is sent to one neighbour before it is given up
    ack_timer: float = 2.0  # how long to wait for an answer, in expected link delays ...
    ack_slack_s: float = 0.010  # ... and this long beyond them
    dcrd: DcrdOptions = DcrdOptions()
    harmony: HarmonyOptions = HarmonyOptions()
    foresight: Foresight | None = None

    def timeout_s(self, delay_s: float) -> float:
        """How long to wait for the answer of a neighbour at this distance."""
        return self.ack_timer * delay_s + self.ack_slack_s
