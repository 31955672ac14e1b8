"""`spanscore diff`: whether a new version is better or worse than the one before, and how its behaviour differs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from spanscore.cli._parser import not_empty, number
from spanscore.cli._selection import add_evaluators, configured
from spanscore.errors import InputError
from spanscore.reports.cases import CASE_KEYS

_FORMATS: Final = ("table", "json", "markdown")
"""The forms of standard output."""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Compare the recorded runs of two versions: by case if both ran the same cases, else all together. Reports for "
        "each evaluator whether the new version is better, the same within the margin, worse, or whether there are "
        "too few runs, and which calls changed. Exit status: 0 the same or better, 1 worse, or an evaluator scored no "
        "run, or a recording could not be read, 2 usage, 3 inconclusive."
    )
    parser.add_argument("base", metavar="BASE", help="a recording, or a directory of recordings, of the version before")
    parser.add_argument("new", metavar="NEW", help="the same of the new version")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration (default: tool-call health)")
    add_evaluators(parser)
    parser.add_argument(
        "--key",
        type=not_empty,
        metavar="ATTR",
        help=(
            "the attribute of the root span or the resource that names the case "
            f"(default: the first of {', '.join(CASE_KEYS)} by which both have the same)"
        ),
    )
    parser.add_argument(
        "--margin",
        type=number(0.0, 1.0, "a share from 0 to 1, such as 0.05"),
        default=0.05,
        metavar="X",
        help="a difference of pass rates or scores that does not matter (default: %(default)s)",
    )
    parser.add_argument(
        "--alpha",
        type=number(1e-6, 0.49, "a chance from 0.000001 to 0.49, such as 0.05"),
        default=0.05,
        metavar="X",
        help="how often a version that is not worse may be called so, over all evaluators (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-unscored", action="store_true", help="let evaluators pass that scored no run of a version"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 in place of 3 where it is inconclusive")
    parser.add_argument("--format", choices=_FORMATS, default="table", help="what standard output shows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparison as JSON, too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a comment for a pull request, too")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page to look at, too")
    parser.set_defaults(run=run, formats=_FORMATS)


def run(arguments: argparse.Namespace) -> int:
    """Compare and return the exit status."""
    config = configured(arguments)
    try:
        from spanscore.cli._comparing import compare  # noqa: PLC0415 - scipy is of an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"numpy", "scipy"}:
            raise
        message = "comparing versions needs scipy: pip install scipy, or in a checkout: pip install '.[analysis]'"
        raise InputError(message) from error
    return compare(arguments, config)
