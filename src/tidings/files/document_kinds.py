"""Which command is a file for? Its fields tell, and whoever mixes files up is told.

A field is listed for one kind only; what several have, such as `broker`, tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tidings.core.errors import TidingsError

Kind = Literal["a scenario", "a broker's configuration", "a sweep"]


class Mark(NamedTuple):
    """How a kind of file is known, and what takes it."""

    fields: frozenset[str]
    taken_by: str  # commands


MARKS: dict[Kind, Mark] = {
    "a scenario": Mark(
        frozenset({"topology", "links", "workload", "faults", "live"}),
        "`tidings simulate` and `tidings up`",
    ),
    "a broker's configuration": Mark(
        frozenset({"name", "host", "mqtt_port", "link_port", "neighbour", "mqtt", "log", "traces"}),
        "`tidings broker`",
    ),
    "a sweep": Mark(
        frozenset({"scenario", "grid", "setting", "quick", "study", "claim"}),
        "`tidings sweep` and, with a [study], `tidings study run`",
    ),
}


def check_kind(document: Mapping[str, Any], wanted: Kind, source: str) -> None:
    """A `TidingsError` if the file is of another kind than this one, by most of its fields."""
    counts = {kind: len(mark.fields & document.keys()) for kind, mark in MARKS.items()}
    found = max(counts, key=lambda kind: counts[kind])
    if counts[found] > counts[wanted]:
        raise TidingsError(
            f"{source} is {found}, for {MARKS[found].taken_by}; here {wanted} is needed."
        )
