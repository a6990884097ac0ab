"""The state machine that both worlds run: inputs and the time go in, effects come out."""
