"""Link models made by hand, and the files they stand in."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidings.core.links.model import LearnedLink, model_table


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


def a_model_file(path: Path, *links: LearnedLink, slice_s: float = 10.0) -> Path:
    pq.write_table(model_table(links, slice_s), path)
    return path
