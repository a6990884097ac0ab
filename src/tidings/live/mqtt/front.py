"""What do MQTT clients ask of the broker? Requests of sessions in, inputs of the broker out.

A subscription's id is made of broker, client and filter, so subscribing again replaces it; a client
that connects with the identifier of another replaces it. Contracts come from user properties where
an MQTT 5 client states them, else from the topic policies. One timer finds clients that are silent
for too long.
"""

from __future__ import annotations

import asyncio
import logging
from typing import assert_never

from tidings.core.errors import FilterError, first_line
from tidings.core.message import Message
from tidings.core.topic import check_filter
from tidings.live.config import Mqtt
from tidings.live.driver import Driver
from tidings.live.mqtt.connection import MqttConnection
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.mqtt.room import ClientRoom
from tidings.live.mqtt.statements import Publications, wishes
from tidings.live.mqtt.turns import LOOK_EVERY, TURN_S, Turns
from tidings.live.rate_limited import RateLimitedWarnings
from tidings.mqtt.codec import Limits
from tidings.mqtt.contracts import BadStatement, shown
from tidings.mqtt.packets import Connect, Publish, Subscribe, TopicFilter, Unsubscribe
from tidings.mqtt.properties import NO_PROPERTIES
from tidings.mqtt.reasons import ReasonCode
from tidings.mqtt.refusals import SHARED_PREFIX
from tidings.mqtt.session import Closed, Request

WATCH_EVERY_S = 0.5  # keep-alive is a matter of seconds

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
        self._turns = Turns(driver, self.handle)
        self.room = ClientRoom(self._connections, mqtt.max_clients_bytes)
        self._max_filters = mqtt.max_filters_bytes
        self._loop = asyncio.get_running_loop()
        self._unnamed, self._stopped = 0, False
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
        self.room.recount()
        for connection in list(self._connections):
            if connection not in self._turns and (requests := connection.session.tick(now)):
                self.handle(connection, requests, now)
        self._timer = self._loop.call_later(WATCH_EVERY_S, self.watch)

    def flush_notices(self, ending: bool = False) -> None:
        """Tells of what was left out in the log."""
        for lines in (self.notices, self._turned_away, self._deliveries.unfit):
            lines.flush(ending)

    def hush(self) -> None:
        """Listens to no client any more; what is for them is still delivered."""
        self._turns.end()
        for connection in self._connections:
            connection.leave_unread()

    def stop(self) -> None:
        """Disconnects all clients, and tells them why. Wishes for durable messages are not taken
        back: others keep these until this broker is back, and its clients with it."""
        self._stopped = True
        if self._timer:
            self._timer.cancel()
        self._turns.end()
        for connection in list(self._connections):
            code, reason = ReasonCode.SERVER_SHUTTING_DOWN, "the broker is shutting down"
            now = self.driver.clock()
            self.handle(connection, connection.session.close(code, reason), now)

    # ---- requests

    def handle(self, connection: MqttConnection, requests: list[Request], now: float) -> None:
        """Serves all that one read brought, as one round; later, if the connection is slowed."""
        if connection in self._turns:
            connection.held += requests
            return
        self._deliveries.publisher = connection
        with self.driver.round:
            self._serve(connection, requests, now)
            if connection not in self._turns:  # answers keep their place behind what waits
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
                if long and self._turns.put_off(connection, requests[served:], now):
                    return
            else:
                self._serve_one(connection, request, now)

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
            if not self.room.has_room(connection, 0):
                problem = "there is no memory for its will"
                raise BadStatement("will", problem, ReasonCode.QUOTA_EXCEEDED)
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
        self._check_room(connection, sum([wish.size_bytes for wish in stated]))
        for wanted, wish in zip(accepted, stated, strict=True):
            connection.filters.put(wish)
            self._deliveries.enlist(wish.id, connection, echo=not wanted.no_local)
            self.driver.carry_out(self._broker.subscribe(wish, now), now)

    def _check_room(self, connection: MqttConnection, more_bytes: int) -> None:
        in_all_bytes, limit_bytes = connection.filters.size_bytes + more_bytes, self._max_filters
        if in_all_bytes > limit_bytes:
            problem = f"its filters would take {in_all_bytes:,} bytes, accepted are {limit_bytes:,}"
            raise BadStatement("filters", problem, ReasonCode.QUOTA_EXCEEDED)
        if not self.room.has_room(connection, more_bytes):
            problem = "clients take all memory they may"
            raise BadStatement("filters", problem, ReasonCode.QUOTA_EXCEEDED)
        self.room.taken(more_bytes)

    def _unsubscribe(self, connection: MqttConnection, request: Unsubscribe, now: float) -> None:
        codes = []
        for topic in request.topics:
            known = topic in connection.filters
            codes.append(ReasonCode.SUCCESS if known else ReasonCode.NO_SUBSCRIPTION_EXISTED)
            self._forget(connection, topic, now)
        connection.session.unsuback(request.packet_id, codes)

    def _forget(self, connection: MqttConnection, topic: str, now: float) -> None:
        wish = connection.filters.take(topic)
        if wish is not None:
            self._deliveries.dismiss(wish.id)
            if self._stopped and wish.contract.durable:
                return
            self.driver.carry_out(self._broker.unsubscribe(wish.id, now), now)

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
