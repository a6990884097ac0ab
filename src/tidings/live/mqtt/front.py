"""What do MQTT clients ask of the broker? Requests of sessions in, inputs of the broker out.

A subscription's id is made of broker, client and filter, so subscribing again replaces it; a client
that connects with the identifier of another replaces it. Contracts come from user properties where
an MQTT 5 client states them, else from the topic policies. One timer finds clients that are silent
for too long.

A publisher that fills the queue of a link is not read until the queue is short again, so its own
socket fills and it has to wait, instead of losing what it says. Clients that publish nothing are
always read. And nobody is served for long without a turn of the others.
"""

from __future__ import annotations

import asyncio
import logging
from typing import assert_never

from tidings.core.errors import FilterError, first_line
from tidings.core.message import Message
from tidings.core.topic import check_filter
from tidings.core.trace import Slowed
from tidings.live.config import Mqtt
from tidings.live.driver import Driver
from tidings.live.mqtt.connection import MqttConnection
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.mqtt.statements import Publications, wishes
from tidings.live.rate_limited import RateLimitedWarnings
from tidings.mqtt.codec import Limits
from tidings.mqtt.contracts import BadStatement, shown
from tidings.mqtt.packets import Connect, Publish, Subscribe, TopicFilter, Unsubscribe
from tidings.mqtt.properties import NO_PROPERTIES
from tidings.mqtt.reasons import ReasonCode
from tidings.mqtt.refusals import SHARED_PREFIX
from tidings.mqtt.session import Closed, Request

WATCH_EVERY_S = 0.5  # keep-alive is a matter of seconds
# One read may bring thousands of publications. Others have their turn after this long: neighbours
# whose answers wait to be read would seem silent otherwise.
TURN_S = 0.005
LOOK_EVERY = 64  # publications: looking at the clock takes time, too

FAULTS = 0x80  # reason codes from here on
NOT_NEWS = {  # those that are nobody's mistake, and what a contract states wrongly: that was told
    ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ReasonCode.UNSPECIFIED_ERROR,
    ReasonCode.SERVER_SHUTTING_DOWN,
    ReasonCode.SESSION_TAKEN_OVER,
    ReasonCode.KEEP_ALIVE_TIMEOUT,
}

logger = logging.getLogger("tidings.mqtt")


