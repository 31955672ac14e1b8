"""`spanscore check`, `list`, `describe` and `schema`: the possible settings, and the check of a configuration."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from spanscore import config as configuration
from spanscore.cli import OK
from spanscore.cli._columns import side_by_side, width_of
from spanscore.config import Config
from spanscore.contracts.plugins import KINDS, Kind, names, origin
from spanscore.errors import ConfigError
from spanscore.messages.nearest import suggestion
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.receivers.sockets.listening import ListenError

_DOC_WIDTH: Final = 106
_NARROWEST: Final = 20
_BELOW: Final = " " * 6
_ERROR_WIDTH: Final = 500
_EVALUATORS_SHOWN: Final = 8
_MOST_TELLING: Final = 8


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command that the parser is called after."""
    match parser.prog.rpartition(" ")[2]:
        case "check":
            parser.description = (
                "Check a configuration file. The exit status is 2 if it is not valid. "
                "A warning tells why `spanscore serve` would not start with it."
            )
            parser.add_argument("config", type=Path, metavar="CONFIG")
            parser.set_defaults(run=_check)
        case "list":
            parser.description = "List plug-ins, built-in or installed."
            kinds = ", ".join(KINDS)
            parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"{kinds} (default: all)")
            parser.set_defaults(run=_list)
        case "describe":
            parser.description = "Explain an evaluator, dialect, receiver or emitter."
            parser.add_argument(
                "type", metavar="NAME", help="a name of spanscore list, or a program whose spans are read"
            )
            parser.set_defaults(run=_describe)
        case _:
            parser.description = "For editors: a JSON Schema."
            parser.add_argument(
                "--reference", action="store_true", help="print every key with its default instead, as YAML"
            )
            parser.set_defaults(run=_schema)


def _check(arguments: argparse.Namespace) -> int:
    config = configuration.load(arguments.config)
    served = config.for_serve()
    for warning in (*config.doubts(), *_refused(served)):
        print(f"warning: {warning}", file=sys.stderr)
    count = len(config.evaluators)
    named = ", ".join(f"{printable(each.name)} ({each.type})" for each in config.evaluators[:_EVALUATORS_SHOWN])
    more = f" and {count - _EVALUATORS_SHOWN} more" if count > _EVALUATORS_SHOWN else ""
    print(
        f"{arguments.config}: valid, {plural(count, 'evaluator')}: {named}{more}{_monitors(config)}{_outputs(config)}"
    )
    return OK


def _monitors(config: Config) -> str:
    names = list(map(printable, config.monitors))
    more = f" and {len(names) - _EVALUATORS_SHOWN} more" if len(names) > _EVALUATORS_SHOWN else ""
    return f", {plural(len(names), 'monitor')}: {', '.join(names[:_EVALUATORS_SHOWN])}{more}" if names else ""


def _outputs(config: Config) -> str:
    keep = f", keep: {config.keep.mode}" if config.keep else ""
    return f"{keep}, exporters: {', '.join(map(printable, config.exporters))}" if config.exporters else keep


def _refused(config: Config) -> Iterator[str]:
    """Yield why `spanscore serve` refuses to start, or does so without --insecure."""
    from spanscore.receivers.kafka.librdkafka import library  # noqa: PLC0415 - brings the servers
    from spanscore.service.exposure import check_target, exposures, own_addresses  # noqa: PLC0415 - as above

    refused = "`spanscore serve` does not start"
    if "kafka" in config.receivers:
        try:
            library()
        except ConfigError as error:
            yield f"{refused}: {error}"
    with suppress(ListenError):  # an address of the machine on which it will run
        yield from (f"{refused}: {each.refusal}" for each in exposures(config))
        try:
            check_target(config, own_addresses(config), look_up=False)
        except ConfigError as error:
            yield f"{refused}: {error}"


def _list(arguments: argparse.Namespace) -> int:
    kinds = [arguments.kind] if arguments.kind else KINDS
    listed = {kind: [(name, _summary(kind, name)) for name in names(kind)] for kind in kinds}
    longest = max(len(name) for entries in listed.values() for name, _ in entries)
    for kind, entries in listed.items():
        if not arguments.kind:
            print(f"{kind}:")
        indent = "" if arguments.kind else "  "
        for line in side_by_side(entries, width_of(sys.stdout), longest, indent):
            print(line)
    return OK


def _summary(kind: Kind, name: str) -> str:
    """Return the summary of a plug-in in a sentence; for a broken one its error, so that others are still listed."""
    where = origin(kind, name)
    try:
        summary = configuration.describe(name, kind).summary
    except ConfigError as error:
        return printable(str(error), _ERROR_WIDTH)
    return summary if where == "built-in" else f"{summary} ({where})".lstrip()


def _describe(arguments: argparse.Namespace) -> int:
    named = [configuration.describe(arguments.type, kind) for kind in KINDS if arguments.type in names(kind)]
    if not named:
        near = suggestion(arguments.type, (known for each in KINDS for known in names(each)))
        named = [] if near else _telling_of(arguments.type)
        if len(named) != 1:
            is_telling = 0 < len(named) <= _MOST_TELLING
            several = f"; it is in the descriptions of {', '.join(each.name for each in named)}" if is_telling else ""
            message = f"nothing is named {arguments.type!r}{near or several or '; spanscore list shows what there is'}"
            raise ConfigError(message)
    print("\n\n".join("\n".join(_described(each)) for each in named))
    return OK


def _telling_of(word: str) -> list[configuration.Description]:
    """Return the plug-ins whose description has a word: a dialect may read the spans of programs of other names."""
    wanted = re.compile(rf"(?<!\w){re.escape(word.strip())}", re.IGNORECASE)
    found = []
    for kind in KINDS:
        for name in names(kind):
            with suppress(ConfigError):  # one that is broken must not hide the others
                told = configuration.describe(name, kind)
                if word.strip() and wanted.search(told.doc):
                    found.append(told)
    return found


def _described(told: configuration.Description) -> Iterator[str]:
    width = min(width_of(sys.stdout) or _DOC_WIDTH, _DOC_WIDTH)
    origin_note = "" if told.origin == "built-in" else f" of {told.origin}"
    yield f"{told.name}: {told.kind[:-1]}{origin_note}\n\n{told.doc}"
    parameters = told.parameters
    if parameters:
        yield "\nParameters"
    for parameter in parameters:
        default = "optional" if parameter.default is None else f"default {parameter.default}"
        default = "required" if parameter.required else default
        yield f"  {parameter.name}: {parameter.type} ({default})"
        yield textwrap.indent(textwrap.fill(parameter.doc, max(width - len(_BELOW), _NARROWEST)), _BELOW)
    if told.expectation:
        yield f"\nexpected_from fills {told.expectation!r} trace by trace, from a dataset or an attribute."


def _schema(arguments: argparse.Namespace) -> int:
    if arguments.reference:
        print(configuration.reference(), end="")
    else:
        print(json.dumps(configuration.json_schema(), indent=2, ensure_ascii=False))
    return OK
