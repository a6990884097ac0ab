"""How do messages that are alike share a frame? The first is whole, the others say what differs.

Messages of one publisher mostly differ in their number, age and payload only. Most of what it takes
to write and to read a frame is the rest: contract, destinations, path. So what leaves together for
one neighbour is written once for all that are alike and follow each other. Brokers know nothing of
it: what they send and receive are single messages, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import astuple

from tidings.broker.frames import MOST_IN_BUNDLE, Bundle, Data, Frame, Hello
from tidings.core.errors import WireError
from tidings.core.message import Envelope, Message

BUNDLE_BYTES: Final = 65_536  # of payloads: a bundle that has so many is full
WireFrame = Hello | Bundle | Frame


def bundled(frames: Sequence[Hello | Frame]) -> list[WireFrame]:
    """The same frames, of which those that are alike and follow each other are one."""
    found: list[WireFrame] = []
    run = _Run()
    for frame in frames:
        if type(frame) is Data:
            if not run.takes(frame):
                run.end(found)
                run.begin(frame)
        else:
            run.end(found)
            found.append(frame)
    run.end(found)
    return found


def unbundled(bundle: Bundle) -> list[Data]:
    """The messages of a bundle; a `WireError` if it does not say all of each."""
    first, count = bundle.first, len(bundle.transmissions)
    ages_s, ids, payloads = bundle.ages_s, bundle.message_ids, bundle.payloads
    if len(ages_s) != count or len(ids) != count or len(payloads) != count:
        raise WireError("no frame: a bundle does not say all of each message")
    envelope = first.envelope
    message = envelope.message
    topic, contract = message.topic, message.contract
    properties, headers = message.properties, message.headers
    destinations, path, strategy = envelope.destinations, envelope.path, envelope.strategy
    given_up, plan, durable = envelope.given_up, envelope.plan, envelope.durable
    restarts, budgets, doubtful = envelope.restarts, envelope.budgets, envelope.doubtful
    found = [first]
    for place, transmission in enumerate(bundle.transmissions):
        message = Message(ids[place], topic, payloads[place], contract, properties, headers)
        envelope = Envelope(
            message,
            ages_s[place],
            destinations,
            path,
            strategy,
            given_up,
            plan,
            durable,
            restarts,
            budgets,
            doubtful,
        )
        found.append(Data(transmission, envelope))
    return found


class _Run:
    """Messages that follow each other and are alike. Their fields are taken out by one call, which
    costs less than to ask for each by its name."""

    def __init__(self) -> None:
        self._first: Data | None = None
        self._topic = ""
        self._stated: tuple[Any, ...] = ()  # contract, properties and headers of all of them
        self._travels: tuple[Any, ...] = ()  # and the rest of their envelopes
        self._transmissions: list[int] = []
        self._ages_s: list[float] = []
        self._ids: list[int] = []
        self._payloads: list[bytes] = []
        self._payload_bytes = 0

    def begin(self, first: Data) -> None:
        said, travels = _fields(first)
        self._first, self._payload_bytes = first, len(said[2])
        self._topic, self._stated, self._travels = said[1], said[3:], travels[2:]

    def takes(self, frame: Data) -> bool:
        """Takes a message if it is alike and there is room for it."""
        if self._first is None:
            return False
        said, travels = _fields(frame)
        if travels[2:] != self._travels or said[3:] != self._stated or said[1] != self._topic:
            return False
        if len(self._ids) >= MOST_IN_BUNDLE or self._payload_bytes >= BUNDLE_BYTES:
            return False
        self._transmissions.append(frame.transmission)
        self._ages_s.append(travels[1])
        self._ids.append(said[0])
        self._payloads.append(said[2])
        self._payload_bytes += len(said[2])
        return True

    def end(self, found: list[WireFrame]) -> None:
        """Adds what was taken, as one frame."""
        first, self._first = self._first, None
        if first is None:
            return
        if not self._ids:
            found.append(first)
            return
        transmissions, ages_s = tuple(self._transmissions), tuple(self._ages_s)
        found.append(Bundle(first, transmissions, ages_s, tuple(self._ids), tuple(self._payloads)))
        self._transmissions.clear()
        self._ages_s.clear()
        self._ids.clear()
        self._payloads.clear()


def _fields(frame: Data) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Of the message, and of its envelope."""
    travels: tuple[Any, ...] = astuple(frame.envelope)
    return astuple(travels[0]), travels
