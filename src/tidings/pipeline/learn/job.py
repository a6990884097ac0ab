"""What do measurements teach about links? Read, transform, write: a link model.

The input is a trace folder of level `hops`, of either world, or a table of round trips (columns
slice, source, target, rtt_ms). The model is learned from all of it; how well it predicts is tried
by learning from the first part of the time and predicting the rest.

A file at which Spark fails is looked for, left out and named; rows that were gathered meanwhile are
found in their new place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from tidings.core.errors import ConfigError, TidingsError
from tidings.core.links.model import LearnedLink, learned_links
from tidings.files.folders import replaced
from tidings.pipeline.analyse.job import persisted
from tidings.pipeline.analyse.spark_settings import is_tiny, settings_for_little, temporary_settings
from tidings.pipeline.file_retry import spark_error, with_file_retry
from tidings.pipeline.learn.measurements import TABLE_COLUMNS, Input, InputKind, with_files
from tidings.pipeline.learn.model_rows import figures, model_rows, with_reasons_once
from tidings.pipeline.trace_frames import read_intake
from tidings.pipeline.transforms.links.coincidence import group_numbers
from tidings.pipeline.transforms.links.delay import (
    delay_figures,
    delays,
    hourly,
    with_levels,
)
from tidings.pipeline.transforms.links.groups import patterns
from tidings.pipeline.transforms.links.history import (
    reliability,
    table_histories,
    trace_histories,
)
from tidings.pipeline.transforms.links.prediction import (
    errors,
    persistence,
    prediction_table,
    slices,
)
from tidings.pipeline.transforms.links.samples import (
    changes,
    table_samples,
    trace_samples,
)
from tidings.pipeline.transforms.links.spells import spells
from tidings.pipeline.transforms.links.transfer import transfer
from tidings.traces.intake import Quarantined

# What is done, one after the other, and which part of the work lies before it, as measured.
STEPS = {
    "round trips": 0.0,
    "outages": 0.15,
    "slices": 0.3,
    "figures of links": 0.5,
    "links that fail together": 0.8,
    "predictions": 0.85,
}
Progress = Callable[[str, float], None]  # called with the step that begins, and the part before it


class Lesson(Struct, frozen=True):
    """What was learned."""

    model: pa.Table  # a row per link, as it stands in the file
    prediction: pd.DataFrame  # horizon, predictor, slices, mae_ms, rmse_ms
    slice_s: float
    quarantined: tuple[Quarantined, ...] = ()  # files that were not read

    @property
    def links(self) -> list[LearnedLink]:
        """The rows one by one; of a large model, better look at its columns."""
        return learned_links(self.model)


class _Watched(Struct, frozen=True):
    """What either kind of input comes to."""

    samples: DataFrame
    histories: DataFrame


def _in_silence(step: str, part: float) -> None:
    """Nobody is told how far it is."""


def learn(spark: SparkSession, given: Input, progress: Progress = _in_silence) -> Lesson:
    """All that the input tells of its links."""
    with temporary_settings(spark, settings_for_little(given.size_bytes())):
        return _learned(spark, given, progress)


def _learned(spark: SparkSession, given: Input, progress: Progress) -> Lesson:
    """The lesson, in spite of files at which Spark fails."""
    purpose = "learn from"
    if given.intake is not None:
        return with_file_retry(
            given.path,
            given.intake,
            purpose,
            lambda intake: _lesson(spark, with_files(given, intake), progress),
        )
    try:
        return _lesson(spark, given, progress)
    except TidingsError:
        raise
    except Exception as error:
        raise spark_error(purpose, given.path, error) from error


def _lesson(spark: SparkSession, given: Input, progress: Progress) -> Lesson:
    def begin(step: str) -> None:
        progress(step, STEPS[step])

    begin("round trips")
    watched = _watched(spark, given)
    pace = _pace(watched.samples, given.kind)
    one_way = delays(watched.samples, pace)
    hours = _hours(one_way, given.kind)
    histories = watched.histories
    with persisted(histories), persisted(pace), persisted(one_way), persisted(hours):
        with persisted(watched.samples):  # no longer than these are made of them
            _check_answers(one_way, given.path)
            begin("outages")
            histories.count()
        begin("slices")
        known = with_levels(one_way, hours)
        with persisted(slices(known, given.slice_s, given.hold_back)) as series:
            series.count()
            begin("figures of links")
            parts = [delay_figures(known), pace, hours, persistence(series)]
            of_links = reliability(histories, lossy=given.kind == "traces")
            rows = with_reasons_once(figures(of_links, parts, given.kind).toArrow())
            begin("links that fail together")
            groups = group_numbers(patterns(histories, given.slice_s).toArrow())
            begin("predictions")
            prediction: pd.DataFrame = prediction_table(errors(series)).toPandas()
    in_order = prediction.sort_values(["horizon", "mae_ms"], ignore_index=True)
    left_out = given.intake.quarantined if given.intake else ()
    return Lesson(model_rows(rows, groups, given.slice_s), in_order, given.slice_s, left_out)


def _watched(spark: SparkSession, given: Input) -> _Watched:
    if given.intake is not None:
        traces = read_intake(spark, given.path, given.intake)
        if is_tiny(given.size_bytes()):
            traces = traces.in_one_partition()
        samples = trace_samples(traces, given.probe_timeout_s)
        noticed = changes(traces["link_changed"])
        return _Watched(samples, trace_histories(samples, noticed, spells(traces)))
    table = spark.read.parquet(f"file://{given.path.absolute()}").select(*TABLE_COLUMNS)
    if is_tiny(given.size_bytes()):
        table = table.coalesce(1)
    samples = table_samples(table, given.slice_s)
    return _Watched(samples, table_histories(samples, given.slice_s))


def _check_answers(delays: DataFrame, path: Path) -> None:
    if not delays.count():  # counted, so that all of them are at hand from now on
        accepted = "measurements: probes or messages that were answered"
        raise ConfigError(str(path), "answers", 0, accepted)


def _pace(samples: DataFrame, kind: InputKind) -> DataFrame:
    """`transfer`; a table tells of no message."""
    return transfer(samples if kind == "traces" else samples.limit(0))


def _hours(delays: DataFrame, kind: InputKind) -> DataFrame:
    """`hourly`; the slices of a table are at no hour of any day."""
    return hourly(delays if kind == "traces" else delays.limit(0))


def write(lesson: Lesson, out: Path) -> Path:
    """The model as one file, which is whole or not there."""
    return replaced(out, lambda draft: pq.write_table(lesson.model, draft, compression="zstd"))
