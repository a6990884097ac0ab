"""`tidings`: publish/subscribe that keeps its promises about time."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import pyarrow as pa
import typer

from tidings import __version__
from tidings.cli.analyse import analyse
from tidings.cli.broker import broker
from tidings.cli.compact import compact
from tidings.cli.exit_codes import INTERRUPTED, USER_ERROR
from tidings.cli.learn import learn
from tidings.cli.simulate import simulate
from tidings.cli.study import study
from tidings.cli.sweep import sweep
from tidings.cli.up import up
from tidings.cli.watch import watch
from tidings.core.errors import TidingsError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # markup eats [[neighbour]], and plain help wraps whole paragraphs
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Publish/subscribe that keeps its promises about time.

    \b
    See it run:      tidings up scenarios/harmony.toml --seconds 20
    Ask what if:     tidings simulate scenarios/mesh20.toml --strategy r-tree
    Ask many times:  tidings sweep studies/mesh20.toml
    Read the traces: tidings analyse traces
    Watch it live:   tidings watch traces
    Learn the links: tidings learn traces --out weather.parquet
    Judge a paper:   tidings study run dcrd-fig2 --quick
    Deploy one:      tidings broker broker.toml
    """,
)
# One line each in the list of commands, which would cut longer ones off.
for command, summary in (
    (up, "Bring a scenario up on this machine, with real brokers."),
    (simulate, "Run one scenario in the simulator and print how it went."),
    (sweep, "Simulate every point of a grid, on all cores or a cluster."),
    (analyse, "Compute delivery, traffic and delays from trace rows."),
    (compact, "Gather the small trace files of live brokers."),
    (watch, "Judge every contract while the overlay runs."),
    (learn, "Learn how every link behaves from what was measured."),
    (broker, "Run one broker of an overlay, from one file."),
):
    app.command(short_help=summary)(command)
app.add_typer(study, name="study", short_help="Make a paper's figure again and judge its claims.")


@app.callback(invoke_without_command=True)
def _tidings(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"tidings {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; a user's mistake is one paragraph, never a traceback."""
    try:
        app()
    except (TidingsError, pa.ArrowInvalid) as error:
        _fail(str(error))
    except OSError as error:
        _fail(_problem(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _fail(problem: str) -> NoReturn:
    print(f"tidings: {problem}", file=sys.stderr)
    sys.exit(USER_ERROR)


def _problem(error: OSError) -> str:
    """Which file, where the system says so, and what is the matter with it."""
    if error.filename is None:
        return str(error)
    problem = os.strerror(error.errno) if error.errno else str(error)
    return f"{os.fsdecode(error.filename)}: {problem}."
