"""`tidings`: publish/subscribe that keeps its promises about time."""

from __future__ import annotations

import sys

import typer

from tidings import __version__
from tidings.cli.analyse import analyse
from tidings.cli.broker import broker
from tidings.cli.simulate import simulate
from tidings.cli.sweep import sweep
from tidings.cli.up import up
from tidings.core.errors import TidingsError

USER_ERROR = 2

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Publish/subscribe that keeps its promises about time.

    \b
    See it run:      tidings up scenarios/harmony.toml --seconds 20
    Ask what if:     tidings simulate scenarios/mesh20.toml --strategy r-tree
    Ask many times:  tidings sweep studies/mesh20.toml
    Read the traces: tidings analyse traces
    Deploy one:      tidings broker broker.toml
    """,
)
for command in (up, simulate, sweep, analyse, broker):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _tidings(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"tidings {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; a user's mistake is one paragraph, never a traceback."""
    try:
        app()
    except TidingsError as error:
        print(f"tidings: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
