"""Several live brokers: messages cross links, and strangers are turned away."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import paho.mqtt.client as paho
import pyarrow.parquet as pq
import pytest
from support.attempts import in_real_time
from support.live import Overlay, PahoClient, an_overlay, eventually

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import PROTOCOL, Hello, Interests
from tidings.core.contract import Wish
from tidings.traces.files import parquet_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("three")


@pytest.fixture(scope="module")
def overlay(folder: Path) -> Iterator[Overlay]:
    with an_overlay(folder, "n1", "n2", "n3") as overlay:
        yield overlay


def works(overlay: Overlay, here: str, there: str) -> None:
    """A message gets from one broker to the other."""
    listener, speaker = PahoClient(overlay.port(there)), PahoClient(overlay.port(here))
    listener.subscribe("works")

    def heard() -> bool:
        speaker.publish("works", b"")
        return bool(listener.messages)

    eventually(heard)
    listener.close()
    speaker.close()


def peer(overlay: Overlay, broker: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", overlay.brokers[broker].link_port), timeout=30)


def answer(stranger: socket.socket) -> bytes:
    """What comes until the broker closes; a reset is a way of closing too."""
    parts = []
    try:
        while part := stranger.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    stranger.close()
    return b"".join(parts)


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
def test_messages_cross_the_overlay_each_once_and_in_order(overlay: Overlay, version: int) -> None:
    speakers = {n: PahoClient(overlay.port(n), f"speaker-{n}", version) for n in overlay.brokers}
    listeners = {n: PahoClient(overlay.port(n), f"listener-{n}", version) for n in overlay.brokers}
    overlay.until_known(0)
    for listener in listeners.values():
        listener.subscribe("news/#")
    overlay.until_known(3)
    for number in range(100):
        for name, speaker in speakers.items():
            speaker.publish(f"news/{name}", str(number))
    for listener in listeners.values():
        eventually(lambda heard=listener.messages: len(heard) >= 300)  # type: ignore[misc]
        for name in speakers:
            payloads = [int(p) for topic, p in listener.messages if topic == f"news/{name}"]
            assert payloads == list(range(100))
    for client in [*speakers.values(), *listeners.values()]:
        client.close()


def test_a_where_filter_holds_across_brokers(overlay: Overlay) -> None:
    low, high = PahoClient(overlay.port("n2"), "low"), PahoClient(overlay.port("n3"), "high")
    overlay.until_known(0)
    low.subscribe("planes", where='height < 3000 and kind == "jet"')
    high.subscribe("planes", where="height >= 3000")
    overlay.until_known(2)
    speaker = PahoClient(overlay.port("n1"), "tower")
    speaker.publish("planes", '{"height": 100}', kind="jet")
    speaker.publish("planes", '{"height": 100}', kind="kite")
    speaker.publish("planes", '{"height": 9000}', kind="jet")
    speaker.publish("planes", "no attributes at all")
    speaker.publish("planes", '{"height": 200}', kind="jet")
    eventually(lambda: len(low.messages) >= 2 and high.messages)
    assert [payload for _, payload in low.messages] == [b'{"height": 100}', b'{"height": 200}']
    assert [payload for _, payload in high.messages] == [b'{"height": 9000}']
    for client in (low, high, speaker):
        client.close()


@pytest.mark.parametrize(
    ("words", "complaint", "answered"),
    [
        (b"\xff\xff\xff\xff", "4294967295 bytes", ""),
        (b"\x00\x00\x00\x02\x93\x01", "no frame", ""),
        (b"\x00\x10\x00\x00" + bytes(5_000), "5004 bytes without a Hello", ""),
        (encode(Hello("n" * 5_000, PROTOCOL)), "'nnnn", "no neighbour"),
        (b"GET / HTTP/1.1\r\n\r\n", "bytes", ""),
        (encode(Hello("stranger", PROTOCOL)), "neighbours here are", "no neighbour"),
        (encode(Hello("n2", PROTOCOL)), "connected already", "connected already"),
        (encode(Hello("n9", PROTOCOL)), "neighbours here are", "no neighbour"),
        (
            encode(Hello("n2")),
            "speaks version 1 of the protocol between brokers, and version 2",
            "",
        ),
        (encode(Interests(1, "n2", 1, 0, 1, ())), "another frame than Hello", ""),
    ],
)
def test_who_does_not_belong_is_turned_away_with_one_line(
    overlay: Overlay, caplog: pytest.LogCaptureFixture, words: bytes, complaint: str, answered: str
) -> None:
    stranger = peer(overlay, "n3")
    stranger.sendall(words)
    said = [frame for frame in Decoder().feed(answer(stranger)) if isinstance(frame, Hello)]
    assert [hello.broker for hello in said] in (["n3", "n3"], ["n3"], [])
    told = "".join(hello.refusal for hello in said)
    assert answered in told if answered else not told
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if complaint in line]) == 1, lines
    works(overlay, "n1", "n3")


def test_a_hello_may_be_followed_by_any_number_of_bytes_in_the_same_read(tmp_path: Path) -> None:
    with an_overlay(tmp_path, "n1", "n2") as overlay:
        overlay.stop("n1")
        eventually(lambda: overlay.status("n2")["links"] == [])
        wishes = tuple(Wish(f"a/{n}") for n in range(1_000))
        words = encode(Hello("n1", PROTOCOL)) + encode(Interests(1, "n1", 1, 0, 1, wishes))
        assert len(words) > 10_000
        early = peer(overlay, "n2")
        early.sendall(words)
        eventually(lambda: overlay.status("n2")["subscriptions"] == 1_000)
        early.close()


def test_a_link_whose_peer_sends_nonsense_ends_alone_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with an_overlay(tmp_path, "n1", "n2", "n3") as overlay:
        overlay.stop("n1")
        eventually(lambda: overlay.status("n3")["links"] == ["n2"])
        impostor = peer(overlay, "n3")
        bad = Wish("a", where="height <")
        frames = (Hello("n1", PROTOCOL), Interests(1, "n1", 1, 0, 1, (bad,)))
        impostor.sendall(b"".join(map(encode, frames)))
        answer(impostor)
        assert any("where predicate" in record.getMessage() for record in caplog.records)
        works(overlay, "n2", "n3")
        overlay.start("n1")
        overlay.until_linked()
        works(overlay, "n1", "n3")


def test_trace_segments_can_be_read_while_brokers_run(overlay: Overlay, folder: Path) -> None:
    works(overlay, "n2", "n1")

    def delivered() -> set[str]:
        files = parquet_files(folder / "traces" / "delivered")
        return {b for file in files for b in pq.ParquetFile(file).read()["broker"].to_pylist()}

    eventually(lambda: "n1" in delivered())


@pytest.mark.timing
def test_emulated_delay_and_loss_are_as_configured(tmp_path: Path) -> None:
    def ages_s(attempt: int) -> list[float]:
        return ages_over_an_emulated_link(tmp_path / str(attempt))

    def judge(ages_s: list[float]) -> None:
        assert median(ages_s) == pytest.approx(0.04, abs=0.02)

    in_real_time(ages_s, judge)


def ages_over_an_emulated_link(folder: Path) -> list[float]:
    """How old messages were when they came over a link that loses every fifth."""
    emulate = {"delay_s": 0.04, "loss_ratio": 0.2}
    pinned = {"estimates": "pinned", "transmissions": 1}
    with an_overlay(
        folder,
        "n1",
        "n2",
        emulate=emulate,
        estimate={"delay_ms": 40},
        broker=pinned,
        started_at=0.0,
    ) as overlay:
        listener, speaker = PahoClient(overlay.port("n2"), "l"), PahoClient(overlay.port("n1"), "s")
        listener.subscribe("t", "end")
        overlay.until_known(2)
        for number in range(500):
            speaker.publish("t", str(number))
            time.sleep(0.001)  # else the last would wait for the first to be dealt with

        def ended() -> bool:
            speaker.publish("end")
            return listener.messages[-1:] == [("end", b"")]

        eventually(ended)  # frames do not overtake each other, so all the others are there or lost
        listener.close()
        speaker.close()
    heard = [topic for topic, _ in listener.messages]
    assert 0.7 < heard.count("t") / 500 < 0.9
    files = parquet_files(folder / "traces" / "delivered")
    return [age_s for file in files for age_s in pq.ParquetFile(file).read()["age_s"].to_pylist()]
