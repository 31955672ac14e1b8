"""The command line: `spanscore COMMAND`. One file for each command or family of commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from spanscore.cli._columns import width_of
from spanscore.cli._overview import overview
from spanscore.cli._parser import Parser
from spanscore.cli._service_manager import hold_hangups
from spanscore.cli._standard_streams import discard, outlive_readers
from spanscore.errors import SpanscoreError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
_INTERRUPTED: Final = 130
_SERVE: Final = "serve"
_HELP: Final = "help"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: 0 all is well, 1 something failed, 2 usage or configuration."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == [_SERVE]:
        hold_hangups()  # before all that takes time
        outlive_readers("stderr")  # its emitter `console` counts the lines that standard output did not take
    else:
        outlive_readers("stdout", "stderr")
    if arguments[:1] == [_HELP]:
        arguments = [*arguments[1:2], "--help"]
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
        _flush()
    except SpanscoreError as error:
        print(error, file=sys.stderr)
        return USAGE
    except (OSError, UnicodeEncodeError) as error:
        print(f"spanscore: {error}", file=sys.stderr)
        discard(sys.stdout.fileno())  # Python would complain once more when it flushes at exit
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _flush() -> None:
    """Write what is left to standard output; if its reader has left, discard it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    # Imported here, so that `import spanscore.cli` by the entry point costs nothing before the arguments are known.
    from spanscore.cli import catalog, completion, demo, diff, explain, fetch, golden, learn, record, score, send, serve  # noqa: PLC0415

    parser = _Main(prog="spanscore")
    parser.add_argument("--version", action="version", version=f"spanscore {version('spanscore')}")
    parser.set_defaults(run=_overview)
    commands: argparse._SubParsersAction[argparse.ArgumentParser]
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for command in (demo, serve, record, score, explain, golden, learn, diff, fetch, send, catalog):
        command.add_to(commands)
    completion.add_to(commands, parser)
    return parser


class _Main(Parser):
    def format_help(self) -> str:
        """Return what there is, in groups, where argparse would list the commands in one."""
        return overview(width_of(sys.stdout))


def _overview(_arguments: argparse.Namespace) -> int:
    print(overview(width_of(sys.stdout)), end="")
    return OK
