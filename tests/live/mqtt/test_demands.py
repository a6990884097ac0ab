"""What cannot be had is said once, in the log, and messages go as well as they can.

Three brokers, every pair linked, 20 ms a link. Links and brokers are taken to be up for 0.99 of all
time: the direct path and that over the third broker are together for 1 - 0.01 (1 - 0.99³) of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Overlay, PahoClient, an_overlay, eventually

BROKER = {"strategy": "qos-multipath", "estimates": "pinned", "harmony": {"failures": "equal"}}
LINK = {"emulate": {"delay_s": 0.02}, "estimate": {"delay_ms": 20}}
MESSAGES = 10


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Overlay]:
    with an_overlay(tmp_path, "n1", "n2", "n3", broker=BROKER, **LINK) as three:
        yield three


@pytest.fixture
def speaker(overlay: Overlay) -> Iterator[PahoClient]:
    client = PahoClient(overlay.port("n1"))
    yield client
    client.close()


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        ({"deadline_ms": "1"}, "No path to n2 meets its deadline: the best takes "),
        (
            {"availability": "0.9999"},
            "Paths to n2 are less available than asked for: 2 of them work",
        ),
    ],
    ids=["deadline", "availability"],
)
def test_what_cannot_be_met_is_logged_once_and_messages_arrive_all_the_same(
    overlay: Overlay,
    speaker: PahoClient,
    caplog: pytest.LogCaptureFixture,
    wish: dict[str, str],
    complaint: str,
) -> None:
    listener = PahoClient(overlay.port("n2"))
    listener.subscribe("t", **wish)
    overlay.until_known(1)
    for number in range(MESSAGES):
        speaker.publish("t", str(number))
    eventually(lambda: len(listener.messages) >= MESSAGES)
    assert sorted(int(payload) for _, payload in listener.messages) == list(range(MESSAGES))
    assert len([r for r in caplog.records if complaint in r.getMessage()]) == 1
    listener.close()


def test_a_destination_without_any_path_is_logged_and_the_rest_is_served(
    overlay: Overlay, speaker: PahoClient, caplog: pytest.LogCaptureFixture
) -> None:
    gone, near = PahoClient(overlay.port("n2")), PahoClient(overlay.port("n3"))
    for listener in (gone, near):
        listener.subscribe("t")
    overlay.until_known(2)
    overlay.stop("n2")
    for name in ("n1", "n3"):
        eventually(lambda n=name: len(overlay.status(n)["links"]) == 1)  # type: ignore[misc]

    def complained() -> bool:
        speaker.publish("t", b"anybody")
        return any("No path to n2 is known" in r.getMessage() for r in caplog.records)

    eventually(complained)
    near.messages.clear()
    speaker.publish("t", b"still here")
    eventually(lambda: ("t", b"still here") in near.messages)
    for listener in (gone, near):
        listener.close()
