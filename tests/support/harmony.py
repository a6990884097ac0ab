"""The load of Harmony's testbed, once for each version of Harmony, on topics of its own.

Publishers 1, 2, 3 are at brokers n2, n3, n4 and say topics t1, t2, t3; subscribers are those of the
paper's figure 3. A version is a strategy and whether its messages are durable. All versions in one
run meet the same weather, also that of the machine, and share one monitor.
"""

from __future__ import annotations

from collections.abc import Iterable

PUBLISHERS = {"t1": "n2", "t2": "n3", "t3": "n4"}
SUBSCRIBERS = (("n1", "t1"), ("n1", "t2"), ("n3", "t3"), ("n4", "t2"), ("n5", "t1"), ("n5", "t3"))
DEADLINE_MS = 50

VERSIONS = {
    "direct": {"strategy": "direct"},
    "persistent": {"strategy": "direct", "durable": True},
    "best-path": {"strategy": "best-path"},
    "qos-path": {"strategy": "qos-path"},
    "qos-multipath": {"strategy": "qos-multipath"},
}


def subscription(version: str, broker: str, topic: str) -> str:
    """The id of a subscription of this load."""
    return f"{broker}/{version}:{version}/{topic}"


def load(versions: Iterable[str], rate_per_s: float) -> str:
    """The tables of a scenario for these versions, as TOML."""
    tables: list[str] = []
    for version in versions:
        contract = VERSIONS[version]
        durable = str(contract.get("durable", False)).lower()
        tables.append(
            f'[[policy]]\ntopic = "{version}/#"\n'
            f'strategy = "{contract["strategy"]}"\ndurable = {durable}\n'
        )
        tables += [
            f'[[workload.publisher]]\nbroker = "{broker}"\ntopic = "{version}/{topic}"\n'
            f"rate_per_s = {rate_per_s}\n"
            for topic, broker in PUBLISHERS.items()
        ]
        tables += [
            f'[[workload.subscriber]]\nbroker = "{broker}"\nname = "{version}"\n'
            f'topic = "{version}/{topic}"\ndeadline_ms = {DEADLINE_MS}\n'
            for broker, topic in SUBSCRIBERS
        ]
    return "\n" + "\n".join(tables)
