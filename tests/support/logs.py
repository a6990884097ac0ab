"""A live broker that keeps logs, inside a test."""

from __future__ import annotations

from support.live import Overlay, eventually

from tidings.pipeline.source.log_client import LogClient
from tidings.pipeline.source.publisher import MqttPublisher

ORDERS = {"name": "orders", "topic": "orders/#", "flush_s": 0.02}
RESULTS = {"name": "results", "topic": "results/#", "flush_s": 0.02}
IMPATIENT = {"patience_s": "0.1"}


class Shop:
    """A live broker that keeps logs, and what is said to it."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay

    @property
    def mqtt(self) -> str:
        return f"mqtt://127.0.0.1:{self.overlay.port('b')}"

    def log(self, name: str = "orders") -> str:
        return f"tidings://127.0.0.1:{self.overlay.brokers['b'].log_port}/{name}"

    def next(self, name: str = "orders") -> int:
        with LogClient(self.log(name), 1.0) as client:
            return client.state().next

    def say(self, *payloads: str, topic: str = "orders/eu", **pairs: str) -> None:
        """Publishes, and waits until it is logged."""
        before = self.next()
        stated = tuple((name.replace("_", "-"), text) for name, text in pairs.items())
        with MqttPublisher(self.mqtt, 1.0) as publisher:
            for payload in payloads:
                publisher.publish(topic, payload.encode(), stated)
            publisher.finish()
        eventually(lambda: self.next() == before + len(payloads))
