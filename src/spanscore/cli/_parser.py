"""argparse with errors as people know them: one line that names what was meant, and a line that leads to the help."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from spanscore.wording.nearest import suggestion

_USAGE: Final = 2
_END_OF_OPTIONS: Final = "--"
_NUMBER: Final = re.compile(r"-\.?\d")
_WORD_WIDTH: Final = 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and which knows the nearest name of what it does not know.

    Options are never abbreviated: a script that abbreviates breaks with the next option.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's overloads are about namespaces of other types
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; commands parse their own with this as well.

        What is unknown is looked for first: argparse would rather complain of what seems to be missing because of it.
        """
        arguments = sys.argv[1:] if args is None else list(args)
        for option in self._options_in(arguments):
            if option not in self._option_string_actions:
                self.error(f"no option {_shown(option)}{suggestion(option, self._option_string_actions)}")
        parsed, left = super().parse_known_args(arguments, namespace)
        if left:
            self.error(f"unexpected argument {_shown(left[0])}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """Print one line and where the help is, and end with status 2."""
        self.exit(_USAGE, f"{self.prog}: {message.removeprefix('argument ')}\ntry '{self.prog} --help'\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        known = ", ".join(choices)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
            self.error(f"no command {_shown(value)}{suggestion(value, choices) or f' (commands: {known})'}")
        name = "/".join(action.option_strings) or action.metavar or action.dest
        self.error(f"{name}: no {_shown(value)}{suggestion(value, choices)} (choose from {known})")

    def _options_in(self, arguments: Iterable[str]) -> Iterator[str]:
        """Yield what argparse takes for options; those behind a command are the command's."""
        for argument in arguments:
            if argument == _END_OF_OPTIONS:
                return
            if argument.startswith("-") and argument != "-" and not _NUMBER.match(argument) and " " not in argument:
                yield argument.partition("=")[0]
            elif self._subparsers is not None:
                return


def _shown(word: str) -> str:
    return repr(word if len(word) <= _WORD_WIDTH else f"{word[:_WORD_WIDTH]}…")
