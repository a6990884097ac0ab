"""What was learned about links? A file that one command writes and three read.

`tidings learn` makes it of measurements; brokers start from it, and the simulator makes a network
of it. A row is one direction of a link, as its first end saw it. What the measurements do not show
is absent, and the column `..._reason` beside it says why. The file is Parquet; its kind and its
version stand in the metadata of its schema, and a file of another kind or version is not read.

Delays are one-way: half a round trip. They are distributed as `shift + gamma(shape, scale)`, with
the mean of the measurements, times the factor of the hour where such factors are known.
`persistence` is the part of a deviation from the mean that is left after a slice of time, once the
hour is accounted for.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, get_args, get_type_hints

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import fields

from tidings.core.links.estimates import LinkEstimate

KIND = "tidings link model"
VERSION = 2
HOURS = 24
BYTES = 1000  # of a kilobyte


class LearnedLink(Struct, frozen=True, kw_only=True):
    """One direction of one link."""

    source: str
    target: str
    samples: int  # round trips
    delay_mean_s: float | None = None
    delay_variance_s2: float | None = None
    delay_shift_s: float | None = None
    delay_shape: float | None = None
    delay_scale_s: float | None = None
    delay_fit_distance: float | None = None  # Kolmogorov's, between the gamma and the samples
    delay_reason: str | None = None
    persistence: float | None = None
    persistence_reason: str | None = None
    delivery_ratio: float | None = None  # one way, while the link was in order
    delivery_reason: str | None = None
    transfer_mean_s_per_kilobyte: float | None = None
    transfer_variance_s2_per_kilobyte2: float | None = None
    transfer_reason: str | None = None
    availability: float | None = None  # part of the time that was watched
    availability_reason: str | None = None
    outages: int | None = None  # seen
    outage_mean_s: float | None = None
    outage_reason: str | None = None
    hourly_factors: tuple[float, ...] | None = None  # of the mean delay, from 0 h UTC
    hourly_reason: str | None = None
    group: int | None = None  # links of one group fail together
    group_reason: str | None = None

    def estimate(self) -> LinkEstimate | None:
        """What a broker may believe of the link before it has measured anything."""
        if self.delay_mean_s is None:
            return None
        return LinkEstimate(
            self.delay_mean_s,
            1.0 if self.delivery_ratio is None else self.delivery_ratio,
            (self.transfer_mean_s_per_kilobyte or 0.0) / BYTES,
            (self.transfer_variance_s2_per_kilobyte2 or 0.0) ** 0.5 / BYTES,
            1.0 if self.availability is None else self.availability,
        )


RATIOS = ("persistence", "delivery_ratio", "availability")
AMOUNTS = tuple(
    field.name
    for field in fields(LearnedLink)
    if "_s" in field.name and not field.name.endswith(("_reason", "samples"))
)


class LinkModel(Struct, frozen=True):
    """All links of a file, by their two ends."""

    links: dict[tuple[str, str], LearnedLink]
    slice_s: float  # for which a delay holds

    def hosts(self) -> list[str]:
        return sorted({end for ends in self.links for end in ends})


def model_schema(slice_s: float) -> pa.Schema:
    """The Arrow schema of a file, derived from the annotations of its rows."""
    hints = get_type_hints(LearnedLink)
    columns = [_column(field.name, hints[field.name]) for field in fields(LearnedLink)]
    metadata = {"kind": KIND, "version": str(VERSION), "slice_s": repr(slice_s)}
    return pa.schema(columns, metadata=metadata)


def link_model(table: pa.Table) -> LinkModel:
    """The model that a file's table is; a `ValueError` says what is wrong with it."""
    metadata = table.schema.metadata or {}
    if metadata.get(b"kind") != KIND.encode():
        raise ValueError("this Parquet file is none")
    if metadata.get(b"version") != str(VERSION).encode():
        written = metadata.get(b"version", b"none").decode()
        raise ValueError(f"its version is {written}, read is {VERSION}; learn it again")
    slice_s = float(metadata.get(b"slice_s", b"nan"))
    if not (isfinite(slice_s) and slice_s > 0):
        raise ValueError("its slice_s is no length of time")
    schema = model_schema(slice_s)
    if missing := set(schema.names) - set(table.schema.names):
        raise ValueError(f"the column {min(missing)} is missing")
    links = [_checked(link) for link in learned_links(table.select(schema.names).cast(schema))]
    if not links:
        raise ValueError("there is no link in it")
    return LinkModel({(link.source, link.target): link for link in links}, slice_s)


def learned_links(table: pa.Table) -> list[LearnedLink]:
    """The rows of a table with exactly the columns of a model."""
    return [LearnedLink(**_of_tuples(row)) for row in table.to_pylist()]


def _checked(link: LearnedLink) -> LearnedLink:
    """Numbers that no link can have would break a run much later."""
    ends, factors = f"{link.source}-{link.target}", link.hourly_factors
    ratios = [value for name in RATIOS if (value := getattr(link, name)) is not None]
    amounts = [value for name in AMOUNTS if (value := getattr(link, name)) is not None]
    if not all(0 <= ratio <= 1 for ratio in ratios):
        raise ValueError(f"a ratio of the link {ends} is not between 0 and 1")
    if not all(isfinite(value) and value >= 0 for value in (*amounts, *(factors or ()))):
        raise ValueError(f"a number of the link {ends} is negative or not finite")
    if factors is not None and len(factors) != HOURS:
        raise ValueError(f"the hourly factors of the link {ends} are not {HOURS}")
    return link


def _of_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}


def _column(name: str, hint: Any) -> pa.Field:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] or [hint]
    return pa.field(name, _ARROW.get(kinds[0], _FACTORS), nullable=len(get_args(hint)) > 1)


_ARROW = {float: pa.float64(), int: pa.int64(), str: pa.string()}
_FACTORS = pa.list_(pa.field("item", pa.float64(), nullable=False))
