"""The command `taciturn`: its general options, and a function that runs one command.

The other modules of this package add the subcommands. A subcommand imports other packages only when it is
called, so that `taciturn --help` answers at once. `ExitCode` in core/errors.py lists the exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import typer

from ..core.errors import ExitCode, TaciturnError, one_line

app = typer.Typer(
    name="taciturn",
    help="""Train one model across several sites that may not share their records.

    A site is a party with its own records, such as a hospital. The sites add random noise to what they
    exchange, so that the result reveals little about any one record (differential privacy). A job file says
    what the sites compute, and how much it may cost in privacy (epsilon, delta). A certificate states the
    cost of a run, and anyone can check its numbers.

    To begin: `taciturn demo`, or `taciturn init FOLDER`.""",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from ..core.versions import VERSION

        typer.echo(f"taciturn {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="If the command fails, show the traceback.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """The options that are given before the command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and end the process with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is printed as one line, or raised with --debug."""
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]  # users may write it anywhere
    try:
        command = _commands(*app.registered_commands)
        command(rest, prog_name="taciturn")  # always raises SystemExit; its code is 2 after wrong usage
    except SystemExit as end:
        if end.code == ExitCode.INTERRUPTED:  # typer's exit code for a Ctrl-C that no command caught
            print("taciturn: stopped.", file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        print("taciturn: stopped.", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except (TaciturnError, OSError) as error:
        if debug:
            raise
        print(f"taciturn: {_line(error)}", file=sys.stderr)
        return error.exit_code if isinstance(error, TaciturnError) else ExitCode.FAILED
    return ExitCode.DONE


@lru_cache(maxsize=1)
def _commands(*registered: object) -> Any:
    """The parser of all commands. A process that runs many commands, such as a test, makes it only once."""
    return typer.main.get_command(app)


def _line(error: Exception) -> str:
    """The text of an error as one line. An error of the operating system names the file."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}")
    return str(error) if isinstance(error, TaciturnError) else one_line(error)
