"""Publish/subscribe that keeps its promises about time."""

__version__ = "0.1.0"
