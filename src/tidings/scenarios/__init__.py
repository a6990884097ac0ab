"""From a scenario file to all that a run takes place on; the room that reads the files it names."""
