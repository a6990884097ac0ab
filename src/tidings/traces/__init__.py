"""Trace files without Spark: how rows are written, read again, and summed up in a few figures."""
