"""argparse with short errors: one line that suggests the nearest name, and a line that points to the help."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

_USAGE: Final = 2
_END_OF_OPTIONS: Final = "--"
_NUMBER: Final = re.compile(r"-\.?\d")
_WORD_WIDTH: Final = 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest known name for an unknown one.

    Options are never abbreviated: a script that abbreviates breaks with the next option.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's overloads are about namespaces of other types
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; commands parse their own with this as well.

        Unknown options are reported first: argparse would report the arguments that seem to be missing because of them.
        """
        arguments = sys.argv[1:] if args is None else list(args)
        for option in self._options_in(arguments):
            if option not in self._option_string_actions:
                self.error(f"no option {_shown(option)}{_suggested(option, self._option_string_actions)}")
        parsed, left = super().parse_known_args(arguments, namespace)
        if left:
            self.error(f"unexpected argument {_shown(left[0])}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """Print one line and a pointer to the help, and exit with status 2."""
        self.exit(_USAGE, f"{self.prog}: {message.removeprefix('argument ')}\ntry '{self.prog} --help'\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        known = ", ".join(choices)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
            self.error(f"no command {_shown(value)}{_suggested(value, choices) or f' (commands: {known})'}")
        name = "/".join(action.option_strings) or action.metavar or action.dest
        self.error(f"{name}: no {_shown(value)}{_suggested(value, choices)} (choose from {known})")

    def _options_in(self, arguments: Iterable[str]) -> Iterator[str]:
        """Yield the arguments that argparse takes for options, up to a command, whose options are its own."""
        for argument in arguments:
            if argument == _END_OF_OPTIONS:
                return
            if argument.startswith("-") and argument != "-" and not _NUMBER.match(argument) and " " not in argument:
                yield argument.partition("=")[0]
            elif self._subparsers is not None:
                return


def number(least: float, most: float, what: str) -> Callable[[str], float]:
    """Return a function that reads a number in a range; `what` describes the range in words."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= (value := float(text)) <= most:
                return value
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")

    return read


def not_empty(text: str) -> str:
    """Return a text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def path_ending(*suffixes: str) -> Callable[[str], Path]:
    """Return a function that reads a path with one of these suffixes."""

    def read(text: str) -> Path:
        if not text.lower().endswith(suffixes):
            raise argparse.ArgumentTypeError(f"must end in {' or '.join(suffixes)}, not {text!r}")
        return Path(text)

    return read


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names recordings."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, a directory of recordings, or -")


def add_header(parser: argparse.ArgumentParser, use: str) -> None:
    """Add the option `--header`, which can be given several times."""
    parser.add_argument("--header", action="append", type=_name_and_value, default=[], metavar="NAME=VALUE", help=use)


def _name_and_value(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("must be NAME=VALUE")
    return name.strip(), value.strip()


def _suggested(word: str, known: Iterable[str]) -> str:
    from spanscore.messages.nearest import suggestion  # noqa: PLC0415 - difflib is slow to load, and mistakes are rare

    return suggestion(word, known)


def _shown(word: str) -> str:
    return repr(word if len(word) <= _WORD_WIDTH else f"{word[:_WORD_WIDTH]}…")
