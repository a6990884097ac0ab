"""An overlay on this machine: a scenario as real broker processes and real clients."""
