"""Which x does a figure have? In each setting, known before anything runs, so claims are checked.

A parameter of the grid has its values, a distribution the places where it is read, time the
stretches in which messages are published, and subscriptions have their labels, in the order of the
scenario.
"""

from __future__ import annotations

from math import ceil, floor

from msgspec import Struct
from msgspec.structs import replace

from tidings.core.errors import ConfigError
from tidings.pipeline.sweep.grid import Spec, points_of
from tidings.pipeline.sweep.parameters import Setting
from tidings.sim.scenario import Scenario
from tidings.studies.about import SUBSCRIBER, TIME, About
from tidings.studies.subscribers import labels_of, short_names
from tidings.studies.wording import X

MAX_STRETCHES = 10_000  # more than a figure has dots in a row: a slip


class Axis(Struct, frozen=True):
    """The x axis of a figure."""

    xs: dict[str, tuple[X, ...]]  # by setting
    labels: dict[str, str]  # of subscriptions, where the study names any; else empty


def axis_of(about: About, spec: Spec) -> Axis:
    settings = tuple(spec.settings) or ("",)
    if about.x != SUBSCRIBER and about.subscriber is None:
        return Axis({setting: _xs(about, spec, setting) for setting in settings}, {})
    by_setting = labels_of({name: scenario_of(spec, name) for name in settings}, spec)
    labels = {id: label for each in by_setting.values() for id, label in each.items()}
    if about.x == SUBSCRIBER:
        return Axis({name: tuple(each.values()) for name, each in by_setting.items()}, labels)
    for each in by_setting.values():
        if about.subscriber not in each.values():
            accepted = f"one of {', '.join(each.values())}"
            raise ConfigError(spec.source, "study.subscriber", about.subscriber, accepted)
    return Axis({setting: _xs(about, spec, setting) for setting in settings}, labels)


def _xs(about: About, spec: Spec, setting: str) -> tuple[X, ...]:
    if places := about.places():
        return places
    if about.x == TIME:
        return _stretches(scenario_of(spec, setting), about.stretch_s(), spec.source)
    return tuple(map(float, spec.grid_of(setting)[about.x]))


def _stretches(scenario: Scenario, length_s: float, source: str) -> tuple[float, ...]:
    """The beginnings of all in which something may be published."""
    run = scenario.run
    first = floor(run.start_s / length_s)
    end = max(ceil((run.start_s + run.seconds) / length_s), first + 1)
    if end - first > MAX_STRETCHES:
        accepted = f"a length that gives at most {MAX_STRETCHES} stretches of {run.seconds:g} s"
        raise ConfigError(source, "study.bin_s", length_s, accepted)
    return tuple(number * length_s for number in range(first, end))


def deadlines_of(about: About, spec: Spec) -> list[float]:
    """Of the subscriptions that are listed, or of the one that the figure is about; those that are
    drawn differ from seed to seed. In seconds."""
    found = []
    for setting in tuple(spec.settings) or ("",):
        scenario = scenario_of(spec, setting)
        for (_, label), wish in zip(
            short_names(scenario).items(), scenario.workload.subscriber, strict=True
        ):
            if about.subscriber in (None, label):
                found.append(wish.contract().deadline_s)
    return found


def scenario_of(spec: Spec, setting: str) -> Scenario:
    """One of a setting's scenarios: in what a figure needs, all of them agree."""
    first = {name: values[:1] for name, values in spec.grid_of(setting).items()}
    changes = {setting: Setting(spec.settings[setting].changes, {})} if setting else {}
    (point,) = points_of(replace(spec, grid=first, settings=changes))
    return point.scenario
