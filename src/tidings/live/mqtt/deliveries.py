"""How does one message reach a hundred clients for little more than the price of one?

Consecutive messages mostly go to the same clients. Such a run of messages is encoded once per
protocol version and joined once, and the same bytes are given to every client of the run. A message
for other clients ends the run, so that each client gets its messages in the broker's order. A
message that fits no PUBLISH packet (a peer may send anything) is skipped and counted; the others of
its run are delivered.
"""

from __future__ import annotations

import logging
from typing import Protocol

from tidings.broker.effects import Deliver
from tidings.core.cache import BoundedCache
from tidings.core.errors import SHOWN_CHARACTERS, WireError
from tidings.live.rate_limited import RateLimitedWarnings
from tidings.mqtt.packets import MQTT_3_1_1, MQTT_5
from tidings.mqtt.properties import NO_PROPERTIES
from tidings.mqtt.publishing import delivered_properties, encode_publish

RECIPIENTS_BYTES = 16 << 20  # of sets of subscriptions that messages went to
# Of a set that is remembered: as such, and for each subscription in it.
SET_BYTES, MEMBER_BYTES = 1_000, 100

logger = logging.getLogger("tidings.mqtt")


class Client(Protocol):
    """A connection, as seen from here."""

    version: int
    max_packet_bytes: float

    def offer(self, data: bytes, messages: int) -> None: ...
    def flush(self) -> None: ...
    def cut(self) -> None: ...


class Recipients:
    """The clients behind some subscriptions: each once, however many of them are its own."""

    def __init__(self, clients: list[tuple[Client, bool]]) -> None:
        """Each client comes with whether it wants what it published itself."""
        unique: dict[Client, bool] = {}
        for client, echo in clients:
            unique[client] = unique.get(client, False) or echo
        versions = (MQTT_3_1_1, MQTT_5)
        self.by_version = [(v, [c for c in unique if c.version == v]) for v in versions]
        self.without_echo = frozenset(client for client, echo in unique.items() if not echo)


class Deliveries:
    """The messages of this round for local clients."""

    def __init__(self) -> None:
        self._takers_by_id: dict[str, tuple[Client, bool]] = {}
        self._recipients = BoundedCache[tuple[str, ...], Recipients](RECIPIENTS_BYTES)
        self._takers: tuple[str, ...] = ()
        self._run: list[Deliver] = []
        self._touched: dict[Client, None] = {}
        self.publisher: Client | None = None  # whose packets are being handled
        self.unfit = RateLimitedWarnings(logger, counted=True)  # messages that no packet can hold

    def enlist(self, subscription_id: str, client: Client, echo: bool) -> None:
        """This client gets the subscription's messages from now on; its own too, with `echo`."""
        self._spill()
        self._takers_by_id[subscription_id] = (client, echo)
        self._recipients.clear()

    def dismiss(self, subscription_id: str) -> None:
        """The subscription has ended."""
        self._spill()
        self._takers_by_id.pop(subscription_id, None)
        self._recipients.clear()

    def add(self, deliver: Deliver) -> None:
        takers = deliver.subscriptions
        if takers is not self._takers and takers != self._takers:
            self._spill()
            self._takers = takers
        self._run.append(deliver)

    def touch(self, client: Client) -> None:
        """This client is to be told something, or to be disconnected, when the round ends."""
        self._touched[client] = None

    def flush(self) -> None:
        """Writes what this round brought, once for each client."""
        if self._run:
            self._spill()
        if self._touched:
            for client in self._touched:
                client.flush()
            self._touched.clear()

    def cut(self) -> None:
        """The round could not be stored: nobody is told anything, and who waits for an answer is
        disconnected instead."""
        self._run.clear()
        for client in self._touched:
            client.cut()
        self._touched.clear()

    def _spill(self) -> None:
        """Gives the run to its clients."""
        run, self._run = self._run, []  # first, so that nothing is tried again after an error
        if not run:
            return
        takers = self._takers
        recipients = self._recipients.get(takers) or self._find_recipients(takers)
        for version, clients in recipients.by_version:
            if self.publisher in recipients.without_echo:
                clients = [client for client in clients if client is not self.publisher]
            if clients and (packets := self._encoded(run, version)):
                self._hand_out(clients, packets)

    def _encoded(self, run: list[Deliver], version: int) -> list[bytes]:
        """Each message of the run as a PUBLISH packet, without those that fit none."""
        packets = []
        for deliver in run:
            try:
                packets.append(_packet(deliver, version))
            except (WireError, ValueError, OverflowError) as error:
                message = deliver.message
                about = f"message {message.id} on {message.topic[:SHOWN_CHARACTERS]!r}"
                problem = f"{about} fits no MQTT packet and is not delivered: {error}"
                self.unfit.warn(problem, "unfit messages")
        return packets

    def _hand_out(self, clients: list[Client], packets: list[bytes]) -> None:
        data, count, touched = b"".join(packets), len(packets), self._touched
        largest_bytes = max(map(len, packets))
        for client in clients:
            touched[client] = None
            if client.max_packet_bytes >= largest_bytes:
                client.offer(data, count)
            else:
                fitting = [p for p in packets if len(p) <= client.max_packet_bytes]
                client.offer(b"".join(fitting), len(fitting))

    def _find_recipients(self, takers: tuple[str, ...]) -> Recipients:
        known = self._takers_by_id
        found = Recipients([known[taker] for taker in takers if taker in known])
        return self._recipients.keep(takers, found, set_bytes(takers))


def set_bytes(takers: tuple[str, ...]) -> int:
    """What it takes, about, to remember who is behind some subscriptions."""
    return SET_BYTES + MEMBER_BYTES * len(takers)


def _packet(deliver: Deliver, version: int) -> bytes:
    message, properties = deliver.message, NO_PROPERTIES
    if version == MQTT_5 and (message.headers or message.properties):
        properties = delivered_properties(message.headers, message.properties, deliver.age_s)
    return encode_publish(message.topic, message.payload, properties, version)
