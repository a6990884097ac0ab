"""How reliable was it? The four levels of the pruning paper, section 2, Eq. 1 to 4.

    subscriber-topic  R[e_t^s]  delivered over owed                                     (Eq. 1)
    subscriber        R[e^s]    mean of Eq. 1 over the topics of the subscriber         (Eq. 2)
    topic             R[e_t]    mean of Eq. 1 over the subscribers of the topic         (Eq. 3)
    system            R[e]      mean of Eq. 2 over all subscribers                      (Eq. 4)

The paper's words, and ours
---------------------------
Its event type is our topic. Its subscriber is our client (`<broker>/<client>`, whatever
subscriptions it has). Its publications are those that the subscriber was owed (the publisher's
broker knew of its interest), and its notifications those that were delivered, late or not.
`on_time_reliability` is the same of what was in time.

Which mean
----------
The paper's sums run to the number of all topics and of all subscribers. That equals the mean only
where everybody subscribes to everything; its text speaks of what is subscribed to, and so do we.
Means are not weighted by messages, so `system` is not the delivery ratio.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.outcomes import IN_TIME

BOTH = ("reliability", "on_time_reliability")
RELIABILITY_COLUMNS = ("run", "strategy", "level", "subscriber", "topic", *BOTH)
PAIR, SUBSCRIBER, TOPIC, SYSTEM = "subscriber-topic", "subscriber", "topic", "system"


def reliability(examined: DataFrame) -> DataFrame:
    """One row per run, strategy, level, and subscriber or topic: `RELIABILITY_COLUMNS`. What a
    level is not about is null."""
    keys = ("run", "strategy")
    pairs = per_pair(examined)
    subscribers = _means(pairs, *keys, "subscriber")
    levels = [
        _named(pairs, PAIR, F.col("subscriber"), F.col("topic")),
        _named(subscribers, SUBSCRIBER, F.col("subscriber"), _absent()),
        _named(_means(pairs, *keys, "topic"), TOPIC, _absent(), F.col("topic")),
        _named(_means(subscribers, *keys), SYSTEM, _absent(), _absent()),
    ]
    return reduce(DataFrame.unionByName, levels).select(*RELIABILITY_COLUMNS)


def per_pair(examined: DataFrame) -> DataFrame:
    """Eq. 1: one row per run, strategy, subscriber and topic."""
    keys = ("run", "strategy", "subscriber", "topic")
    delivered, in_time = F.count("delay_s"), F.count_if(F.col("outcome") == IN_TIME)
    owed = F.count("*")
    return (
        examined.groupBy(*keys)
        .agg((delivered / owed).alias(BOTH[0]), (in_time / owed).alias(BOTH[1]))
        .select(*keys, *BOTH)
    )


def _means(rows: DataFrame, *keys: str) -> DataFrame:
    return rows.groupBy(*keys).agg(*(F.avg(name).alias(name) for name in BOTH)).select(*keys, *BOTH)


def _named(rows: DataFrame, level: str, subscriber: Column, topic: Column) -> DataFrame:
    return rows.select(
        "run",
        "strategy",
        F.lit(level).alias("level"),
        subscriber.alias("subscriber"),
        topic.alias("topic"),
        *BOTH,
    )


def _absent() -> Column:
    return F.lit(None).cast("string")
