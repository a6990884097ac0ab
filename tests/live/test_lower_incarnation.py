"""A live broker that is restarted with a lower number than before is heard again."""

import signal
from pathlib import Path

import pytest
from support.broker_programs import BrokerProgram, a_line_of
from support.live import PahoClient, eventually

from tidings.live.server import INCARNATIONS_SINCE, UNDATED_INCARNATIONS, _incarnation

BEFORE = 1_000


@pytest.fixture
def brokers(tmp_path: Path) -> dict[str, BrokerProgram]:
    """n1 ── n2 ── n3"""
    programs = a_line_of(tmp_path, "n1", "n2", "n3")
    for program in programs.values():
        program.start(incarnation=BEFORE)
    return programs


def client(broker: BrokerProgram) -> PahoClient:
    return PahoClient(broker.ready()["mqtt_port"])


def arrives(here: BrokerProgram, there: BrokerProgram, topic: str) -> None:
    """Who subscribes there is heard of here, and ten messages in a row are delivered there."""
    listener, speaker = client(there), client(here)
    listener.subscribe(topic)

    def heard() -> bool:
        speaker.publish(topic, "knock")
        return bool(listener.messages)

    eventually(heard)
    for number in range(10):
        speaker.publish(topic, str(number))
    expected = [str(number).encode() for number in range(10)]
    eventually(lambda: [p for _, p in listener.messages if p != b"knock"] == expected)
    listener.close()
    speaker.close()


@pytest.mark.parametrize("victim", ["n2", "n3"])
@pytest.mark.parametrize("incarnation", [5, BEFORE])
def test_a_broker_restarted_with_a_lower_incarnation_in_its_file_is_heard(
    brokers: dict[str, BrokerProgram], victim: str, incarnation: int
) -> None:
    arrives(brokers["n1"], brokers["n3"], "before/n3")
    arrives(brokers["n3"], brokers["n1"], "before/n1")
    for life in range(2):
        brokers[victim].end(signal.SIGKILL)
        brokers[victim].start(incarnation=incarnation)
        arrives(brokers["n3"], brokers["n1"], f"after/n1/{life}")
        arrives(brokers["n1"], brokers["n3"], f"after/n3/{life}")
        arrives(brokers["n1"], brokers["n2"], f"after/n2/{life}")


def test_a_clock_from_before_all_incarnations_does_not_give_the_same_one_each_time() -> None:
    drawn = {_incarnation(0.0) for _ in range(20)}
    assert len(drawn) > 10
    assert all(1 <= incarnation <= UNDATED_INCARNATIONS for incarnation in drawn)
    assert _incarnation(INCARNATIONS_SINCE + 1_000_000.0) == 4_000_000
