"""Which topics does one client want? Its subscriptions by filter, and what they take."""

from __future__ import annotations

from tidings.core.contract import Subscription


class ClientFilters(dict[str, Subscription]):
    """The subscriptions of a client, by their topic filters."""

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes = 0

    def put(self, wish: Subscription) -> None:
        """Adds a wish, or replaces the one for the same filter."""
        self.take(wish.topic)
        self[wish.topic] = wish
        self.size_bytes += wish.size_bytes

    def take(self, topic_filter: str) -> Subscription | None:
        """Takes a wish out, if there is one."""
        wish = self.pop(topic_filter, None)
        if wish is not None:
            self.size_bytes -= wish.size_bytes
        return wish
