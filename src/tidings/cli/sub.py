"""`tidings sub`: messages from a broker, as they come."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.client_options import (
    FIRST_PORT,
    LOCALHOST,
    Availability,
    BrokerAt,
    Deadline,
    Durable,
    Host,
    Late,
    Port,
    Price,
    Quiet,
    Reliability,
    properties_of,
)
from tidings.cli.exit_codes import FAILED, INTERRUPTED
from tidings.client.connection import ConversationEnded
from tidings.core.errors import ConfigError
from tidings.core.topic import check_filter
from tidings.mqtt.packets import Publish
from tidings.mqtt.properties import Properties

EVERYTHING = "#"
COMMAND = "sub"  # as errors name it


class WantedMessages(msgspec.Struct, frozen=True):
    """What is waited for, and how it is shown."""

    topics: list[str]
    count: int | None
    seconds: float | None
    json: bool
    verbose: bool
    quiet: bool

    @property
    def endless(self) -> bool:
        return self.count is None and self.seconds is None


def sub(
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="FILTER",
            help="A topic filter; repeatable [default: #, all topics]",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="PREDICATE", help="Only these, such as 'level >= 3'"),
    ] = None,
    deadline_ms: Deadline = None,
    price: Price = None,
    late: Late = None,
    reliability: Reliability = None,
    availability: Availability = None,
    durable: Durable = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many messages")] = None,
    seconds: Annotated[float | None, typer.Option(help="End after so long")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print the topic before each message")
    ] = False,
    host: Host = LOCALHOST,
    port: Port = FIRST_PORT,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each message")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Subscribe at a broker, by MQTT 5 and QoS 0, and print each message as it comes.

    \b
    Only what matters, and none that is late:
      tidings sub -t 'alerts/#' --where 'level >= 3' --deadline-ms 200 --late drop

    Ends after --count messages, after --seconds, or with Ctrl-C. If fewer than --count have come by
    then, the exit code is not 0.
    """
    wanted = WantedMessages(topic or [EVERYTHING], count, seconds, json, verbose, quiet)
    for one in wanted.topics:
        check_filter(one)
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ConfigError(COMMAND, "--seconds", seconds, "a number of seconds greater than 0")
    stated = properties_of(
        COMMAND,
        where=where,
        deadline_ms=deadline_ms,
        price=price,
        late=late,
        reliability=reliability,
        availability=availability,
        durable=durable,
    )
    try:
        received = asyncio.run(_receive(BrokerAt(host, port), stated, wanted))
    except KeyboardInterrupt:
        raise typer.Exit(0 if wanted.endless else INTERRUPTED) from None
    except ConversationEnded as error:
        print(f"tidings: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:  # whoever reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    if count is not None and received < count:
        came = f"{received} of {count} messages came within {seconds:g} s"
        print(f"tidings: {came}.", file=sys.stderr)
        raise typer.Exit(FAILED)


async def _receive(broker: BrokerAt, stated: Properties, wanted: WantedMessages) -> int:
    """Shows what comes until enough has come or the time is up; how many that were."""
    received = 0
    async with broker as client:
        await client.subscribe(wanted.topics, stated)
        if sys.stderr.isatty() and not wanted.quiet:
            print(f"{_waiting_for(wanted)} at {client.place}.", file=sys.stderr, flush=True)
        try:
            async with asyncio.timeout(wanted.seconds):
                while wanted.count is None or received < wanted.count:
                    _show(await client.message(), wanted)
                    received += 1
        except TimeoutError:
            pass
    return received


def _waiting_for(wanted: WantedMessages) -> str:
    messages = "messages" if wanted.count is None else f"{wanted.count} messages"
    within = "until Ctrl-C" if wanted.seconds is None else f"for {wanted.seconds:g} s"
    return f"Waiting {within} for {messages} on {', '.join(wanted.topics)}"


def _show(message: Publish, wanted: WantedMessages) -> None:
    if wanted.json:
        line = msgspec.json.encode(_described(message))
    else:
        line = (
            message.topic.encode() + b" " + message.payload if wanted.verbose else message.payload
        )
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _described(message: Publish) -> dict[str, Any]:
    """A message as JSON has it: bytes that are no text in base64, of a repeated name all values."""
    described: dict[str, Any] = {"time": time.time(), "topic": message.topic}
    try:
        described["payload"] = message.payload.decode()
    except UnicodeDecodeError:
        described |= {"payload": None, "payload_base64": message.payload}
    own = dict[str, Any]()
    for name, value in message.properties.user_properties:
        own[name] = value if name not in own else [*_values(own[name]), value]
    headers = msgspec.structs.asdict(message.properties)
    del headers["user_properties"]
    stated = {name: value for name, value in headers.items() if value not in (None, ())}
    return described | {"properties": own, "headers": stated}


def _values(known: str | list[str]) -> list[str]:
    return known if isinstance(known, list) else [known]
