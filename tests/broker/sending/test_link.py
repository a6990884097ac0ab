"""What a neighbour says of its direction of a link."""

from math import inf, nan

import pytest
from support.prospects import Known

from tidings.broker.sending.link import LinkEnd
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate


@pytest.mark.parametrize("nonsense", [nan, -1e-6, inf])
def test_nonsense_about_the_pace_of_a_link_is_not_believed(nonsense: float) -> None:
    link = LinkEnd("n2", Settings(), None, Known())
    link.heard(LinkEstimate(0.010, s_per_byte=2e-6))
    link.heard(LinkEstimate(0.010, s_per_byte=nonsense))
    assert link.s_per_byte == 2e-6
