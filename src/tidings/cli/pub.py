"""`tidings pub`: messages to a broker, under a contract."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

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
from tidings.cli.exit_codes import FAILED
from tidings.cli.options import Json
from tidings.cli.standard_input import lines_of_stdin
from tidings.client.connection import ConversationEnded
from tidings.core.errors import ConfigError
from tidings.core.topic import check_topic
from tidings.mqtt.contracts import misspelt
from tidings.mqtt.properties import Properties, UserProperties

STDIN = Path("-")
COMMAND = "pub"  # as errors name it


def pub(
    topic: Annotated[str, typer.Option("--topic", "-t", help="Where to publish")],
    message: Annotated[str | None, typer.Argument(help="What to publish")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Publish this file; - is standard input")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", "-l", help="Each line of the file is a message")
    ] = False,
    count: Annotated[
        int | None, typer.Option(min=1, help="Publish so many times, or so many lines")
    ] = None,
    deadline_ms: Deadline = None,
    price: Price = None,
    late: Late = None,
    reliability: Reliability = None,
    availability: Availability = None,
    durable: Durable = None,
    strategy: Annotated[
        str | None, typer.Option(help="Routing strategy, instead of the broker's")
    ] = None,
    scheduling: Annotated[
        str | None, typer.Option(help="Scheduling policy, instead of the broker's")
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="NAME=VALUE", help="A user property; repeatable"),
    ] = None,
    host: Host = LOCALHOST,
    port: Port = FIRST_PORT,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish messages at a broker, by MQTT 5 and QoS 0, and say what they are worth.

    \b
    One message, in time or never:
      tidings pub -t alerts/storm '{"level": 4}' --deadline-ms 200 --late drop
    A message for each line that a program prints:
      some-program | tidings pub -t lines --lines

    Ends when the broker has taken everything. If it refuses a contract, its reason is printed.
    """
    check_topic(topic)
    source = _source(message, file, lines)
    stated = properties_of(
        COMMAND,
        _own_properties(own),
        deadline_ms=deadline_ms,
        price=price,
        late=late,
        reliability=reliability,
        availability=availability,
        durable=durable,
        strategy=strategy,
        scheduling=scheduling,
    )
    payloads = _lines(source, count) if lines else _repeated(source, count or 1)
    try:
        published = asyncio.run(_publish(BrokerAt(host, port), topic, stated, payloads))
    except ConversationEnded as error:
        print(f"tidings: {error} Not everything was published.", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    if json:
        result = {"broker": f"{host}:{port}", "topic": topic, "published": published}
        print(msgspec.json.encode(result).decode())
    elif not quiet:
        print(f"Published {published} message{'s'[: published != 1]} on {topic}.")


def _source(message: str | None, file: Path | None, lines: bool) -> bytes | Path:
    """What is published: the message itself, or where it comes from."""
    if message is not None and (file is not None or lines):
        raise ConfigError(COMMAND, "MESSAGE", message, "none, with --file or --lines")
    if message is not None:
        return message.encode(errors="surrogateescape")
    if file is None and not lines:
        raise ConfigError(COMMAND, "MESSAGE", "", "a text, or --file FILE, or --lines")
    return file or STDIN


def _own_properties(texts: list[str] | None) -> UserProperties:
    pairs = [(name, value) for name, _, value in (text.partition("=") for text in texts or ())]
    for text in texts or ():
        if "=" not in text:
            raise ConfigError(COMMAND, "--property", text, "name=value")
    for name, meant in misspelt(tuple(pairs)).items():
        raise ConfigError(COMMAND, "--property", name, f"a name of your own, or --{meant}")
    return tuple(pairs)


async def _publish(
    broker: BrokerAt, topic: str, stated: Properties, payloads: AsyncIterator[bytes]
) -> int:
    """Publishes all there is; how many messages that were."""

    async def publish_all() -> int:
        published = 0
        async for payload in payloads:
            await client.publish(topic, payload, stated)
            published += 1
        await client.settle()
        return published

    async with broker as client:
        return await client.while_connected(publish_all())  # input may keep us waiting for ever


async def _repeated(source: bytes | Path, count: int) -> AsyncIterator[bytes]:
    if source == STDIN:
        source = b"".join([line async for line in lines_of_stdin()])
    payload = source.read_bytes() if isinstance(source, Path) else source
    for _ in range(count):
        yield payload


async def _lines(source: bytes | Path, count: int | None) -> AsyncIterator[bytes]:
    """Each line without its end."""
    published = 0
    async for line in _whole_lines(source):
        yield line.removesuffix(b"\n").removesuffix(b"\r")
        published += 1
        if published == count:
            return


async def _whole_lines(source: bytes | Path) -> AsyncIterator[bytes]:
    if source == STDIN:
        async for line in lines_of_stdin():
            yield line
    elif isinstance(source, Path):
        with source.open("rb") as opened:
            for line in opened:
                yield line
