"""`spanscore completion`: the script that completes our command line in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from spanscore.cli import COMMANDS, OK, parser_of
from spanscore.cli._overview import SUMMARIES
from spanscore.contracts.plugins import KINDS, names

_HOW: Final = """\
Put the line for your shell where it starts:

  bash  eval "$(spanscore completion bash)"     in ~/.bashrc
  zsh   eval "$(spanscore completion zsh)"      in ~/.zshrc, below compinit
  fish  spanscore completion fish | source      in ~/.config/fish/config.fish
"""
_FILES: Final = frozenset({"FILE", "CONFIG"})
_PLUG_IN: Final = "NAME"


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = _HOW
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script and return the exit status."""
    import shtab  # noqa: PLC0415 - no other command needs it

    parser = parser_of(COMMANDS)
    for action in _actions(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab looks for it on argparse's actions
        elif action.metavar == _PLUG_IN and not action.option_strings:
            action.choices, action.help = [name for kind in KINDS for name in names(kind)], None
    print(shtab.complete(parser, arguments.shell))
    return OK


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments and options of a parser and of its commands; shells show one line for each command."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them; shtab goes it, too
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for name, command in action.choices.items():
                command.description = SUMMARIES[name]
                yield from _actions(command)
