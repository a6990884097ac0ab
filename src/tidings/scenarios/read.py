"""Which scenario is in a file? A value, checked as far as can be without setting it up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tidings.core.document import changed, convert, value_at
from tidings.core.errors import ConfigError
from tidings.files.document_kinds import check_kind
from tidings.files.toml import read_toml
from tidings.sim.courses.explicit import SETTABLE
from tidings.sim.scenario import Scenario

# Fields of the values behind a file that nobody sets in it.
NOT_IN_A_FILE = {
    "source": "no such field; it is the name of the file",
    "folder": "no such field; it is where the file is",
    "explicit": "no such field; it is what is set beside the file",
    "broker.policies": "no such field; one table [[policy]] for each",
}


def load(path: Path, changes: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario in a file, with some of its parameters replaced."""
    return parse(read_toml(path), str(path), str(path.parent), changes)


def parse(
    document: Mapping[str, Any], source: str, folder: str, changes: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario that a document describes, with some of its parameters replaced."""
    changes = changes or {}
    document = changed(document, changes)
    check_kind(document, "a scenario", source)
    for name, accepted in NOT_IN_A_FILE.items():
        if (value := value_at(document, name)) is not None:
            raise ConfigError(source, name, value, accepted)
    scenario = convert(document, Scenario, source, NOT_IN_A_FILE)
    explicit = tuple(sorted(SETTABLE & changes.keys()))
    scenario = msgspec.structs.replace(scenario, source=source, folder=folder, explicit=explicit)
    scenario.settings()
    return scenario
