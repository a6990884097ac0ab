"""What may be asked of `format("tidings")`? Options, checked as a whole, before anything is read.

Spark hands every option over as text; a misspelt name or a bad value is an error that says what is
accepted, not a silent default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from tidings.core.errors import ConfigError, FilterError, PredicateError
from tidings.core.predicate import parse
from tidings.core.ranges import NotNegative, Positive
from tidings.core.topic import check_filter
from tidings.core.trace import TABLES

SOURCE = 'format("tidings")'
OF_SPARK = {"path", "checkpointlocation", "queryname"}  # come with ours, and are not for us

RowCount = Annotated[int, Meta(ge=1)]
Offset = Annotated[str, Meta(pattern=r"^(oldest|latest|[0-9]{1,18})\Z")]


class LogOptions(Struct, frozen=True, rename={"start": "from", "end": "until"}):
    """How to read a log."""

    url: str  # tidings://HOST:PORT/LOG
    topic: str = ""  # a topic filter; empty: all that is logged
    where: str = ""  # a predicate on attributes
    deadline_ms: Positive = inf  # the reader's own; the tighter one holds
    price: NotNegative = 1.0  # what a message in time is worth to the reader
    late: Literal["keep", "drop"] = "keep"
    start: Offset = "oldest"  # of a batch, or of a stream without a checkpoint
    end: Offset = "latest"  # of a batch
    on_loss: Literal["fail", "skip"] = "fail"
    rows_per_partition: RowCount = 100_000
    max_rows_per_batch: RowCount = 1_000_000
    patience_s: NotNegative = 10.0


class TraceOptions(Struct, frozen=True):
    """How to read stored traces."""

    traces: str  # folder
    table: str


class PublishOptions(Struct, frozen=True):
    """How to publish."""

    url: str  # mqtt://HOST[:PORT]
    patience_s: NotNegative = 10.0


AnyOptions = TypeVar("AnyOptions", bound=Struct)


def options_as(kind: type[AnyOptions], given: Mapping[str, str]) -> AnyOptions:
    """The options as a value; whatever is wrong with them is named."""
    ours = {name: text for name, text in given.items() if name not in OF_SPARK}
    accepted = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name, text in ours.items():
        if name not in accepted:
            raise ConfigError(SOURCE, name, text, f"one of the options {', '.join(accepted)}")
    try:
        return msgspec.convert(ours, kind, strict=False)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        missing = re.search(r"required field `(.+)`", problem)
        field = missing[1] if missing else where.rstrip("`")
        raise ConfigError(
            SOURCE, field, ours.get(field), problem.removeprefix("Expected ")
        ) from None


def log_options(given: Mapping[str, str]) -> LogOptions:
    options = options_as(LogOptions, given)
    try:
        if options.topic:
            check_filter(options.topic)
        if options.where:
            parse(options.where)
    except FilterError as fault:
        accepted = f"a topic filter ({fault.problem})"
        raise ConfigError(SOURCE, "topic", options.topic, accepted) from None
    except PredicateError as fault:
        accepted = f"a predicate on attributes ({fault.problem})"
        raise ConfigError(SOURCE, "where", options.where, accepted) from None
    return options


def trace_options(given: Mapping[str, str]) -> TraceOptions:
    options = options_as(TraceOptions, given)
    if options.table not in TABLES:
        raise ConfigError(SOURCE, "table", options.table, f"one of {', '.join(TABLES)}")
    return options
