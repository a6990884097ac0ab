"""How is a number said? Ratios as percentages, their differences in points, factors as times."""

from __future__ import annotations

from typing import Literal

Form = Literal["value", "difference", "factor", "margin"]

SHARES = {"delivery_ratio", "on_time_ratio", "lateness_cdf"}
AMOUNTS = {"earnings", "message_number"}
TITLES = {
    "delivery_ratio": "delivered",
    "on_time_ratio": "delivered in time",
    "packets_per_subscriber": "packets per subscriber",
    "earnings": "earnings",
    "message_number": "transmissions",
    "delay_p50_s": "median delay",
    "delay_p95_s": "95 % of delays below",
    "delay_p99_s": "99 % of delays below",
    "lateness_cdf": "share of late deliveries",
}


def shown(number: float, metric: str, form: Form = "value") -> str:
    """A number of a metric, with its unit."""
    if form == "factor":
        return f"{number:.3f} times"
    sign = "+" if form == "difference" else ""
    if metric in SHARES:
        unit = " %" if form == "value" else " points"
        return f"{100 * number:{sign}.2f}{unit}"
    if metric in AMOUNTS:
        return f"{number:{sign},.0f}"
    if metric.endswith("_s"):
        return f"{1000 * number:{sign}.1f} ms"
    return f"{number:{sign}.3f}"