class MqttFront:
    """All MQTT clients of one broker."""

    def __init__(self, driver: Driver, deliveries: Deliveries, mqtt: Mqtt) -> None:
        self.driver = driver
        self.limits = Limits(mqtt.max_packet_bytes, mqtt.connect_within_s)
        self.max_unsent_bytes = mqtt.max_unsent_bytes
        self._max_connections = mqtt.max_connections
        self._turned_away = RateLimitedWarnings(logger, counted=True)
        self.notices = RateLimitedWarnings(logger)
        self._broker, self._deliveries = driver.broker, deliveries
        self._publications = Publications(driver.broker.default_contract)
        self._connections: dict[MqttConnection, None] = {}
        self._clients: dict[str, MqttConnection] = {}
        self._ending = False
        # Those that are not read just now, and whether that is because queues are long.
        self._held: dict[MqttConnection, bool] = {}
        self._loop = asyncio.get_running_loop()
        self._unnamed = 0
        self._timer: asyncio.TimerHandle | None = None

    # ---- connections

    def accept(self) -> MqttConnection:
        """The protocol of a new connection."""
        return MqttConnection(self)

    def admit(self, connection: MqttConnection) -> bool:
        """Whether there is room for one more connection; if so, it is one of ours."""
        if len(self._connections) >= self._max_connections:
            limit = f"mqtt.max_connections is {self._max_connections}"
            self._turned_away.warn(f"an MQTT connection too many is closed: {limit}")
            return False
        self._connections[connection] = None
        return True

    def disconnected(self, connection: MqttConnection) -> None:
        self._connections.pop(connection, None)

    def busy(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._connections)

    def watch(self) -> None:
        """Ends conversations that were silent for too long, now and every `WATCH_EVERY_S`."""
        now = self.driver.clock()
        for connection in list(self._connections):
            if connection not in self._held and (requests := connection.session.tick(now)):
                self.handle(connection, requests, now)
        self._timer = self._loop.call_later(WATCH_EVERY_S, self.watch)

    def flush_notices(self, ending: bool = False) -> None:
        """Tells of what was left out in the log."""
        for lines in (self.notices, self._turned_away, self._deliveries.unfit):
            lines.flush(ending)

    def stop(self) -> None:
        """Disconnects all clients, and tells them why."""
        if self._timer:
            self._timer.cancel()
        self._ending = True
        self._go_on_with_all()
        for connection in list(self._connections):
            code, reason = ReasonCode.SERVER_SHUTTING_DOWN, "the broker is shutting down"
            now = self.driver.clock()
            self.handle(connection, connection.session.close(code, reason), now)

    # ---- requests

    def handle(self, connection: MqttConnection, requests: list[Request], now: float) -> None:
        """Serves all that one read brought, as one round; later, if the connection is slowed."""
        if connection in self._held:
            connection.held += requests
            return
        self._deliveries.publisher = connection
        with self.driver.round:
            self._serve(connection, requests, now)
            if connection not in self._held:  # answers keep their place behind what waits
                connection.answer()
            self._deliveries.touch(connection)
        self._deliveries.publisher = None

    def _serve(self, connection: MqttConnection, requests: list[Request], now: float) -> None:
        try:
            self._serve_all(connection, requests, now)
        except BadStatement as fault:
            self._warn_of(fault, connection.client_id)
            # A client that was in a hurry has disconnected already, behind what is refused here.
            ended: list[Request] = [request for request in requests if type(request) is Closed]
            closing = connection.session.close(fault.code, fault.problem)
            self._serve(connection, closing or ended, now)

    def _serve_all(self, connection: MqttConnection, requests: list[Request], now: float) -> None:
        carry_out, publish = self.driver.carry_out, self._broker.publish
        take_id, contract_of = self._broker.message_ids.take, self._broker.default_contract
        crowded, clock, until = self._broker.crowded, self.driver.clock, now + TURN_S
        for served, request in enumerate(requests, 1):
            if type(request) is Publish:  # nearly always, so it makes no call that is not needed
                if request.properties is NO_PROPERTIES:
                    topic = request.topic
                    message = Message(take_id(), topic, request.payload, contract_of(topic))
                else:
                    message = self._publications.message(take_id(), request, connection.client_id)
                carry_out(publish(message, now), now)
                long = crowded or (not served % LOOK_EVERY and clock() > until)
                if long and self._put_off(connection, requests[served:], now):
                    return
            else:
                self._serve_one(connection, request, now)

    def _put_off(self, connection: MqttConnection, rest: list[Request], now: float) -> bool:
        """Whether the rest of what a client asks for has to wait: until queues are short again, or
        until others had their turn. The client is not read meanwhile."""
        crowded = bool(self._broker.crowded)
        if self._ending or not (rest or crowded):
            return False
        connection.hold(rest, now)
        self._held[connection] = crowded
        if crowded:
            self.driver.when_roomy = self._go_on_with_all
        else:
            self._loop.call_soon(self._go_on, connection)
        return True

    def _go_on_with_all(self) -> None:
        for connection in list(self._held):  # the longest waiting first
            self._go_on(connection)

    def _go_on(self, connection: MqttConnection) -> None:
        """Listen to a client again, to what it has asked for already first."""
        crowded = self._held.pop(connection, None)
        if crowded is None:  # somebody else was earlier
            return
        now = self.driver.clock()
        held, waited_s = connection.release(now)
        if crowded:
            self.driver.record(Slowed(now, self._broker.name, connection.client_id, waited_s))
        self.handle(connection, held, now)

    def _serve_one(self, connection: MqttConnection, request: Request, now: float) -> None:
        match request:
            case Connect():
                self._connect(connection, request, now)
            case Subscribe():
                self._subscribe(connection, request, now)
            case Unsubscribe():
                self._unsubscribe(connection, request, now)
            case Closed():
                self._close(connection, request, now)
            case Publish():
                self._serve_all(connection, [request], now)
            case _:
                assert_never(request)

    def _connect(self, connection: MqttConnection, request: Connect, now: float) -> None:
        client_id, assigned = request.client_id, None
        if not client_id:
            self._unnamed += 1
            first_id = self._broker.message_ids.take()  # no other broker or incarnation has it
            client_id = assigned = f"client-{first_id:x}-{self._unnamed}"
        connection.client_id, connection.version = client_id, request.version
        if request.will is not None:
            self._publications.check(request.will)  # now, while its client can be told
        if (older := self._clients.get(client_id)) is not None:
            code, reason = ReasonCode.SESSION_TAKEN_OVER, "another connection has taken this name"
            self._serve(older, older.session.close(code, reason), now)
        self._clients[client_id] = connection
        connection.max_packet_bytes = connection.session.max_outgoing_bytes
        self._serve(connection, connection.session.accept(now, assigned), now)

    def _subscribe(self, connection: MqttConnection, request: Subscribe, now: float) -> None:
        codes, problems, accepted = [], [], list[TopicFilter]()
        for wanted in request.filters:
            if wanted.topic.startswith(SHARED_PREFIX):  # only 3.1.1 gets here; 5 is refused before
                codes.append(ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
                continue
            try:
                check_filter(wanted.topic)
            except FilterError as fault:
                codes.append(ReasonCode.TOPIC_FILTER_INVALID)
                problems.append(str(fault))
            else:
                codes.append(ReasonCode.SUCCESS)
                accepted.append(wanted)
        try:
            self._grant(connection, accepted, request, now)
        except BadStatement as fault:
            self._warn_of(fault, connection.client_id)
            codes = [ReasonCode(fault.code)] * len(codes)
            problems.append(fault.problem)
        connection.session.suback(request.packet_id, codes, "; ".join(problems) or None)

    def _grant(
        self,
        connection: MqttConnection,
        accepted: list[TopicFilter],
        request: Subscribe,
        now: float,
    ) -> None:
        topics, pairs = [wanted.topic for wanted in accepted], request.properties.user_properties
        stated = wishes(self._broker.name, connection.client_id, topics, pairs)
        for wanted, wish in zip(accepted, stated, strict=True):
            connection.filters[wanted.topic] = wish.id
            self._deliveries.enlist(wish.id, connection, echo=not wanted.no_local)
            self.driver.carry_out(self._broker.subscribe(wish, now), now)

    def _unsubscribe(self, connection: MqttConnection, request: Unsubscribe, now: float) -> None:
        codes = []
        for topic in request.topics:
            known = topic in connection.filters
            codes.append(ReasonCode.SUCCESS if known else ReasonCode.NO_SUBSCRIPTION_EXISTED)
            self._forget(connection, topic, now)
        connection.session.unsuback(request.packet_id, codes)

    def _forget(self, connection: MqttConnection, topic: str, now: float) -> None:
        wish_id = connection.filters.pop(topic, None)
        if wish_id is not None:
            self._deliveries.dismiss(wish_id)
            self.driver.carry_out(self._broker.unsubscribe(wish_id, now), now)

    def _close(self, connection: MqttConnection, closed: Closed, now: float) -> None:
        """The conversation is over: its wishes end, its will is published."""
        for topic in list(connection.filters):
            self._forget(connection, topic, now)
        if self._clients.get(connection.client_id) is connection:
            del self._clients[connection.client_id]
        if closed.will is not None:
            self._publish_will(closed.will, connection.client_id, now)
        if closed.code >= FAULTS and closed.code not in NOT_NEWS:
            peer = connection.peer
            who = f"MQTT client {connection.client_id}".strip() + (f" at {peer[0]}" if peer else "")
            words = f"the connection of {who} is closed: {closed.reason}"
            self.notices.warn(words, words.replace(connection.client_id, ""))
        connection.answer()
        connection.close()
        self._deliveries.touch(connection)

    def _publish_will(self, will: Publish, client_id: str, now: float) -> None:
        message_id = self._broker.message_ids.take()
        message = self._publications.message(message_id, will, client_id)
        self.driver.carry_out(self._broker.publish(message, now), now)

    def _warn_of(self, fault: BadStatement, client_id: str) -> None:
        """By the name of the property: values and clients may differ each time."""
        problem = first_line(fault)
        self.notices.warn(f"client {shown(client_id)} is refused: {problem}", fault.name)
