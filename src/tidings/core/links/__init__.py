"""What is known about one link.

Read `estimates` (what a broker believes, and how samples change it) with `pace` (the time per byte)
and `shortest` (of the last round trips), then `outlook` (the links of a path together), `weather`
(what a link does to a frame, in both worlds), `silences` (when a link was out of order, by what was
not answered) and `model` (what was learned, as a file).
"""
