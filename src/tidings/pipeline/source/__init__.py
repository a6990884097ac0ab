"""The data source `tidings` of Spark: logs and traces in, messages out."""
