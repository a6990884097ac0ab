"""The nouns of the system and pure functions on them: no clock, no socket, no chance but `rng`."""
