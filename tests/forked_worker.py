"""Starts a worker of pytest-xdist in a fork of the interpreter that has imported all of spanscore.

execnet starts this program in the place of a Python of its own. It lives as long as the fork, and has the same standard
streams.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from warm import PIPE, Forks

STREAMS = Path(f"/proc/{os.getpid()}/fd")


def spec() -> str:
    """Return the specification of such a worker, for the option `--tx` of pytest-xdist."""
    return f"popen//python={shlex.join([sys.executable, '-S', __file__])}"


def main() -> int:
    """Run the program that execnet gives on the command line, and return its exit status."""
    with (
        Forks(Path(os.environ[PIPE])) as forks,
        forks.start(
            sys.argv[-1], ["-c"], os.environ, source=STREAMS / "0", output=STREAMS / "1", errors=None
        ) as worker,
    ):
        return worker.wait(None)


if __name__ == "__main__":
    sys.exit(main())
