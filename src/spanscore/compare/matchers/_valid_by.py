"""`$schema`: values that are valid by a JSON Schema, within the limits of `tool_arguments_schema`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from spanscore.compare.differences import Described, Difference
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.json_schema import Schema, UncheckableError
from spanscore.compare.matchers.base import EarlierResults, Matcher, Mismatch, Path
from spanscore.model import NOT_RECORDED


class ValidBy(Matcher):
    """A matcher of values that are valid by a schema.

    Raises:
        ValueError: the schema cannot be used.
    """

    words = "a value that is valid by its schema"

    def __init__(self, schema: Any) -> None:
        self._schema: Final = Schema(schema)

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        return actual is not NOT_RECORDED and not self._problems(actual, seen)

    def mismatches(self, actual: Any, seen: EarlierResults, path: Path = ()) -> Iterator[Mismatch]:
        if actual is NOT_RECORDED:
            yield Difference(path, Described(self.words), actual)
            return
        for each in self._problems(actual, seen):
            yield each._replace(
                path=(*path, *each.path),
                expected=Described(each.expected),
                known_path=(*path, *each.path_without_content),
            )

    def _problems(self, actual: Any, seen: EarlierResults) -> list[Mismatch]:
        seen.run.spend()
        try:
            return self._schema.problems(actual, seen.run.schema_work)
        except UncheckableError as error:
            raise TooMuchWorkError(f"a value cannot be checked by its $schema: {error}") from error
