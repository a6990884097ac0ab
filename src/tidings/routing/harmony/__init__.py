"""Harmony: read `selection` (which paths), `flow` and `flows` (until when), then `router`."""
