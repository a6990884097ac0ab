"""Declared runs become figures and verdicts; the argument, never a metric."""
