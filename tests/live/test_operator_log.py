"""What an operator reads in the log of a broker process: few lines, each with its reason."""

from __future__ import annotations

import json
import signal
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support.broker_programs import BrokerProgram, a_line_of
from support.live import free_ports

from tidings.broker.codec import encode
from tidings.broker.frames import PROTOCOL, Echo, Hello
from tidings.broker.settings import Settings
from tidings.live.config import BrokerConfig, Log, Neighbour
from tidings.mqtt.codec import encode as mqtt_encode
from tidings.mqtt.packets import MQTT_5, Connect, Pingreq

FLOOD = 300
PROBING = Settings(probe_every_s=0.1, probe_timeout_s=0.1)


def alone(folder: Path, *neighbours: Neighbour, log: tuple[Log, ...] = ()) -> BrokerProgram:
    config = BrokerConfig(
        name="n1", mqtt_port=0, traces=str(folder), neighbour=neighbours, log=log, flush_s=0.1
    )
    program = BrokerProgram(config, folder)
    program.start()
    return program


def reset(peer: socket.socket) -> None:
    """Ends a connection so that the other end is told that it was reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def until_closed(peer: socket.socket) -> None:
    try:
        while peer.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    peer.close()


# ---- who cannot be reached


def test_a_neighbour_that_cannot_be_reached_is_named_with_the_reason_and_not_too_often(
    tmp_path: Path,
) -> None:
    (closed,) = free_ports(1)
    unknown, misspelt = "no-such-host.invalid", "a..b"
    broker = alone(
        tmp_path,
        Neighbour(name="n2", host=unknown, port=7001),
        Neighbour(name="n3", host="127.0.0.1", port=closed),
        Neighbour(name="n4", host=misspelt, port=7001),
    )
    assert broker.logged("no link to n2", unknown, "does not resolve", "dialled again in")
    assert broker.logged("no link to n3", str(closed), "nothing listens there", "dialled again in")
    assert broker.logged("no link to n4", misspelt, "name that a host can have", "dialled again in")
    # Whoever dials a sixth time has told of five failures, of two kinds at most (ended or reset).
    # So of one kind there were three: one is written, and the last one tells of one more.
    with socket.create_server(("127.0.0.1", closed)) as listener:
        for _ in range(6):
            listener.accept()[0].close()
    broker.end()
    assert broker.logged("no link to n3", "more like it left out")


def test_standard_output_is_for_programs_and_standard_error_tells_where_it_listens(
    tmp_path: Path,
) -> None:
    broker = alone(tmp_path, Neighbour(name="n2", host="a..b", port=7001))
    assert broker.logged("no link to n2")
    ready = broker.ready()
    assert broker.logged(f"serves MQTT on 127.0.0.1:{ready['mqtt_port']}", str(ready["link_port"]))
    broker.end()
    assert [json.loads(line)["ready"] for line in broker.said()] == ["n1"]


# ---- links that come and go


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, BrokerProgram]:
    return a_line_of(tmp_path, "n1", "n2", broker=PROBING)


def test_a_link_is_told_when_it_is_up_down_and_up_again(pair: dict[str, BrokerProgram]) -> None:
    pair["n2"].start()
    pair["n1"].start()
    assert pair["n1"].logged("link to n2 (127.0.0.1:", "is up", "s after the start")
    assert pair["n2"].logged("link to n1 (127.0.0.1:", "is up", "s after the start")
    pair["n2"].end(signal.SIGKILL)
    assert pair["n1"].logged("link to n2 is down: ")
    pair["n2"].start()
    assert pair["n1"].logged("link to n2", "is up", "s after it was lost")
    pair["n2"].end()
    assert pair["n1"].logged("n2 is down: the other end closed it")


def test_a_neighbour_that_says_nothing_any_more_is_told_though_tcp_is_content(
    pair: dict[str, BrokerProgram],
) -> None:
    pair["n2"].start()
    pair["n1"].start()
    pair["n1"].logged("link to n2", "is up")
    pair["n2"].send(signal.SIGSTOP)
    assert pair["n1"].logged("link to n2 is silent", "probes in a row had no answer")
    pair["n2"].send(signal.SIGCONT)
    assert pair["n1"].logged("link to n2 answers again, after")


def test_a_neighbour_that_hangs_is_suspect_without_any_setting(tmp_path: Path) -> None:
    hanging = a_line_of(tmp_path, "n1", "n2")
    hanging["n2"].start()
    hanging["n1"].start()
    hanging["n1"].logged("link to n2", "is up")
    hanging["n2"].send(signal.SIGSTOP)
    assert hanging["n1"].logged("link to n2 is silent", "asked again and again", "said nothing for")
    hanging["n2"].send(signal.SIGCONT)
    assert hanging["n1"].logged("link to n2 answers again, after")


def test_a_neighbour_that_comes_and_goes_without_end_is_counted(
    pair: dict[str, BrokerProgram],
) -> None:
    pair["n2"].start()
    place = "127.0.0.1", pair["n2"].ready()["link_port"]
    for _ in range(FLOOD // 3):
        peer = socket.create_connection(place, timeout=60)
        peer.sendall(encode(Hello("n1", PROTOCOL)))
        assert peer.recv(1)
        peer.shutdown(socket.SHUT_WR)
        until_closed(peer)
    pair["n2"].end()
    lines = [line for line in pair["n2"].log() if "link to n1" in line]
    assert len(lines) < 40, lines
    assert "more like it left out" in lines[-1]


def test_a_broker_that_ends_closes_in_order_though_its_neighbour_has_more_to_say(
    pair: dict[str, BrokerProgram],
) -> None:
    pair["n2"].start()
    peer = socket.create_connection(("127.0.0.1", pair["n2"].ready()["link_port"]), timeout=60)
    peer.sendall(encode(Hello("n1", PROTOCOL)))
    assert pair["n2"].logged("link to n1", "is up")
    answers, has_ended = encode(Echo(1)) * 10_000, threading.Event()

    def talk() -> None:
        with suppress(OSError):
            while not has_ended.is_set():
                peer.sendall(answers)

    talking = threading.Thread(target=talk)
    with peer:
        talking.start()
        pair["n2"].send(signal.SIGTERM)
        try:
            while peer.recv(65_536):  # raises if the connection is reset
                pass
        finally:
            has_ended.set()
            talking.join()
    assert pair["n2"].end() == 0


# ---- who is refused


def test_refusals_are_told_with_their_reason_and_counted(tmp_path: Path) -> None:
    broker = alone(tmp_path)
    link, mqtt = broker.ready()["link_port"], broker.ready()["mqtt_port"]
    for number in range(FLOOD):
        for words in (b"\xff\xff\xff\xff", encode(Hello(f"stranger-{number}", PROTOCOL))):
            peer = socket.create_connection(("127.0.0.1", link), timeout=60)
            peer.sendall(words)
            until_closed(peer)
        client = socket.create_connection(("127.0.0.1", mqtt), timeout=60)
        client.sendall(mqtt_encode(Pingreq(), MQTT_5))  # before any CONNECT
        until_closed(client)
    broker.end()
    assert broker.logged("link connection from 127.0.0.1", "closed: a frame of 4294967295 bytes")
    assert broker.logged("link connection from 127.0.0.1", "it says it is 'stranger-0'")
    assert broker.logged("MQTT client at 127.0.0.1 is closed", "PINGREQ is not expected")
    assert len(broker.logged("left out")) >= 3
    assert len(broker.log()) < 200, len(broker.log())


def test_a_clients_name_cannot_forge_a_line(tmp_path: Path) -> None:
    broker = alone(tmp_path)
    client = socket.create_connection(("127.0.0.1", broker.ready()["mqtt_port"]), timeout=60)
    client.sendall(mqtt_encode(Connect(MQTT_5, "x\nn1: all is well"), MQTT_5) * 2)
    until_closed(client)
    assert broker.logged("MQTT client", "CONNECT is not expected")
    broker.end()
    assert not [line for line in broker.log() if line.startswith("n1: all is well")]


# ---- readers of logs


def test_a_reader_that_resets_its_connection_leaves_no_traceback(tmp_path: Path) -> None:
    broker = alone(tmp_path, log=(Log(name="all", topic="#"),))
    place = "127.0.0.1", broker.ready()["log_port"]
    ask = b"GET /log HTTP/1.1\r\n\r\n"
    for _ in range(FLOOD // 3):
        for words in (b"", b"GET /lo", ask, 50 * ask, b"POST / HTTP/1.1\r\n\r\n"):
            reader = socket.create_connection(place, timeout=60)
            reader.sendall(words)
            reset(reader)
    with socket.create_connection(place, timeout=60) as reader:
        reader.sendall(ask)
        assert reader.recv(65_536).startswith(b"HTTP/1.1 200 OK")
    assert broker.end() == 0
    assert len(broker.log()) == 1, broker.log()
