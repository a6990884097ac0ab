"""Trace rows in, tidy tables out, on Spark: the only room that imports PySpark."""
