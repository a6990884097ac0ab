"""Overlay links over TCP: connecting, framing, and emulated conditions."""
