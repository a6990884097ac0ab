"""Chances of groups of subscriptions, for tests of what is made of them."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st

from tidings.scheduling.chances import Curve

curves = st.builds(
    Curve,
    instant=st.one_of(st.just(inf), st.floats(-20.0, 60.0), st.integers(0, 20).map(float)),
    spread_s=st.one_of(st.just(0.0), st.floats(1e-3, 8.0)),
    price=st.one_of(st.just(0.0), st.floats(0.1, 5.0)),
)
curves_owed = st.lists(curves, max_size=12).map(tuple)
instants = st.one_of(st.integers(-10, 70).map(float), st.floats(-10.0, 70.0))
