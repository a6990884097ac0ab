"""The chances of a parcel, and from when on it has none."""

from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.builders import a_message
from support.curves import curves_owed, instants
from support.prospects import Known

from tidings.core.contract import Destination, Group
from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel
from tidings.scheduling.chances import Curve, curves_of, doomed_from, must_arrive, success


def a_parcel_of(size_bytes: int, born_at: float, expires_at: float = inf) -> Parcel:
    owed = (Destination("b2", inf, (Group(2.0, 1, 1.0),)),)
    return Parcel(a_message(), born_at, expires_at, owed, ("b1",), "d-tree", size_bytes)


@given(curves_owed, st.sampled_from([0.0, 0.0005, 0.05, 0.3, 1.0]), instants)
def test_a_parcel_is_doomed_when_no_chance_is_above_what_is_unlikely(
    owed: tuple[Curve, ...], unlikely: float, now: float
) -> None:
    assume(owed)
    doomed_at = doomed_from(owed, unlikely)
    best = max((success(curve, now) for curve in owed), default=0.0)
    if abs(now - doomed_at) > 1e-9 or all(curve.spread_s == 0.0 for curve in owed):
        assert (doomed_at <= now) == (best <= unlikely)


def test_what_has_no_deadline_is_never_doomed() -> None:
    assert doomed_from((Curve(inf, 1.0, 3.0),), 0.0005) == inf


def test_what_is_owed_to_nobody_known_is_never_doomed() -> None:
    assert doomed_from((), 0.0005) == inf


@pytest.mark.parametrize(("expires_at", "wanted"), [(5.0, False), (inf, True)])
def test_what_is_welcome_however_late_must_arrive(expires_at: float, wanted: bool) -> None:
    assert must_arrive(a_parcel_of(500, 0.0, expires_at)) is wanted


def test_a_message_without_size_needs_only_the_delay() -> None:
    known = Known({"b2": Outlook(1, 0.5, 1e-3, 1e-6)})
    assert curves_of(a_parcel_of(0, 0.0), known) == (Curve(1.5, 0.0, 1.0),)


def test_over_a_link_without_samples_the_deadline_alone_counts() -> None:
    assert curves_of(a_parcel_of(500, 1.0), Known()) == (Curve(3.0, 0.0, 1.0),)
