"""Logs of messages: kept in segments, addressed by offset, served by HTTP."""
