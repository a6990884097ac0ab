"""Which options do `tidings pub` and `tidings sub` share? Where the broker is, and the contract.

A contract is stated by the user properties of `mqtt.contracts`: each option has the name of one,
and its text is checked as a broker would. Names of strategies and policies are left to the broker,
which knows its own.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.client.connection import BrokerUnreachable, MqttClient
from tidings.core.errors import ConfigError
from tidings.mqtt.contracts import STATEMENTS, property_text
from tidings.mqtt.properties import NO_PROPERTIES, Properties, UserProperties

LOCALHOST = "127.0.0.1"
FIRST_PORT = 18_831  # of `make run`, as scenarios have it in live.mqtt_port

Host = Annotated[str, typer.Option("--host", help="Where the broker is")]
Port = Annotated[int, typer.Option("--port", "-p", min=1, max=65_535, help="Its MQTT port")]
Deadline = Annotated[
    str | None,
    typer.Option("--deadline-ms", metavar="MS", help="The age at which a message is late"),
]
Price = Annotated[
    str | None, typer.Option("--price", metavar="NUMBER", help="What it earns in time")
]
Late = Annotated[
    str | None,
    typer.Option("--late", metavar="deliver|drop", help="What becomes of it when it is late"),
]
Reliability = Annotated[
    str | None,
    typer.Option("--reliability", metavar="RATIO", help="Least probability of arrival"),
]
Availability = Annotated[
    str | None,
    typer.Option("--availability", metavar="RATIO", help="Least probability of a path"),
]
Durable = Annotated[
    bool | None,
    typer.Option("--durable/--not-durable", help="Keep it until it is delivered or late"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing about it")]


def properties_of(command: str, own: UserProperties = (), **stated: object) -> Properties:
    """The properties that state what was typed, and the user's own; none if nothing was."""
    pairs = list(own)
    for field, value in stated.items():
        if value is None:
            continue
        name, text = field.replace("_", "-"), property_text(value)
        statement = STATEMENTS[name]
        try:
            statement.read(text)
        except ValueError:
            raise ConfigError(command, f"--{name}", value, statement.accepted) from None
        pairs.append((name, text))
    return Properties(user_properties=tuple(pairs)) if pairs else NO_PROPERTIES


class BrokerAt(MqttClient):
    """A connection for a person, who is told how to start a broker where there is none."""

    async def __aenter__(self) -> MqttClient:
        try:
            return await super().__aenter__()
        except BrokerUnreachable as error:
            start = f"`make run` starts some on this machine, the first at port {FIRST_PORT}"
            advice = f"{start}, `tidings broker FILE` starts one; --host and --port name others"
            raise BrokerUnreachable(f"{error} {advice}.") from None
