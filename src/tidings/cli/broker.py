"""`tidings broker`: one live broker, from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidings.live.app import run_broker
from tidings.live.config import BrokerConfig, load


def broker(
    config: Annotated[Path, typer.Argument(help="The broker's configuration, a TOML file")],
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether the file can be used")
    ] = False,
    attached: Annotated[
        bool,
        typer.Option(
            "--attached",
            help="End when standard input does, and report changes of links and subscriptions "
            "as lines of JSON: for programs that start brokers",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Announce in JSON: broker and ports, when it listens")
    ] = False,
) -> None:
    """Run one broker of an overlay: MQTT for clients, links to its neighbours, a trace on disk.

    \b
    A file for a broker with one neighbour; alone, it has no [[neighbour]]:
      name = "n1"
      mqtt_port = 1883
      link_port = 7001
      traces = "traces"
      [[neighbour]]
      name = "n2"
      host = "192.0.2.7"
      port = 7001

    Of each pair the broker whose name is smaller dials. A table [[member]] with host and port is
    enough to join an overlay whose brokers look for links themselves (linking = "random" in the
    table [broker], or a member). SIGTERM or Ctrl-C ends a broker in good order.
    """
    chosen = load(config)
    if check:
        _say_checked(chosen, json)
        return
    run_broker(chosen, attached, json or attached)


def _say_checked(config: BrokerConfig, json: bool) -> None:
    neighbours = [neighbour.name for neighbour in config.neighbour]
    members = [str(member.address()) for member in config.member]
    if json:
        found = {"broker": config.name, "neighbours": neighbours}
        print(msgspec.json.encode(found | ({"members": members} if members else {})).decode())
    else:
        known = ", ".join(neighbours) or "none"
        joins = f", joins by {', '.join(members)}" if members else ""
        print(f"{config.source} can be used: broker {config.name}, neighbours: {known}{joins}.")
