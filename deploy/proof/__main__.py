"""Starts the real programs on this machine, without containers, and proves that what deploy/ ships works with them.

Programs are looked for in a directory of their own, then on the PATH. --where says which directory that is, and the
variable SPANSCORE_PROGRAMS or --programs names another. scripts/prove is the same with --build.

Exit status: 0 all that was asked for was proven, but for what --without gives up; 1 something failed; 2 usage;
3 nothing failed, and something could not be run, or nothing was proven at all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from building import build
from parts import PARTS, Asked, Part
from programs import CHROMIUM, HOW_TO_GET, REQUIREMENTS, ROOT, Programs
from results import Results


def main() -> int:
    """Prove what is asked for, and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.where:
        print(arguments.programs or "on the PATH alone")
        return 0
    if arguments.short and arguments.parts:
        parser.error("--short says itself which parts")
    if arguments.build and arguments.programs is None:
        parser.error("--build needs --programs DIR")
    chosen = _chosen(arguments.parts, short=arguments.short)
    programs = Programs(arguments.programs, arguments.phoenix, arguments.without)
    if arguments.list:
        _list(programs)
        return 0
    wanted = {name for part in chosen for name in part.needs}
    sought = wanted - arguments.without - {ROOT}
    absent = [name for name in REQUIREMENTS if name in sought and programs.find(name) is None]
    if absent:
        made = "; making what can be made, which may take a quarter of an hour" if arguments.build else ""
        print(f"not there: {', '.join(absent)}; {programs.looked()}{made}", flush=True)
    if arguments.build:
        programs.could_not_be_built(build(programs, arguments.programs, wanted, arguments.minutes))
    results = Results()
    directory = tempfile.mkdtemp(prefix="spanscore-proof-")
    try:
        for part in chosen:
            part.prove(Asked(results, programs, _new(directory, part.name), arguments.programs, arguments.pictures))
    finally:
        # A failure is told with the place of a log, which is there then.
        if not results.failed:
            shutil.rmtree(directory)
    results.section("Never looked at here")
    results.beyond("containers and Kubernetes", "nothing here starts an engine; see their configurations above")
    status = results.status()
    if results.failed:
        print(f"\nLogs and configurations of what ran are kept in {directory}")
    _tell_left(chosen)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=os.environ.get("SPANSCORE_PROVE", "deploy/prove"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to prove, see --list (default: everything)")
    parser.add_argument(
        "--list", action="store_true", help="say which parts there are, what each needs, and what is found"
    )
    parser.add_argument("--where", action="store_true", help="say in which directory programs are kept")
    parser.add_argument("--short", action="store_true", help="the parts that CI has time for; says which it leaves")
    parser.add_argument(
        "--without",
        type=_without,
        default=frozenset(),
        metavar="NAME,...",
        help="give up what needs these: it is listed, and does not count as missing",
    )
    kept = os.environ.get("SPANSCORE_PROGRAMS")
    parser.add_argument(
        "--programs",
        type=Path,
        metavar="DIR",
        default=Path(kept) if kept else None,
        help="where programs are kept, and looked for before the PATH (default: SPANSCORE_PROGRAMS, see --where)",
    )
    parser.add_argument("--build", action="store_true", help="put into DIR first what the parts need and is not there")
    parser.add_argument("--minutes", type=float, metavar="N", help="with --build: how long it may take (default: ever)")
    parser.add_argument("--phoenix", type=Path, metavar="PYTHON", help="an environment of yours with arize-phoenix")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="take pictures of the boards with Chromium, too")
    return parser


def _without(text: str) -> frozenset[str]:
    names = frozenset(filter(None, text.split(",")))
    if not names <= set(REQUIREMENTS):
        message = f"{', '.join(sorted(names - set(REQUIREMENTS)))}: choose from {', '.join(REQUIREMENTS)}"
        raise argparse.ArgumentTypeError(message)
    return names


def _chosen(names: Sequence[str], *, short: bool) -> list[Part]:
    known = {part.name: part for part in PARTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"deploy/prove: no part {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        sys.exit(2)
    return [part for part in PARTS if (part.name in names if names else part.is_short or not short)]


def _list(programs: Programs) -> None:
    for part in PARTS:
        print(f"{part.name:10} {part.what}\n{'':10} needs {', '.join(part.needs)}")
        if not part.is_short:
            print(f"{'':10} not in --short: {part.left_because}")
    print(f"\nWhat they need, and where that comes from; {programs.looked()}:")
    for name in (*REQUIREMENTS, CHROMIUM):
        print(f"{name:10} {programs.found(name)}\n{'':10} {HOW_TO_GET[name]}")


def _tell_left(chosen: Sequence[Part]) -> None:
    left = [part for part in PARTS if part not in chosen]
    if left:
        print("\nNot asked for, and left to the whole form, scripts/prove:")
    for part in left:
        print(f"  {part.name}: {part.what}" + (f" ({part.left_because})" if part.left_because else ""))


def _new(directory: str, name: str) -> Path:
    path = Path(directory) / name
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
