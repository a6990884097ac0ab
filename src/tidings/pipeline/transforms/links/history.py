"""When did each link work? Its outages, and what was lost outside of them.

The rule is that of `core.links.silences`: several unanswered questions in a row are an outage. In a
table of round trips one slice without a measurement is an outage already. A link that went down
just before the run ended was taken down with the run. A run that was stopped and went on is watched
in spells (`spells`), each with a beginning and an end of its own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.core.links.silences import (
    SETTLE_S,
    Frames,
    Numbers,
    Spans,
    outages_of_links,
    reported_of_links,
    within_spans,
)
from tidings.pipeline.transforms.links.samples import LINK
from tidings.pipeline.transforms.links.spells import during
from tidings.pipeline.transforms.links.whole_groups import group_starts, in_groups, over_groups

HISTORY_TYPE = (
    "run string, source string, target string, watched_s double, asked long, sent long, "
    "answered long, outages array<struct<from_s: double, to_s: double>>"
)
ENOUGH_QUESTIONS = 20  # for a ratio: of fewer, the next one could say something else
UNLOSSY = "each slice has one measurement, so a loss looks like an outage"
SPELL = ("run", *LINK, "spell")


def trace_histories(samples: DataFrame, changes: DataFrame, spells: DataFrame) -> DataFrame:
    """One row per run, link and spell (`HISTORY_TYPE`); `asked` tells of all questions, `sent` and
    `answered` of those outside of outages."""
    settled = F.col("answered") | (F.col("sent_at") <= F.col("end_at") - SETTLE_S)
    asked = during(spells, samples.select("run", *LINK, "sent_at", "answered"), "sent_at")
    noticed = during(spells, changes, "recorded_at").withColumnRenamed("recorded_at", "at")
    is_question, at = F.lit(True).alias("is_question"), F.col("sent_at").alias("at")
    questions = asked.where(settled).select(
        *SPELL, "end_at", at, F.col("answered").alias("good"), is_question
    )
    is_report = F.lit(False).alias("is_question")
    reports = noticed.select(*SPELL, "end_at", "at", F.col("up").alias("good"), is_report)
    told = in_groups(questions.unionByName(reports), SPELL, ("at", "good"))
    return over_groups(told, SPELL, _of_traces, HISTORY_TYPE)


def table_histories(samples: DataFrame, slice_s: float) -> DataFrame:
    """The same of a table, in all of whose slices every link was asked."""
    place = F.round(F.col("sent_at") / slice_s + 0.5).cast("int")
    placed = samples.select("run", *LINK, place.alias("place"))
    whole = placed.agg(F.max("place").alias("count"))
    answers = placed.groupBy("run", *LINK).agg(F.array_sort(F.collect_set("place")).alias("known"))
    before, after = (
        F.concat(F.array(F.lit(0)), "known"),
        F.concat("known", F.array(F.col("count") + 1)),
    )
    between = F.zip_with(
        before,
        after,
        lambda last, then: F.struct(
            (last * slice_s).alias("from_s"), ((then - 1) * slice_s).alias("to_s")
        ),
    )
    return answers.crossJoin(F.broadcast(whole)).select(
        "run",
        *LINK,
        (F.col("count") * slice_s).alias("watched_s"),
        F.col("count").cast("long").alias("asked"),
        F.size("known").cast("long").alias("sent"),
        F.size("known").cast("long").alias("answered"),
        F.filter(between, lambda outage: outage.from_s < outage.to_s).alias("outages"),
    )


def _of_traces(told: pa.Table) -> pa.RecordBatch:
    """The histories of many spells, of their questions and reports in the order of time."""
    starts = group_starts(told, SPELL)
    number = np.repeat(np.arange(starts.size), np.diff(starts, append=told.num_rows))
    is_question = told["is_question"].to_numpy()
    asked = np.unique(number[is_question])  # noticed, but never asked: nothing is known of it
    known = np.isin(number, asked)
    told, is_question = told.filter(pa.array(known)), is_question[known]
    link: Numbers = np.searchsorted(asked, number[known])
    at, good, end_at = (told[name].to_numpy() for name in ("at", "good", "end_at"))
    questions = link[is_question]
    first = np.searchsorted(questions, np.arange(asked.size + 1))
    sent_at = at[is_question]
    frames = Frames(
        first, sent_at, good[is_question], sent_at[first[:-1]], end_at[is_question][first[:-1]]
    )
    reports = ~is_question
    down = reported_of_links(link[reports], at[reports], good[reports], frames)
    return _histories(
        told.take(np.searchsorted(link, np.arange(asked.size))),
        frames,
        outages_of_links(frames, down),
    )


def _histories(keys: pa.Table, frames: Frames, found: Spans) -> pa.RecordBatch:
    in_order, links = ~within_spans(frames, found), frames.from_at.size
    link = frames.link()
    offsets = np.searchsorted(found.link, np.arange(links + 1)).astype(np.int32)
    spans = pa.StructArray.from_arrays([found.from_s, found.to_s], ["from_s", "to_s"])
    columns = {name: keys[name].combine_chunks() for name in ("run", *LINK)}
    columns["watched_s"] = pa.array(frames.end_at - frames.from_at)
    columns["asked"] = pa.array(np.diff(frames.first))
    columns["sent"] = pa.array(np.bincount(link[in_order], minlength=links))
    heard = in_order & frames.answered
    columns["answered"] = pa.array(np.bincount(link[heard], minlength=links))
    columns["outages"] = pa.ListArray.from_arrays(pa.array(offsets), spans)
    return pa.RecordBatch.from_pydict(columns)


def reliability(histories: DataFrame, lossy: bool) -> DataFrame:
    """One row per link: delivery ratio, availability, outages, their mean length, with reasons.

    A question crosses the link twice, so one way has the square root of its ratio. `lossy`: whether
    the input tells losses from outages.
    """
    down_s = F.aggregate("outages", F.lit(0.0), lambda sum_s, o: sum_s + o.to_s - o.from_s)
    found = histories.groupBy(*LINK).agg(
        F.sum("watched_s").alias("watched_s"),
        F.sum(down_s).alias("down_s"),
        F.sum(F.size("outages")).cast("long").alias("seen"),
        F.sum("asked").alias("asked"),
        F.sum("sent").alias("sent"),
        F.sum("answered").alias("answered"),
    )
    watched, unlossy = F.col("watched_s") > 0, _lossless() if lossy else F.lit(UNLOSSY)
    unwatched = F.when(~watched, "the link was seen at one instant only").when(
        F.col("asked") < ENOUGH_QUESTIONS, f"fewer than {ENOUGH_QUESTIONS} questions were asked"
    )
    in_order = F.greatest(F.lit(0.0), 1 - F.col("down_s") / F.col("watched_s"))
    arrived = F.sqrt(F.col("answered") / F.col("sent"))
    return found.select(
        *LINK,
        F.when(unlossy.isNull(), arrived).alias("delivery_ratio"),
        unlossy.alias("delivery_reason"),
        F.when(unwatched.isNull(), in_order).alias("availability"),
        unwatched.alias("availability_reason"),
        F.when(watched, F.col("seen")).alias("outages"),
        F.when(watched & (F.col("seen") > 0), F.col("down_s") / F.col("seen")).alias(
            "outage_mean_s"
        ),
        F.when(~watched | (F.col("seen") == 0), "no outage was seen").alias("outage_reason"),
    )


def _lossless() -> Column:
    """Why it is not known what a link loses, if so."""
    few = f"fewer than {ENOUGH_QUESTIONS} questions were asked while the link was in order"
    return F.when(F.col("sent") == 0, "nothing was sent while the link was in order").when(
        F.col("sent") < ENOUGH_QUESTIONS, few
    )
