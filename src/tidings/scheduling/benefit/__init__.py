"""Bounded delay: what is worth most goes first.

Read `scheduling.chances` (when is a message in time?), then `worth` (the equations),
`worth_over_time` (the same, kept for quick answers), `queue` (the order), and `priced`.
"""
