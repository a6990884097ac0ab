"""What a live broker answers to a client that states a contract it cannot keep."""

from __future__ import annotations

import pytest

from tidings.core.contract import BEST_EFFORT
from tidings.core.errors import WireError
from tidings.live.mqtt.statements import Publications, wishes
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import Properties, UserProperties


def refusals(pairs: UserProperties) -> tuple[WireError, WireError]:
    """With what a PUBLISH and a SUBSCRIBE with these user properties are refused."""
    packet = Publish("t", b"", properties=Properties(user_properties=pairs))
    with pytest.raises(WireError) as of_publish:
        Publications(lambda topic: BEST_EFFORT).message(1, packet, "c")
    with pytest.raises(WireError) as of_subscribe:
        wishes("n1", "c", ["t"], pairs)
    return of_publish.value, of_subscribe.value
