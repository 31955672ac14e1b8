"""Names in src/spanscore: no class has the name of another, and no file that of another. A leading `_` is ignored."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "spanscore"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}

# A package or a plug-in may have each of these: their names are Python's, or say the same of each.
IN_MANY_PACKAGES = {"__init__", "__main__", "settings"}


def repeated(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that several things have, and the modules of these, from pairs of a name and a module."""
    places = defaultdict(list)
    for name, module in named:
        places[name.lstrip("_")].append(module)
    return {name: modules for name, modules in places.items() if len(modules) > 1}


def test_file_names_are_unique() -> None:
    """A file is found by its name alone."""
    assert {} == repeated((path.stem, module) for module, path in MODULES.items() if path.stem not in IN_MANY_PACKAGES)


def test_class_names_are_unique() -> None:
    """A class is found by its name alone; nested classes count.

    `Otlp` cannot be avoided: a configuration has a receiver `otlp` and an exporter `otlp`, and the class of a plug-in
    has the plug-in's name in camel case.
    """
    classes = (
        (node.name, module)
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )

    assert {"Otlp": ["emitters/otlp/__init__.py", "receivers/otlp/__init__.py"]} == repeated(classes)
