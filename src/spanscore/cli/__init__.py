"""The command line: a file for each command."""

from __future__ import annotations

import argparse
import atexit
import gc
import sys
from collections.abc import Collection, Container, Sequence
from importlib import import_module
from typing import Final

from spanscore import __version__
from spanscore.cli._columns import width_of
from spanscore.cli._overview import SUMMARIES, overview
from spanscore.cli._parser import Parser
from spanscore.cli._standard_streams import discard, outlive_readers
from spanscore.errors import SpanscoreError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
_COLLECT_AFTER: Final = (200_000, 20, 100)
"""For the garbage collector: loaded code stays, and spans have no cycles. Collections are
rare, as each looks at all spans in memory: in `serve` at half load, one in 12 s or none; after 50,000 objects, nine."""
_OF_THEIR_OWN: Final = (
    *("demo", "serve", "record", "score", "explain"),
    *("golden", "learn", "diff", "agree", "watch", "fetch", "send"),
)
COMMANDS: Final = {
    **{name: name for name in _OF_THEIR_OWN},
    **dict.fromkeys(("check", "list", "describe", "schema"), "catalog"),
    "completion": "completion",
    "mcp": "mcp_server",
}
"""The module of each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: 0 success, 1 failure, 2 usage or configuration, 3 inconclusive."""
    gc.set_threshold(*_COLLECT_AFTER)
    atexit.register(gc.freeze)  # at exit Python looks for garbage, for a fifth of the time of a short command
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["serve"]:
        from spanscore.cli._service_manager import hold_hangups  # noqa: PLC0415 - not loaded by the other commands

        hold_hangups()  # before all that takes time
        outlive_readers("stderr")  # its emitter `console` counts the lines that standard output did not take
    else:
        outlive_readers("stdout", "stderr")
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    is_known = bool(arguments) and arguments[0] in COMMANDS
    try:
        parsed = parser_of(arguments, arguments[:1] if is_known else COMMANDS).parse_args(arguments)
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
        return INTERRUPTED
    return status


def _flush() -> None:
    """Write buffered text to standard output; if its reader has left, discard it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout.fileno())


def parser_of(asked: Container[str], known: Collection[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the known commands. Only the commands in `asked` are loaded, the others have no options."""
    parser = _Main(prog="spanscore")
    parser.add_argument("--version", action="version", version=f"spanscore {__version__}")
    parser.set_defaults(run=_overview)
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name in known:
        command = commands.add_parser(name, help=SUMMARIES[name])
        if name in asked:
            import_module(f"spanscore.cli.{COMMANDS[name]}").define(command)
    return parser


class _Main(Parser):
    def format_help(self) -> str:
        """Return the commands in groups; argparse would list them in one."""
        return overview(width_of(sys.stdout))


def _overview(_arguments: argparse.Namespace) -> int:
    print(overview(width_of(sys.stdout)), end="")
    return OK
