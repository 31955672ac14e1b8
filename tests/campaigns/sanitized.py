"""Reads requests of all kinds with the compiled decoder under AddressSanitizer, and compares it with the other one.

    python tests/campaigns/sanitized.py --seconds 600

The decoder has no unsafe code of its own; what it stands on has. Recorded requests, requests made odd by chance, and
both with bytes changed, go to both decoders, and each piece of memory that is touched is looked at. Needs cargo, and
gcc for the sanitizer. The exit status is not 0 where memory is misused or the decoders differ.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).parents[1]
_FOLDER: Final = _TESTS.parent / "fast"
_TARGET: Final = "x86_64-unknown-linux-gnu"
_LIBRARY: Final = "libasan.so"
_MODULE: Final = "spanscore_fast.abi3.so"
_BUILD_S: Final = 600
_LONGEST: Final = 20_000
"""Of a recorded request that is changed: mostly its first spans are read."""

sys.path[:0] = [str(_TESTS), str(_TESTS.parent)]  # for the command; pytest knows where the tests are


def missing() -> str | None:
    """Return what is not there to run it; None where all is."""
    needed = [name for name in ("cargo", "gcc") if shutil.which(name) is None]
    if needed:
        return f"needs {' and '.join(needed)}"
    return None if _sanitizer().is_absolute() else f"gcc has no {_LIBRARY}"


def run(seconds: float, seed: int) -> int:
    """Build the decoder for the sanitizer, have a process read with it, and return its exit status."""
    with tempfile.TemporaryDirectory() as directory:
        build = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=address -Zexternal-clangrt"}
        command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", _TARGET, "--target-dir", directory]
        subprocess.run(command, cwd=_FOLDER, env=os.environ | build, check=True, timeout=_BUILD_S)
        modules = Path(directory) / "python"
        modules.mkdir()
        shutil.copy(Path(directory) / _TARGET / "release" / "libspanscore_fast.so", modules / _MODULE)
        watched = {
            "LD_PRELOAD": str(_sanitizer()),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",  # Python lets go of most at the end only
            "PYTHONMALLOC": "malloc",  # else the sanitizer sees one large piece
            "PYTHONPATH": os.pathsep.join(filter(None, [str(modules), os.environ.get("PYTHONPATH")])),
        }
        again = [sys.executable, __file__, "--here", "--seconds", str(seconds), "--seed", str(seed)]
        return subprocess.run(again, env=os.environ | watched, check=False, timeout=seconds + _BUILD_S).returncode


def compare(seconds: float, seed: int) -> None:
    """Have both decoders read in this process, and print how much."""
    from fuzzing import decoders  # noqa: PLC0415 - it imports the decoder, which only runs beside the sanitizer
    from spanscore.otlp.clean_requests import chosen  # noqa: PLC0415

    chosen("fast")
    if _LIBRARY not in Path("/proc/self/maps").read_text(encoding="utf-8"):
        message = f"{_LIBRARY} is not loaded: nothing is looked at"
        raise RuntimeError(message)
    rng, ends = random.Random(seed), time.monotonic() + seconds
    for body in _requests(rng, decoders.odd_request):
        decoders.decoders(body)
        if time.monotonic() > ends:
            break
    print(f"{decoders.COMPARED[True]:,} requests read alike, {decoders.COMPARED[False]:,} left to the other decoder")


def _requests(rng: random.Random, odd_request: Callable[[random.Random], bytes]) -> Iterator[bytes]:
    from bench import recorded  # noqa: PLC0415 - as above

    known = recorded.requests()
    yield from known
    while True:
        for _ in range(50):
            body = odd_request(rng)
            yield body
            yield _changed(body, rng)
        yield _changed(rng.choice(known)[:_LONGEST], rng)


def _changed(body: bytes, rng: random.Random) -> bytes:
    """Return a request in which bytes are others, or missing, or more."""
    changed = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        end = place + rng.randint(0, 8)
        changed[place:end] = rng.randbytes(rng.randint(0, 8))
    return bytes(changed)


def _sanitizer() -> Path:
    """Return where gcc has it; only its name where it has none."""
    found = subprocess.run(["gcc", f"-print-file-name={_LIBRARY}"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(found.stdout.strip())


def main() -> int:
    """Run as asked, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of chance (default: %(default)s)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        compare(arguments.seconds, arguments.seed)
        return 0
    if (why := missing()) is not None:
        print(why, file=sys.stderr)
        return 2
    return run(arguments.seconds, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
