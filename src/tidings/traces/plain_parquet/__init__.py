"""Parquet files of rows, written without Arrow: a broker that imported it would hold twice the
memory, for the sake of its trace alone."""
