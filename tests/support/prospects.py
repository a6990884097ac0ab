"""What lies beyond a link, for tests of policies without brokers."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel


class Known:
    """Outlooks by destination, which a test may change (and then counts the version up)."""

    def __init__(
        self, outlooks: Mapping[str, Outlook] | None = None, s_per_byte: float = 0.0
    ) -> None:
        self.outlooks = dict(outlooks or {})
        self.s_per_byte = s_per_byte
        self.version = 1

    def outlook(self, parcel: Parcel, destination: str) -> Outlook | None:
        return self.outlooks.get(destination)
