"""Whether the arguments of the calls are valid by the tools' JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Final

from spanscore.compare.accounts import Account, scored
from spanscore.compare.alignment import LIMIT
from spanscore.compare.deviations import Deviation
from spanscore.compare.differences import Difference
from spanscore.compare.effort import SchemaWork
from spanscore.compare.expected import need_arguments
from spanscore.compare.json_schema import KEYWORDS, Schema, UncheckableError, problem_text
from spanscore.compare.names import called_names, listed
from spanscore.evaluators._frame import CallEvaluator
from spanscore.model import JSON, NOT_RECORDED, Lack, Outcome, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

_LONGEST_SCHEMA: Final = 64 * 1024
_WORK: Final = 200_000


@dataclass(frozen=True, kw_only=True)
class ToolArgumentsSchema(CallEvaluator):
    """Checks the arguments of the calls against the JSON Schemas of the tools.

    The value is the share of valid calls among those whose tool has a schema: the ones given, else the tool
    definitions that the trace itself carries. If these declare a tool in several ways, as several agents may, one has
    to fit. A call without arguments is checked as an empty object; failed calls count. Calls that cannot be checked
    within fixed limits do not count, nor do tools whose schema in the trace is unusable; both are in the details.
    Skipped where no call can be checked, and where the arguments of a call to be checked were not recorded. References
    must stay inside a schema, and patterns are those of RE2.
    """

    expectation: ClassVar[str | None] = "schemas"
    needs_results: ClassVar[bool] = False

    schemas: Mapping[str, Any] | None = None
    """JSON Schema of the arguments, by tool: `{search: {type: object, required: [city]}}`."""

    @cached_property
    def _compiled(self) -> Mapping[str, Schema] | None:
        if self.schemas is None:
            return None
        return {self._normalise(tool): _schema(tool, schema) for tool, schema in self.schemas.items()}

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        schemas, unusable = self._schemas(trajectory, frozenset(names))
        need_arguments(trajectory, self._normalise, schemas)
        work = SchemaWork(_WORK)
        problems = {
            index: _problems(schemas[name], trajectory.calls[index], work)
            for index, name in enumerate(names)
            if name in schemas
        }
        unchecked = [index for index, found in problems.items() if found is None]
        invalid = {index: found for index, found in problems.items() if found}
        total = len(problems) - len(unchecked)
        if not total:
            undeclared = trajectory.calls and self.schemas is None and not any(trajectory.tool_definitions.values())
            lacks: tuple[Lack, ...] = ("tool definitions",) if undeclared else ()
            return Skipped(_nothing_checked(len(unchecked), unusable), lacks)
        value = (total - len(invalid)) / total

        def account() -> Account:
            valid = total - len(invalid)
            explanation = f"{valid} of {total} calls have arguments that are valid by their tool's schema."
            details = {
                "totals": {"valid": valid, "invalid": len(invalid), "unchecked": len(unchecked)},
                "invalid": _shown(invalid, trajectory.calls),
                "unusable_schemas": dict(islice(unusable.items(), LIMIT)),
            }
            deviations = [
                Deviation.at("schema", index, trajectory.calls, differences=tuple(found))
                for index, found in invalid.items()
            ]
            return Account(explanation, details, deviations)

        mended_by = MendedBy.NOTHING if self.threshold == 1 else MendedBy.ANY
        return scored(value, value >= self.threshold, account, mended_by=mended_by)

    def named_tools(self) -> Iterable[str]:
        """Return the tools whose schemas are given: calls of one that is mistyped are not checked."""
        return self.schemas or ()

    def _schemas(self, trajectory: Trajectory, called: frozenset[str]) -> tuple[Mapping[str, Schema], dict[str, str]]:
        """Return the schemas of the tools that were called, and why others are unusable."""
        if (given := self._compiled) is not None:
            return given, {}
        usable, unusable = {}, {}
        for tool, definition in trajectory.tool_definitions.items():
            name = self._normalise(tool)
            if definition is None or name not in called:
                continue
            try:
                usable[name] = _carried(json.dumps(definition))
            except (ValueError, TypeError, RecursionError) as error:  # not JSON, or too deep to be written
                unusable[name] = str(error)
        return usable, unusable


def _schema(tool: str, schema: JSON) -> Schema:
    try:
        return Schema(schema)
    except ValueError as error:
        raise ValueError(f"schemas.{tool}: {error}") from error


@lru_cache(maxsize=256)
def _carried(text: str) -> Schema:
    """Traces repeat their tool definitions, and getting a schema ready takes longer than all checks together."""
    if len(text) > _LONGEST_SCHEMA:
        raise ValueError(f"the schema has more than {_LONGEST_SCHEMA} characters")
    schema = json.loads(text)
    if schema and isinstance(schema, dict) and KEYWORDS.isdisjoint(schema):
        raise ValueError("it has no keyword of JSON Schema")
    return Schema(schema)


def _problems(schema: Schema, call: ToolCall, work: SchemaWork) -> list[Difference] | None:
    try:
        return schema.problems({} if call.arguments is NOT_RECORDED else call.arguments, work)
    except UncheckableError:
        return None


def _nothing_checked(unchecked: int, unusable: Mapping[str, str]) -> str:
    if unchecked:
        return f"the arguments of {unchecked} calls are too deep or too much work to be checked"
    if unusable:
        return f"the trace's schemas of {listed(unusable)} cannot be used"
    return "no tool that was called has a schema"


def _shown(invalid: Mapping[int, list[Difference]], calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [
        {
            "call": calls[index].in_run(index),
            "tool": calls[index].name,
            "span_id": span_id.hex() if (span_id := calls[index].span_id) else None,
            "problems": list(map(problem_text, problems)),
        }
        for index, problems in islice(invalid.items(), LIMIT)
    ]
