"""Self-contained pages of HTML: one file that asks nobody for anything, in a browser that allows it nothing else.

A page is a template that extends `base.html`, the data it shows, and scripts of ours that make text of that data. Its
own policy (CSP) lets these scripts and styles run, by their hashes, and nothing besides: no other script, no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from spanscore.page.embedding import embedded as embedded
from spanscore.page.embedding import encoded as encoded

_STYLES: Final = "page.css"


def render(template: str, data: str, *, title: str, scripts: Sequence[str], live: bool = False, **values: Any) -> str:
    """Return a page.

    Args:
        template: the name of a file of this package that extends `base.html`.
        data: what `embedded` has made; the scripts find it in the element `data`.
        title: of the page.
        scripts: the names of files of this package, of which one script is made, in this order.
        live: whether the page may ask the server that it came from; else it may ask nobody.
        values: what the template names besides. All of it is escaped.
    """
    # The engine is slow to load, and few commands make a page.
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_text), trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        title=title,
        live=live,
        policy=policy(scripts, live=live),
        style=Markup(_text(_STYLES)),  # noqa: S704 - our own file
        script=Markup(_script(tuple(scripts))),  # noqa: S704 - as above
        data=Markup(data),  # noqa: S704 - JSON without a "<"
        version=version("spanscore"),
        **values,
    )


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


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _script(names: tuple[str, ...]) -> str:
    return "\n".join(map(_text, names))


@cache
def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
