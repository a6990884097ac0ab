"""What a simulated broker has stored: it outlives the broker.

The twin of the live world's store. A broker may hold several copies of one message for one
destination (a copy came back while another was under way), so copies are counted: what is owed is
struck out when the last of them is in other hands.
"""

from __future__ import annotations

from tidings.core.contract import Destination
from tidings.core.parcel import Parcel


class Disk:
    """Durable parcels, by message and destination."""

    def __init__(self) -> None:
        self._parcels: dict[int, Parcel] = {}  # as last stored
        self._owed: dict[int, dict[str, tuple[Destination, int]]] = {}  # and copies held

    def keep(self, parcel: Parcel) -> None:
        self._parcels[parcel.message.id] = parcel
        owed = self._owed.setdefault(parcel.message.id, {})
        for destination in parcel.destinations:
            copies = owed[destination.broker][1] if destination.broker in owed else 0
            owed[destination.broker] = (destination, copies + 1)

    def forget(self, message: int, brokers: tuple[str, ...]) -> None:
        """One copy for each of these destinations is in other hands."""
        owed = self._owed.get(message, {})
        for broker in brokers:
            if broker in owed:
                destination, copies = owed.pop(broker)
                if copies > 1:
                    owed[broker] = (destination, copies - 1)
        if not owed:
            self._owed.pop(message, None)
            self._parcels.pop(message, None)

    def restore(self) -> list[Parcel]:
        """All that is owed, one copy each: of the others the broker knows no more."""
        for owed in self._owed.values():
            owed.update({broker: (destination, 1) for broker, (destination, _) in owed.items()})
        return self.parcels()

    def parcels(self) -> list[Parcel]:
        return [
            self._parcels[message].only_for(tuple(d for d, _ in owed.values()))
            for message, owed in self._owed.items()
        ]
