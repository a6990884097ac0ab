"""A neighbour that reports nonsense about its links is named in the log, and the rest goes on.

n2 ── n3      n1 is an impostor at n3's door: it says Hello as a broker that n3 is configured
  \\  /       for, and answers whatever it is asked, so that its link looks alive and fast
   n1
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path

import pytest
from support.live import Overlay, PahoClient, an_overlay, eventually

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import (
    PROTOCOL,
    Ack,
    Data,
    Echo,
    Frame,
    Gossip,
    Hello,
    Interests,
    Links,
    Probe,
    Pull,
)
from tidings.core.links.estimates import LinkEstimate

NOTHING_S = 1e-6  # the delay of a link that everybody would like to use
MESSAGES = 20
BROKER = {"strategy": "qos-path", "probe_every_s": 0.1, "advertise_every_s": 0.2}


class Impostor:
    """Speaks the protocol of links as n1, and remembers what it is given."""

    def __init__(self, port: int) -> None:
        self.heard: list[Hello | Frame] = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._incarnation, self._version = int(time.time()), 0  # after the n1 that was there
        self._thread = threading.Thread(target=self._listen)
        self.say(Hello("n1", PROTOCOL))
        self._thread.start()

    def say(self, frame: Hello | Frame) -> None:
        self.shout(encode(frame))

    def report(self, **links: LinkEstimate) -> None:
        """An advertisement of its links, as news."""
        self._version += 1
        said = Links(self._version, "n1", self._incarnation, self._version, tuple(links.items()))
        self.say(said)

    def shout(self, words: bytes) -> None:
        self._socket.sendall(words)

    def was_told_of_itself(self) -> bool:
        """Does n3 tell everybody that it has a link to n1?"""
        told = [frame for frame in self.heard if isinstance(frame, Links) and frame.origin == "n3"]
        return any("n1" in dict(frame.links) for frame in told)

    def was_heard(self) -> bool:
        """All that it reported is acknowledged."""
        return Ack((self._version,)) in self.heard

    def was_shown_out(self) -> bool:
        return not self._thread.is_alive()

    def close(self) -> None:
        self._socket.close()
        self._thread.join()

    def _listen(self) -> None:
        decoder = Decoder()
        try:
            while words := self._socket.recv(65_536):
                for frame in decoder.feed(words):
                    self.heard.append(frame)
                    self._answer(frame)
        except OSError:
            return

    def _answer(self, frame: Hello | Frame) -> None:
        match frame:
            case Probe():
                self.say(Echo(frame.serial))
            case Data() | Interests() | Links() | Pull() | Gossip():
                self.say(Ack((frame.transmission,)))


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Overlay]:
    with an_overlay(tmp_path, "n1", "n2", "n3", broker=BROKER, emulate={"delay_s": 0.02}) as three:
        yield three


def test_nonsense_about_links_is_logged_and_not_believed_and_garbage_ends_the_link(
    overlay: Overlay, caplog: pytest.LogCaptureFixture
) -> None:
    overlay.stop("n1")
    eventually(lambda: overlay.status("n2")["links"] == ["n3"])
    impostor = Impostor(overlay.brokers["n3"].link_port)
    eventually(impostor.was_told_of_itself)
    fast = LinkEstimate(NOTHING_S)
    impostor.report(n2=LinkEstimate(-1.0), n3=LinkEstimate(0.01, s_per_byte=nan))
    impostor.report(n2=LinkEstimate(nan), n3=LinkEstimate(inf))
    impostor.report(n1=fast, n3=fast, n9=fast)
    impostor.report(n2=fast, n3=fast)  # makes sense, but n2 knows nothing of it
    eventually(impostor.was_heard)
    assert log_has(caplog, "'n1' reports nonsense about its links, not used: 'n2', 'n3'.")
    carries_messages(overlay, "n3", "n2")
    assert not any(isinstance(frame, Data) for frame in impostor.heard), "it was believed"
    impostor.shout(b"\xff" * 1_000)
    eventually(impostor.was_shown_out)
    impostor.close()
    assert log_has(caplog, "a link connection from n1 is closed: a frame of 4294967295 bytes")
    carries_messages(overlay, "n2", "n3")
    overlay.start("n1")
    overlay.until_linked()
    carries_messages(overlay, "n1", "n2")


def log_has(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return any(words in record.getMessage() for record in caplog.records)


def carries_messages(overlay: Overlay, here: str, there: str) -> None:
    """As soon as there is a way, each message arrives, once and in order."""
    listener, speaker = PahoClient(overlay.port(there)), PahoClient(overlay.port(here))
    listener.subscribe("works", "knock", deadline_ms="100")
    overlay.until_known(2)

    def knocked() -> bool:
        speaker.publish("knock")
        return bool(listener.messages)

    eventually(knocked)
    for number in range(MESSAGES):
        speaker.publish("works", str(number))
    expected = [str(number).encode() for number in range(MESSAGES)]
    eventually(lambda: len(works(listener)) >= MESSAGES)
    assert works(listener) == expected
    for client in (listener, speaker):
        client.close()
    overlay.until_known(0)


def works(listener: PahoClient) -> list[bytes]:
    return [payload for topic, payload in listener.messages if topic == "works"]
