"""What links go through in a run where a model or the past says so, not the scenario.

Read `link_course` (the value), then `learned` (drawn from a model) and `past` (taken from a trace).
"""
