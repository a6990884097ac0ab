from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidings.mqtt.codec import DEFAULT_LIMITS, Limits, encode
from tidings.mqtt.packets import Connect
from tidings.mqtt.session import Session

OpenSession = Callable[..., Session]


@pytest.fixture
def open_session() -> OpenSession:
    """Builds a session whose CONNECT, of the given version and fields, has been accepted."""

    def build(version: int, limits: Limits = DEFAULT_LIMITS, **fields: Any) -> Session:
        session = Session(0.0, limits)
        connect = Connect(version, **({"client_id": "c"} | fields))
        assert session.feed(encode(connect, version), 0.0) == [connect]
        assert session.accept(0.0) == []
        assert session.outgoing()[:1] == b"\x20"
        return session

    return build
