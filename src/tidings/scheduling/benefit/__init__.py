"""Bounded delay: read `worth` (the equations), `worth_over_time`, then `queue` and `priced`."""
