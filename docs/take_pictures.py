"""Takes the pictures of README and documentation that show our own output, from real runs of the agent of the demo.

    python docs/take_pictures.py            all of them
    python docs/take_pictures.py demo       `spanscore demo` on a terminal
    python docs/take_pictures.py report     the page of `spanscore score --html`, and the live one

For the pages there must be a Chromium on the PATH.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

PICTURES: Final = Path(__file__).parent / "pictures"
SPANSCORE: Final = (sys.executable, "-m", "spanscore")
CONFIG: Final = Path(__file__).parents[1] / "src" / "spanscore" / "cli" / "demo_agent" / "spanscore.yaml"

_COLUMNS: Final = 112
_VIEW: Final = {"width": 1240, "height": 1020}
_REPEATS: Final = 3


def take_demo() -> None:
    """Take the picture of `spanscore demo`."""
    console = Console(record=True, width=_COLUMNS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for as long as the process lives
    console.print(Text.from_ansi(on_terminal([*SPANSCORE, "demo"])))
    # Without the fonts that it would have a browser fetch.
    picture = re.sub(r"@font-face \{.*?\}\n", "", console.export_svg(title="spanscore demo"), flags=re.DOTALL)
    (PICTURES / "demo.svg").write_text(picture, encoding="utf-8")


def on_terminal(command: list[str]) -> str:
    """Run a command on a terminal of its own and return what it wrote, colours included."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(_COLUMNS), "LINES": "200", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, **size}) as process:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    if process.returncode not in {0, 1}:
        raise SystemExit(written.decode())
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that nobody writes any more
        return b""


def take_report() -> None:
    """Take the pictures of the page: light, dark, with a run open, and live."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only pages need it

    chromium = shutil.which("chromium") or sys.exit("there is no chromium; on Debian: apt-get install chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        address = _report(Path(directory)).as_uri()
        _take(browser, address, "report-light", "light")
        _take(browser, address, "report-dark", "dark")
        _take(browser, address, "report-run", "light", run="case-2 #1")
        with _live() as address:
            _take(browser, address, "report-live", "dark")
        browser.close()


def _report(directory: Path) -> Path:
    """Record the agent of the demo a few times, and return the page of its scores."""
    runs, page = directory / "runs.jsonl", directory / "report.html"
    for number in range(_REPEATS):
        more = ["--append"] if number else []
        agent = [sys.executable, "-m", "spanscore.cli.demo_agent.agent", "--customers"]
        named = {"OTEL_SERVICE_NAME": "refunds"}
        command = [*SPANSCORE, "record", "-o", str(runs), *more, "--", *agent]
        subprocess.run(command, check=True, env={**os.environ, **named}, capture_output=True)
    command = [*SPANSCORE, "score", str(runs), "--config", str(CONFIG), "--html", str(page)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return page


@contextmanager
def _live() -> Iterator[str]:
    """Run the demo, and return the address of its page when all has come."""
    with subprocess.Popen([*SPANSCORE, "demo", "--keep"], stdout=subprocess.PIPE, text=True) as demo:
        try:
            yield next(
                found[1] for line in demo.stdout or () if (found := re.search(r"(http://localhost:\d+/)$", line))
            )
        finally:
            demo.send_signal(signal.SIGINT)


def _take(browser: Any, address: str, name: str, scheme: str, run: str | None = None) -> None:
    """Take a picture of the beginning of a page; or, with a run, of that run, opened."""
    page = browser.new_page(viewport=_VIEW, color_scheme=scheme)
    page.goto(address)
    if run is not None:
        opener = page.get_by_role("button", name=run, exact=True)
        opener.click()
        page.evaluate("place => place.closest('tr').scrollIntoView()", opener.element_handle())
        page.mouse.move(0, 0)
    if page.locator("#connection").count():
        page.locator("#connection.open").wait_for()
        page.locator("tr.row").nth(7).wait_for()
    page.screenshot(path=PICTURES / f"{name}.png")
    page.close()


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["demo", "report"]
    for each in wanted:
        {"demo": take_demo, "report": take_report}[each]()
