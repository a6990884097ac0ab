"""Who hears that a contract was broken? Whoever subscribes to `$tidings/violations/#`.

A window in which too few messages were on time becomes a message on `$tidings/violations/<topic>`,
with the window as JSON. Topics that begin with `$` belong to the server: `#` alone does not match
them, so ordinary listeners do not get them. A broker that is away does not stop the watch: what
could not be published is tried again with the next windows, and once more at the end. What is left
then is counted in a warning, and no later watch publishes it. After a restart a message may come
again; its `id` is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock

import msgspec

from tidings.core.errors import TopicError
from tidings.core.topic import check_topic
from tidings.pipeline.source.publisher import (
    MqttPublisher,
    PublishError,
    UnfitMessage,
    broker_place,
)
from tidings.pipeline.transforms.windows import Window

VIOLATIONS = "$tidings/violations/"
PATIENCE_S = 1.0  # for a connection, while the stream waits
MAX_UNPUBLISHED = 10_000  # of a broker that stays away; the oldest are given up


class ViolationPublisher:
    """Publishes violations to one broker."""

    def __init__(self, url: str, target: float, warn: Callable[[str], None]) -> None:
        broker_place(url)  # finds a mistake now
        self._url, self._target, self._warn = url, target, warn
        self._unpublished: deque[Window] = deque()
        self.published, self.given_up, self._reachable = 0, 0, True
        self._one_at_a_time = Lock()  # the stream may still publish when the end is asked for

    def publish(self, windows: Iterable[Window]) -> None:
        """Publishes those that violate, and what was left over."""
        with self._one_at_a_time:
            self._unpublished.extend(window for window in windows if window.violates(self._target))
            while len(self._unpublished) > MAX_UNPUBLISHED:
                self._unpublished.popleft()
                self.given_up += 1
            if self._unpublished:
                self._try()

    def end(self) -> None:
        """Tries a last time, and says how much was not published."""
        self.publish(())
        if missing := self.given_up + len(self._unpublished):
            what = "1 violation was" if missing == 1 else f"{missing:,} violations were"
            self._warn(f"{what} not published.")

    def _try(self) -> None:
        try:
            published = self._sent()
        except PublishError as problem:
            if self._reachable:
                self._warn(f"violations wait until they can be published: {problem}")
            self._reachable = False
        else:
            self._reachable = True
            self.published += published
            self._unpublished.clear()

    def _sent(self) -> int:
        """How many the broker has taken; one that cannot be published does not hold up others."""
        unfit = []
        with MqttPublisher(self._url, PATIENCE_S) as publisher:
            for window in self._unpublished:
                try:
                    publisher.publish(violation_topic(window), self._payload(window), ())
                except UnfitMessage as problem:
                    unfit.append(problem)
            publisher.finish()
        for each in unfit:
            self._warn(f"a violation is given up: {each}.")
        self.given_up += len(unfit)
        return len(self._unpublished) - len(unfit)

    def _payload(self, window: Window) -> bytes:
        named = {"id": window.id, "violated": True, "target": self._target}
        return msgspec.json.encode(named | msgspec.structs.asdict(window))


def violation_topic(window: Window) -> str:
    """Where it is published; at the root, if its topic is too long for the longer name."""
    topic = VIOLATIONS + window.topic
    try:
        check_topic(topic)
    except TopicError:
        return VIOLATIONS.rstrip("/")
    return topic
