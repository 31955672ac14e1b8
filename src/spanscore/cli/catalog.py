"""`spanscore check`, `list`, `describe` and `schema`: what can be configured, and whether a configuration is right."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from spanscore import config as configuration
from spanscore.cli import OK
from spanscore.plugins import KINDS, names, origin


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser."""
    check = commands.add_parser("check", help="check a configuration", description="Check a configuration file.")
    check.add_argument("config", type=Path, metavar="CONFIG")
    check.set_defaults(run=_check)

    listing = commands.add_parser(
        "list", help="list what can be used", description="List plug-ins, built-in or installed."
    )
    listing.add_argument("kind", nargs="?", choices=KINDS, help="default: all")
    listing.set_defaults(run=_list)

    describe = commands.add_parser(
        "describe", help="explain an evaluator", description="Explain an evaluator or dialect."
    )
    describe.add_argument("type", metavar="TYPE")
    describe.set_defaults(run=_describe)

    schema = commands.add_parser(
        "schema", help="print the JSON Schema of the configuration", description="For editors: a JSON Schema."
    )
    schema.set_defaults(run=_schema)


def _check(arguments: argparse.Namespace) -> int:
    config = configuration.load(arguments.config)
    count = len(config.evaluators)
    print(f"{arguments.config}: right, {count} evaluator{'' if count == 1 else 's'}")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    for kind in [arguments.kind] if arguments.kind else KINDS:
        if not arguments.kind:
            print(f"{kind}:")
        for name in names(kind):
            where = origin(kind, name)
            print(f"{'' if arguments.kind else '  '}{name}{'' if where == 'built-in' else f'  ({where})'}")
    return OK


def _describe(arguments: argparse.Namespace) -> int:
    print(arguments)
    return OK


def _schema(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - every command is called alike
    json.dump(configuration.json_schema(), sys.stdout, indent=2)
    print()
    return OK
