"""How long does a link need for a kilobyte? Told by messages of different size.

A round trip grows with the size of the message. The time per byte is the slope of a straight line
through all round trips of a link (least squares). Messages of one size tell nothing, and a slope
that is not clearly above zero does not count.

If the time per byte varies between messages, large messages deviate more from the line than small
ones. The variance of the time per byte is the slope of squared deviations over squared sizes.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.links.model import BYTES
from tidings.pipeline.transforms.links.samples import LINK

ENOUGH_MESSAGES = 30  # for a time per kilobyte
SPREAD = 2.0  # the largest over the smallest message, at least
CLEAR = 4.0  # standard errors above zero: one link in thirty thousand by chance

# Why it is not known.
FEW = f"fewer than {ENOUGH_MESSAGES} messages were acknowledged"
ALIKE = "all messages were about the same size"
FLAT = "round trips do not clearly grow with the size of messages"


def transfer(samples: DataFrame) -> DataFrame:
    """One row per link with a message: time per kilobyte, its variance, or the reason."""
    messages = samples.where(F.col("size_bytes").isNotNull() & F.col("round_trip_s").isNotNull())
    line = _lines(messages)
    clear = F.col("reason").isNull()
    scatter = (
        messages.join(line.where(clear), list(LINK))
        .withColumn("expected_s", F.col("intercept") + F.col("slope") * F.col("size_bytes"))
        .groupBy(*LINK)
        .agg(
            F.regr_slope(
                F.pow(F.col("round_trip_s") - F.col("expected_s"), 2), F.pow("size_bytes", 2)
            ).alias("variance")
        )
    )
    variance = F.greatest(F.lit(0.0), F.col("variance")) * BYTES**2
    return line.join(scatter, list(LINK), "left").select(
        *LINK,
        F.when(clear, F.col("slope") * BYTES).alias("transfer_mean_s_per_kilobyte"),
        F.when(clear, variance).alias("transfer_variance_s2_per_kilobyte2"),
        F.col("reason").alias("transfer_reason"),
    )


def _lines(messages: DataFrame) -> DataFrame:
    """Slope and intercept of each link, and why they cannot be believed, if so."""
    y, x = F.col("round_trip_s"), F.col("size_bytes")
    fitted = messages.groupBy(*LINK).agg(
        F.count("*").alias("count"),
        F.min("size_bytes").alias("least"),
        F.max("size_bytes").alias("most"),
        F.regr_slope(y, x).alias("slope"),
        F.regr_intercept(y, x).alias("intercept"),
        F.regr_sxx(y, x).alias("sxx"),
        F.regr_syy(y, x).alias("syy"),
    )
    unexplained = F.greatest(F.lit(0.0), F.col("syy") - F.col("slope") ** 2 * F.col("sxx"))
    error = F.sqrt(unexplained / (F.col("count") - 2) / F.col("sxx"))
    reason = (
        F.when(F.col("count") < ENOUGH_MESSAGES, FEW)
        .when(F.col("most") < SPREAD * F.col("least"), ALIKE)
        .when((F.col("slope") <= 0) | (F.col("slope") < CLEAR * error), FLAT)
    )
    return fitted.withColumn("reason", reason)
