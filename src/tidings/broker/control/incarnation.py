"""How is a broker heard again that others know by a higher number? It outbids its own past.

Brokers believe the highest incarnation of a broker. A broker that starts with a lower one than it
had before (its clock was set back) hears from its neighbours what its former life said, takes an
incarnation above that, and tells everything anew, as OSPF does with its own old reports (RFC 2328,
section 13.4). Two brokers of one name outbid each other without end: ever more slowly.
"""

from __future__ import annotations

from math import inf

from tidings.core.message_ids import MessageIds
from tidings.core.ranges import MOST_WHOLE

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 60.0  # between two times; the first time there is none


class OwnIncarnation:
    """By which number one broker is known, and when it takes a higher one."""

    def __init__(self, number: int, message_ids: MessageIds) -> None:
        """`message_ids` follow it: those of a number that comes again have been given before."""
        self.number, self._message_ids = number, message_ids
        self.rises_at = inf  # when it is to take a higher number
        self._heard = -1  # the highest that is to be outbid
        self._pause_s, self._not_before = 0.0, -inf

    def outdone(self, heard: int, now: float) -> str:
        """Somebody tells of us what this life has not said, under this incarnation; what a person
        should know of it."""
        known = "others know this broker by something it did not say"
        if heard >= MOST_WHOLE:
            return (
                f"{known}: incarnation {heard} cannot be outbid, because no number is higher. The "
                "brokers that believe it have to be started again before they hear this one."
            )
        self._heard = max(self._heard, heard)
        self.rises_at = max(now, self._not_before)
        return (
            f"{known}: incarnation {heard} was an earlier life of it, and its clock was set back "
            "since, or another broker has its name. It takes a higher incarnation to be heard."
        )

    def rise(self, now: float) -> int:
        """The number from now on."""
        self.number, self.rises_at = max(self.number, self._heard) + 1, inf
        self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
        self._not_before = now + self._pause_s
        self._message_ids.begin(self.number)
        return self.number
