"""What a run of a scenario takes place on: made once, by `scenarios.set_up`, and then only read.

A scenario says how an overlay is to be drawn; a setup has it, with the courses of its links, its
outages and its load. Both worlds run a setup.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tidings.broker.settings import Settings
from tidings.core.links.conditions import Conditions
from tidings.core.links.estimates import LinkEstimate
from tidings.core.topology import Topology
from tidings.sim.courses.link_course import LinkCourses
from tidings.sim.faults import Outages, draw_outages
from tidings.sim.moves import Move, draw_moves, ever_linked
from tidings.sim.network import conditions, estimates
from tidings.sim.scenario import Live, Scenario
from tidings.sim.workload import Load, draw_load


class Setup(Struct, frozen=True, dict=True):
    """One scenario, ready to run. What a use of it may not need is made when it is first asked for:
    a sweep names thousands of setups and runs few of them here."""

    scenario: Scenario
    overlay: Topology  # with the delays of the courses
    courses: LinkCourses
    settings: Settings  # of every broker

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The links that come and go, where the network does not hold still."""
        absences = draw_outages(self.scenario, self.overlay, self.courses).absences
        return draw_moves(self.scenario, self.overlay, absences)

    @cached_property
    def ever_linked(self) -> Topology:
        """The overlay with all links that are there at some time."""
        return ever_linked(self.scenario, self.overlay, self.moves)

    @cached_property
    def outages(self) -> Outages:
        return draw_outages(self.scenario, self.ever_linked, self.courses)

    @cached_property
    def load(self) -> Load:
        return draw_load(self.scenario, self.overlay)

    @cached_property
    def conditions(self) -> dict[tuple[str, str], Conditions]:
        """Of each link that is there at some time, by its two ends in the overlay's order."""
        return conditions(self.scenario, self.ever_linked, self.courses, self.outages)

    def estimates(self, broker: str) -> dict[str, LinkEstimate | None]:
        """What a broker is told of its links before it starts, or when they come up."""
        return estimates(self.scenario, self.ever_linked, self.courses, broker)

    @cached_property
    def digest(self) -> str:
        """The name of the result: whatever could change it is in here."""
        courses = sorted(self.courses.links.items())
        scenario = self.scenario
        links = replace(scenario.links, model="", replay="")  # as the courses say all
        plain = replace(scenario, source="", folder="", live=Live(), links=links)
        written = msgspec.to_builtins(plain)
        del written["explicit"]
        text = msgspec.json.encode((self.overlay, written, courses), order="sorted")
        return sha256(text).hexdigest()[:16]
