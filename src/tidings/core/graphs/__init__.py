"""Mathematics on graphs of links.

Read `paths` (the shortest, and those that come next), then `disjoint` (two that share nothing) and
`reliability` (with what probability one of several works).
"""
