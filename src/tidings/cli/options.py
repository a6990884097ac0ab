"""Which options do several commands share? Each is defined here, with its help."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.core.errors import ConfigError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object")]
NoProgressBar = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar")]
Format = Annotated[
    str, typer.Option("--format", metavar="png|pdf|svg", help="Of the figures that are drawn")
]
NoStatus = Annotated[bool, typer.Option("--quiet", "-q", help="No sign of work")]

# Where Spark runs.
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


def spark_settings(conf: list[str] | None) -> dict[str, str]:
    """Spark's settings by name; Spark itself would pass over what it does not understand."""
    pairs = [text.partition("=") for text in conf or ()]
    for (name, sign, _), text in zip(pairs, conf or (), strict=True):
        if not (name.startswith("spark.") and sign):
            raise ConfigError("--conf", "setting", text, "spark.some.name=value")
    return {name: value for name, _, value in pairs}
