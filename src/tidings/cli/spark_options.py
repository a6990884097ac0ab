"""Where do Spark's commands run? The options that all of them share."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.core.errors import ConfigError

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark's master, as spark://HOST:PORT [default: all cores of this machine]",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated"),
]


def settings(conf: list[str] | None) -> dict[str, str]:
    """Spark's settings by name; Spark itself would pass over what it does not understand."""
    pairs = [text.partition("=") for text in conf or ()]
    for (name, sign, _), text in zip(pairs, conf or (), strict=True):
        if not (name.startswith("spark.") and sign):
            raise ConfigError("--conf", "setting", text, "spark.some.name=value")
    return {name: value for name, _, value in pairs}
