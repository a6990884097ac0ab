"""A frame goes in, a frame comes out: metrics of trace rows, in Spark's built-in functions only."""
