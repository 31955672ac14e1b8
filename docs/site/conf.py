"""How Sphinx makes the documentation site of the Markdown files in this repository; scripts/site runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from sphinx.application import Sphinx

import spanscore

ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = re.compile(r"\]\((?!https?:)([^)#]+)\.md[^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)\)")
_PART: Final = re.compile(r"^(\w[^\n]*?):(.*?)(?=^\w[^\n]*?:|\Z)", re.MULTILINE | re.DOTALL)

project = "spanscore"
author = "The spanscore authors"
version = release = spanscore.__version__
html_title = f"spanscore {version}"
language = "en"

extensions = ["myst_parser"]
include_patterns = [
    "*.md",
    "docs/**.md",
    "deploy/**.md",
    "bench/*.md",
    "fast/*.md",
    "examples/*.md",
    "tests/corpus/*.md",
]
exclude_patterns = [".venv", "build", "dist", "docs/site"]
root_doc = "docs/README"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
# Languages of blocks that Pygments lacks, and blocks that are only nearly of theirs, are shown as they are.
suppress_warnings = ["misc.highlighting_failure"]

# The theme brings no font and asks no other host: the site works from a directory, without a network.
html_theme = "furo"
html_copy_source = False
html_show_copyright = html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    """Make a page for this repository one of the site."""
    folder = Path(app.srcdir, name).parent
    # The site has no list of the files in a directory: its name stays.
    source[0] = _LINK.sub(lambda link: f"`{link[1]}`" if (folder / link[2]).is_dir() else link[0], source[0])
    if name == app.config.root_doc:
        source[0] += "".join(_contents(caption, text) for caption, text in _PART.findall(source[0]))
    elif name == "docs/adr/README":
        source[0] += _contents("Decisions", source[0])
    elif name.startswith("tests/"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def _contents(caption: str, text: str) -> str:
    """Return the table of contents of the pages that a text links, as a block that the page does not show."""
    pages = "\n".join(dict.fromkeys(_PAGE.findall(text)))
    return f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n" if pages else ""


def setup(app: Sphinx) -> None:
    """Have Sphinx call the above."""
    app.connect("source-read", _read)
