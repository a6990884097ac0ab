"""Link models made by hand, and the files they stand in."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import asdict

from tidings.core.links.model import LearnedLink, model_schema


def a_link(source: str, target: str, **known: Any) -> LearnedLink:
    """A link of 30 ms on average that is always there; `known` replaces any of it."""
    usual: dict[str, Any] = {
        "samples": 100,
        "delay_mean_s": 0.030,
        "delay_variance_s2": 1e-4,
        "delay_shift_s": 0.010,
        "delay_shape": 4.0,
        "delay_scale_s": 0.005,
        "delivery_ratio": 1.0,
        "availability": 1.0,
        "outages": 0,
    }
    return LearnedLink(source=source, target=target, **(usual | known))


def model_table(links: Iterable[LearnedLink], slice_s: float) -> pa.Table:
    """The links as they stand in a file."""
    return pa.Table.from_pylist([asdict(link) for link in links], model_schema(slice_s))


def a_model_file(path: Path, *links: LearnedLink, slice_s: float = 10.0) -> Path:
    pq.write_table(model_table(links, slice_s), path)
    return path
