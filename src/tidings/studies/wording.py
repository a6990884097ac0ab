"""How is a number said? Ratios as percentages, their differences in points, factors as times."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tidings.pipeline.transforms.metrics import AMOUNTS
from tidings.pipeline.transforms.traffic import RATES, RECEPTIONS

Form = Literal["value", "difference", "factor", "margin"]
X = float | str  # a place on the x axis; text where they are categories

SHARES = {"delivery_ratio", "on_time_ratio", "loss_ratio", "lateness_cdf", "delay_cdf"}
TITLES = {
    "delivery_ratio": "delivered",
    "on_time_ratio": "delivered in time",
    "loss_ratio": "lost",
    "packets_per_subscriber": "packets per subscriber",
    "earnings": "earnings",
    "message_number": "transmissions",
    "messages_received": "messages that brokers received",
    "control_bytes_per_s": "control traffic",
    "header_bytes_per_s": "headers of data",
    "payload_bytes_per_s": "payload of data",
    "delay_mean_s": "mean delay",
    "delay_p50_s": "median delay",
    "delay_p95_s": "95 % of delays below",
    "delay_p99_s": "99 % of delays below",
    "lateness_cdf": "share of late deliveries",
    "delay_cdf": "share of deliveries",
}


class Unit(NamedTuple):
    """How numbers of a metric are written."""

    name: str
    factor: float
    decimals: int


def unit(metric: str) -> Unit:
    if metric in SHARES:
        decimals = 3 if metric == "loss_ratio" else 2  # losses are compared in thousandths
        return Unit("%", 100, decimals)
    if metric in (*AMOUNTS, *RECEPTIONS):
        return Unit("", 1, 0)
    if metric in RATES:
        return Unit("kB/s", 0.001, 2)
    return Unit("ms", 1000, 1) if metric.endswith("_s") else Unit("", 1, 3)


def number_text(number: float, metric: str, form: Form = "value") -> str:
    """A number of a metric, with its unit."""
    if form == "factor":
        return f"{number:.3f} times"
    sign = "+" if form == "difference" else ""
    name, factor, decimals = unit(metric)
    if metric in SHARES and form != "value":
        name = "points"
    return f"{factor * number:{sign},.{decimals}f} {name}".rstrip()


def x_text(x: X) -> str:
    """A place on the x axis."""
    return x if isinstance(x, str) else f"{x:g}"
