"""`dcrd`: every message finds its own way.

Read `attempts` (the mathematics: whom to try first), `pairs` and `reach` (what brokers advertise,
and what links alone say), `sending_lists` (the exchange between brokers), then `router` (the
forwarding of one message).
"""
