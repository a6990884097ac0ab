"""From a scenario file to all that a run takes place on; the room that reads the files it names.

Read `read` (a scenario from its file), `overlay` and `courses` (the network, and what its links go
through), `checks` (does it make sense?), then `set_up`, which does all of that.
"""
