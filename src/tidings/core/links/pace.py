"""How long does a link need for a byte? Learned from acknowledgements, and only while it is busy.

The round trip of a message on an idle link does not show it: a slow link and a long one look the
same. But while messages wait for the link, it is never idle between two acknowledgements, and all
that it does in between is to carry what the second one answers: the time between them, divided by
those bytes, is a sample of the time per byte, whatever the delay. (BBR's delivery rate is measured
in the same way: it takes no sample of a sender that had nothing to send, unless the sample shows a
faster link.)

Acknowledgements that come close together are one sample. Of the last samples the median counts,
weighed by bytes, and for the deviation the median distance from it: one outlier moves neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf

SAMPLES = 32  # the last ones: a change of the link shows after half as many
ENOUGH = 8  # samples; with fewer nothing is claimed about a link
SAMPLE_S, SAMPLE_BYTES = 0.010, 65_536  # a sample has this long or this much, whichever is first
FASTER = 0.5  # of the believed time: an idle link that needs less is not as slow as believed
OF_NORMAL = 1.4826  # deviation over median distance from the median, if the samples are normal


class PaceMeter:
    """The time per byte of one link."""

    def __init__(self, s_per_byte: float = 0.0, deviation_s_per_byte: float = 0.0) -> None:
        """What is believed before there are enough samples."""
        self.s_per_byte, self.deviation_s_per_byte = s_per_byte, deviation_s_per_byte
        self.likely_s_per_byte = s_per_byte  # by however few samples
        self.answered_at = -inf  # when the last acknowledgement came
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES)  # (s per byte, bytes)
        self._busy = False  # whether something waited when it came
        self._taken_s, self._bytes = 0.0, 0  # of the sample that is being gathered

    @property
    def samples(self) -> int:
        return len(self._samples)

    def acknowledged(self, size_bytes: int, most_s: float, waiting: bool, now: float) -> None:
        """Bytes were carried, which cannot have taken longer than `most_s`, as they left no
        earlier; `waiting`: there is more that this link cannot take yet."""
        taken_s = min(now - self.answered_at, most_s)
        slower = taken_s >= FASTER * size_bytes * self.likely_s_per_byte
        if taken_s >= 0.0 and (self._busy or not slower):  # not if a clock was set back
            self._taken_s += taken_s
            self._bytes += size_bytes
            if self._bytes and (self._taken_s >= SAMPLE_S or self._bytes >= SAMPLE_BYTES):
                self._learn()
        self.answered_at, self._busy = now, waiting

    def interrupted(self) -> None:
        """The link was lost: the time until the next acknowledgement is not its own."""
        self._busy, self._taken_s, self._bytes = False, 0.0, 0

    def _learn(self) -> None:
        self._samples.append((self._taken_s / self._bytes, self._bytes))
        self._taken_s, self._bytes = 0.0, 0
        middle = weighted_median(self._samples)
        self.likely_s_per_byte = middle
        if len(self._samples) >= ENOUGH:
            distances = ((abs(pace - middle), size_bytes) for pace, size_bytes in self._samples)
            self.s_per_byte = middle
            self.deviation_s_per_byte = OF_NORMAL * weighted_median(distances)


def weighted_median(weighed: Iterable[tuple[float, int]]) -> float:
    """The least value that half of the weight or more does not exceed; of nothing, 0."""
    ordered = sorted(weighed)
    half = sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        half -= weight
        if half <= 0:
            return value
    return 0.0
