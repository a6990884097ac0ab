"""Who is on the x axis? The subscriptions that a study's scenario lists, under short names.

As Harmony writes them: `s5.t1` is what client s5 hears of the topic that ends in t1. Two
subscriptions that would have the same name go by their whole ids instead. Subscriptions that are
drawn differ from seed to seed, so they have no place on an axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidings.core.errors import ConfigError
from tidings.pipeline.sweep.grid import Spec
from tidings.sim.scenario import Scenario, Subscriber


def short_names(scenario: Scenario) -> dict[str, str]:
    """By the id of each listed subscription, in the order of the file."""
    named = {}
    for number, wish in enumerate(scenario.workload.subscriber, start=1):
        named[wish.id(number)] = _short(wish.id(number), wish)
    return named


def labels_of(scenarios: Mapping[str, Scenario], spec: Spec) -> dict[str, dict[str, str]]:
    """By setting: the label of each subscription, which means the same one in every setting."""
    names = {setting: short_names(scenario) for setting, scenario in scenarios.items()}
    if not all(names.values()):
        accepted = "a scenario that lists subscribers, as drawn ones differ from seed to seed"
        raise ConfigError(spec.source, "scenario", str(spec.scenario), accepted)
    whole = {id: name for each in names.values() for id, name in each.items()}
    times = Counter(whole.values())
    return {
        setting: {id: name if times[name] == 1 else id for id, name in each.items()}
        for setting, each in names.items()
    }


def _short(id: str, wish: Subscriber) -> str:
    client = id.removeprefix(f"{wish.broker}/").removesuffix(f":{wish.topic}")
    return f"{client}.{wish.topic.rpartition('/')[2]}"
