"""`tidings analyse`: what traces say, as tidy tables."""
