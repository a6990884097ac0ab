"""Spark as a client of an overlay: it publishes orders, answers them, and reads the answers.

In one terminal:   tidings broker docs/guide/spark-client.toml
In another:        python docs/guide/spark-client.py

Run it again: the stream goes on from its checkpoint, and answers only what is new.
"""

from __future__ import annotations

import argparse

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from tidings.pipeline.session import spark_session
from tidings.pipeline.source.datasource import register

ORDER = "item STRING, price DOUBLE, pieces INT"


def publish_orders(spark: SparkSession, mqtt: str, count: int) -> None:
    """A frame whose rows become messages: topic, payload, and what their publisher promises."""
    price = (f.col("id") % 7 + 1).cast("double")
    order = f.struct(
        f.concat(f.lit("item-"), f.col("id")).alias("item"),
        price.alias("price"),
        f.lit(3).alias("pieces"),
    )
    orders = spark.range(count).select(
        f.concat(f.lit("orders/"), f.when(price > 4, "large").otherwise("small")).alias("topic"),
        f.to_json(order).alias("payload"),
        f.lit(500.0).alias("deadline_ms"),
    )
    orders.write.format("tidings").mode("append").option("url", mqtt).save()


def answer_orders(spark: SparkSession, log: str, mqtt: str, checkpoint: str) -> StreamingQuery:
    """Every order above a price gets an invoice: read by offset, published as messages."""
    orders = (
        spark.readStream.format("tidings")
        .option("url", f"{log}/orders")
        .option("topic", "orders/+")
        .option("where", "price > 3")
        .option("deadline_ms", 400)
        .option("price", 2)
        .load()
    )
    return (
        invoices(orders)
        .writeStream.format("tidings")
        .option("url", mqtt)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)  # all there is; leave it out to go on for ever
        .start()
    )


def invoices(orders: DataFrame) -> DataFrame:
    """A frame goes in, a frame comes out: what the sink publishes."""
    order = f.from_json(f.col("payload").cast("string"), ORDER)
    return orders.select(order.alias("order"), "offset", "in_time").select(
        f.concat(f.lit("invoices/"), f.col("order.item")).alias("topic"),
        f.to_json(_invoice()).alias("payload"),
        f.lit(1000.0).alias("deadline_ms"),
        f.lit(True).alias("durable"),
    )


def _invoice() -> Column:
    total = (f.col("order.price") * f.col("order.pieces")).alias("total")
    return f.struct(total, f.col("offset").alias("order"), "in_time")


def read_invoices(spark: SparkSession, log: str) -> DataFrame:
    """The same log as a batch: everything that is kept."""
    logged = spark.read.format("tidings").option("url", f"{log}/invoices").load()
    return logged.select("offset", "at", "topic", f.col("payload").cast("string").alias("invoice"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", default="tidings://127.0.0.1:7100", help="a broker's log_port")
    parser.add_argument("--mqtt", default="mqtt://127.0.0.1:1883", help="a broker's mqtt_port")
    parser.add_argument("--checkpoint", default="results/spark-client-checkpoint")
    parser.add_argument("--orders", type=int, default=20)
    chosen = parser.parse_args()
    spark = spark_session(app="spark-client")
    register(spark)
    publish_orders(spark, chosen.mqtt, chosen.orders)
    answer_orders(spark, chosen.log, chosen.mqtt, chosen.checkpoint).awaitTermination()
    read_invoices(spark, chosen.log).orderBy("offset").show(20, truncate=False)


if __name__ == "__main__":
    main()
