"""Self-contained pages of HTML: one file that makes no requests.

A page is a template that extends `base.html`, the data it shows, and scripts of ours that make text of that data. Its
own policy (CSP) allows these scripts and styles by their hashes, and nothing else: no other script, no request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from spanscore import __version__

_STYLES: Final = "page.css"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPES: Final = {ord("<"): r"\u003c", 0x2028: r"\u2028", 0x2029: r"\u2029"}
"""In an element `script` a `<` may end it, or begin a comment that hides its end; the other two end a line of JS."""


def render(template: str, data: str, *, title: str, scripts: Sequence[str], live: bool = False, **values: Any) -> str:
    """Return a page.

    Args:
        template: the name of a file of this package that extends `base.html`.
        data: the result of `embedded`; the scripts read it from the element `data`.
        title: the title of the page.
        scripts: the names of files of this package that are joined to one script, in this order.
        live: whether the page may send requests to its server; else it may send none.
        values: the other values in the template. All are escaped.
    """
    # The engine is slow to load, and few commands make a page.
    from markupsafe import Markup  # noqa: PLC0415

    page: str = _template(template).render(
        title=title,
        live=live,
        policy=policy(scripts, live=live),
        style=Markup(_text(_STYLES)),  # noqa: S704 - our own file
        script=Markup(_script(tuple(scripts))),  # noqa: S704 - as above
        data=Markup(data),  # noqa: S704 - JSON without a "<"
        version=__version__,
        **values,
    )
    return page


def policy(scripts: Sequence[str], *, live: bool = False) -> str:
    """Return the Content-Security-Policy of a page with these scripts.

    Trusted types are asked for and none is allowed: no script, not even ours, can make elements out of text.
    """
    rules = {
        "default-src": "'none'",
        "script-src": _hash(_script(tuple(scripts))),
        "style-src": _hash(_text(_STYLES)),
        "img-src": "data:",  # the icon of the page, which is in the page
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{rule} {allowed}" for rule, allowed in rules.items())


def embedded(value: Any) -> str:
    """Return a value as JSON for an element `script`, in as few characters as possible.

    A lone surrogate stays unchanged: `encoded` writes it as an escape of JSON.
    """
    text = _ENCODER.encode(value)
    return text if text.isascii() and "<" not in text else text.translate(_ESCAPES)


def encoded(text: str) -> bytes:
    """Return a page, or a part of it, as its bytes."""
    return text.encode("utf-8", "backslashreplace")


def size_of(text: str) -> int:
    """Return how many bytes a text has in a page."""
    return len(text) if text.isascii() else len(encoded(text))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - as above

    return Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_text), trim_blocks=True, lstrip_blocks=True
    ).get_template(name)


@cache
def _script(names: tuple[str, ...]) -> str:
    return "\n".join(map(_text, names))


@cache
def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
