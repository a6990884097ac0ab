"""What stands in the model of each link? The figures of all parts, and reasons for what is absent.

Everything is done by columns: a model may have hundreds of thousands of rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.links.model import model_schema
from tidings.pipeline.learn.measurements import InputKind
from tidings.pipeline.transforms.links.groups import BETWEEN, LEAST_OUTAGES
from tidings.pipeline.transforms.links.samples import LINK

SILENT = "no answer told a round trip"
NO_SIZES = "a table of round trips has no sizes"
NO_CLOCK = "a table of round trips has no clock"
NO_MESSAGE = "no message was acknowledged"
FEW_OUTAGES = f"fewer than {LEAST_OUTAGES} outages were seen"
APART = "its outages do not coincide with those of another link"


def figures(links: DataFrame, parts: list[DataFrame], kind: InputKind) -> DataFrame:
    """One row per link: its columns in all parts, with reasons. `links` has a row for every link
    that was asked, whether it ever answered or not."""
    for part in parts:
        links = links.join(part, list(LINK), "left")
    silent = F.col("samples").isNull()
    told = {
        name: F.when(silent, SILENT).otherwise(F.col(name))
        for name in ("delay_reason", "persistence_reason", "hourly_reason")
    }
    unsized = F.coalesce("transfer_reason", F.lit(NO_MESSAGE))
    told["transfer_reason"] = F.when(F.col("transfer_mean_s_per_kilobyte").isNull(), unsized)
    if kind == "table":
        told |= {"transfer_reason": F.lit(NO_SIZES), "hourly_reason": F.lit(NO_CLOCK)}
    return links.withColumns(told | {"samples": F.coalesce("samples", F.lit(0))})


def with_reasons_once(figures: pa.Table) -> pa.Table:
    """The figures with each reason's text in memory once, and a number for each link that has it.
    As texts they would be three quarters of all memory that the figures take."""
    for place, name in enumerate(figures.column_names):
        if name.endswith("_reason"):
            figures = figures.set_column(place, name, figures[name].dictionary_encode())
    return figures


def model_rows(figures: pa.Table, groups: pa.Table, slice_s: float) -> pa.Table:
    """The table of the model's file, in the order of its links; `groups` has the number of each
    link that is in one (link, group)."""
    figures = figures.sort_by([(end, "ascending") for end in LINK])
    ends = [figures[end] for end in LINK]
    link = pc.binary_join_element_wise(
        pc.min_element_wise(*ends), pc.max_element_wise(*ends), BETWEEN
    )
    place = pc.index_in(link, value_set=groups["link"].combine_chunks())
    group = groups["group"].combine_chunks().take(place)
    several = pc.greater_equal(pc.fill_null(figures["outages"], 0), LEAST_OUTAGES)
    reason = pc.if_else(several, APART, FEW_OUTAGES)
    columns = dict(zip(figures.column_names, map(_numbers, figures.columns), strict=True))
    columns["group"] = group
    columns["group_reason"] = pc.if_else(pc.is_valid(group), pa.scalar(None, pa.string()), reason)
    schema = model_schema(slice_s)
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without NaN: what cannot be computed is absent."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
