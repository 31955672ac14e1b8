"""Prints the reference pages that are made from what the code and the tests know.

    python docs/write_reference.py evaluators
    python docs/write_reference.py dialects

`reference/evaluators.md` from the evaluators' own documentation and `reference/examples.yaml`, `reference/dialects.md`
from the dialects' documentation and the recordings of real frameworks that the tests read. A test compares both pages
with what this prints.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

import spanscore
from spanscore.config import Description, Parameter, describe
from spanscore.contracts import CaptureSetting, Parameters
from spanscore.contracts.plugins import Kind, find, is_built_in, names

DOCS: Final = Path(__file__).parent

_EXAMPLES: Final = DOCS / "reference" / "examples.yaml"
_CORPUS: Final = DOCS.parent / "tests" / "corpus"

_SHARED: Final = tuple(field.name for field in dataclasses.fields(Parameters))

_TOP: Final = """\
# Evaluators

Each evaluator gives a value from 0 to 1, passes from its `threshold` on, and explains the value with the numbers. If
the spans do not record what it needs, it is *skipped* with the reason: missing data never counts against the agent.
`spanscore describe TYPE` prints the same text.

Each evaluator also has the keys `match`, `sample_ratio`, `informational`, `ignore_tools` and `expected_from`; they are
in [config/reference.yaml](../../config/reference.yaml) and in [the guide](../say-what-your-agent-should-do.md).
"""

_DIALECTS_TOP: Final = """\
# Dialects

Each instrumentation writes tool calls in its own way; a dialect reads the spans of one. All dialects are on without
configuration. A call that several instrumentations record is counted once.
"""

_RECORDED_TOP: Final = """\
## What was read of which version

Recordings of the real packages, with the calls that were really made beside them; the tests read them all. *Calls* have
a span. `-`: no call had such data; a number: so many had it. *Errors* are calls that failed; failed calls have no
result. *From requests* are calls without a span, read from the model's requests.
"""

_NOT_TELLING: Final = ("@opentelemetry/", "opentelemetry-sdk", "opentelemetry-api", "node", "zod")


def evaluators_page() -> str:
    """Return the page on evaluators."""
    examples: Mapping[str, Any] = yaml.safe_load(_EXAMPLES.read_text(encoding="utf-8"))
    described = [describe(name) for name in _built_in("evaluators")]
    if missing := [each.name for each in described if each.name not in examples]:
        sys.exit(f"{_EXAMPLES}: has no example of {', '.join(missing)}")
    shared = [parameter for parameter in described[0].parameters if parameter.name in _SHARED]
    parts = [_TOP, *(_evaluator(each, examples[each.name]) for each in described)]
    return "\n".join([*parts, "## Parameters of every evaluator\n", *map(_parameter, shared), ""])


def _built_in(kind: Kind) -> Iterator[str]:
    """Yield the names of ours: what else is installed here is nobody's reference."""
    return (name for name in names(kind) if is_built_in(kind, name))


def dialects_page() -> str:
    """Return the page on dialects."""
    parts = [_DIALECTS_TOP, *map(_dialect, _built_in("dialects")), _RECORDED_TOP, *_recordings()]
    return "\n".join(parts) + "\n"


def _evaluator(told: Description, example: Mapping[str, Any]) -> str:
    lines = [f"## `{told.name}`\n", f"{told.doc}\n"]
    lines += [_parameter(parameter) for parameter in told.parameters if parameter.name not in _SHARED]
    if told.expectation:
        lines.append(f"\n`expected_from` fills `{told.expectation}` trace by trace.")
    return "\n".join([*lines, "", *_example(told.name, example), ""])


def _parameter(parameter: Parameter) -> str:
    default = "required" if parameter.required else f"default `{parameter.default}`"
    return f"- `{parameter.name}`: {parameter.type} ({default}). {' '.join(parameter.doc.split())}"


def _example(name: str, example: Mapping[str, Any]) -> Iterator[str]:
    """Yield an example with what the evaluator really says of it."""
    outcome = spanscore.evaluator(name, example["parameters"]).evaluate(
        spanscore.Trajectory.from_calls(example["calls"])
    )
    if not isinstance(outcome, spanscore.Score):
        raise TypeError(outcome)
    configuration = {"evaluators": {"example": {"type": name, **example["parameters"]}}}
    yield "```yaml"
    yield yaml.safe_dump(configuration, sort_keys=False, default_flow_style=None, width=110).rstrip()
    yield "```\n"
    yield "with the calls\n"
    yield "```json"
    yield from (json.dumps(call) for call in example["calls"])
    yield "```\n"
    yield f"gives {outcome.value:.4g}, a {'pass' if outcome.passed else 'fail'}: *{outcome.explanation}*"


def _dialect(name: str) -> str:
    told = describe(name, "dialects")
    paragraphs = told.doc.split("\n\nArgs:")[0]
    settings: tuple[CaptureSetting, ...] = getattr(find("dialects", name), "capture_settings", ())
    return "\n".join([f"## `{name}`\n\n{paragraphs}\n", *_settings(settings)])


def _settings(settings: tuple[CaptureSetting, ...]) -> Iterator[str]:
    """Yield a list of the settings with which emitters record more."""
    if settings:
        yield "With these settings its emitters record more:\n"
        for each in settings:
            prefixes = ", ".join(f"`{scope}`" for scope in each.scopes if scope)
            scopes = f", in scopes that begin with {prefixes}" if prefixes else ""
            yield f"- `{each.setting}`: {', '.join(each.gives)}{scopes}"
        yield ""


def _recordings() -> Iterator[str]:
    numbers = json.loads((_CORPUS / "numbers.json").read_text(encoding="utf-8"))
    yield "| framework | instrumentation | versions | calls | arguments | results | errors | call ids | from requests |"
    yield "|---|---|---|---|---|---|---|---|---|"
    rows = []
    for path in _CORPUS.glob("*.truth.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        counted = numbers[path.name.removesuffix(".truth.json")]
        calls = counted["calls"]
        cells = [
            told["framework"],
            told["instrumentation"],
            ", ".join(f"{name} {version}" for name, version in told["versions"].items() if _tells(name)),
            str(calls),
            *(_share(counted[key], calls) for key in ("arguments", "results")),
            str(counted["errors"]),
            _share(counted["call ids"], calls),
            str(counted["from model spans"]),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    yield from sorted(rows, key=str.lower)


def _tells(package: str) -> bool:
    return not package.startswith(_NOT_TELLING)


def _share(count: int, calls: int) -> str:
    if count == calls:
        return "all" if calls else "-"
    return str(count) if count else "-"


if __name__ == "__main__":
    sys.stdout.write({"evaluators": evaluators_page, "dialects": dialects_page}[sys.argv[1]]())
