"""What links go through in a run where a model or the past says so, not the scenario."""
