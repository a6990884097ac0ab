"""Harmony: paths chosen at the source that follow the network.

Read `candidates` and `availability` (what there is to choose from), `selection` (which paths),
`flow` and `flows` (until when), then `router` (the forwarding of one message).
"""
