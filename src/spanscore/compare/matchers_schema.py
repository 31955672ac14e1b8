"""`$schema`: what is valid by a JSON Schema, within the limits that `tool_arguments_schema` has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from spanscore.compare.differences import Described, Difference
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.json_schema import Schema, UncheckableError
from spanscore.compare.matchers_base import Matcher, Mismatch, Path, Seen
from spanscore.model import NOT_RECORDED


class ValidBy(Matcher):
    """What is valid by a schema.

    Raises:
        ValueError: the schema cannot be used.
    """

    words = "what is valid by its schema"

    def __init__(self, schema: Any) -> None:
        self._schema: Final = Schema(schema)

    def matches(self, actual: Any, seen: Seen) -> bool:
        """Return whether a value is valid."""
        return actual is not NOT_RECORDED and not self._problems(actual, seen)

    def mismatches(self, actual: Any, seen: Seen, path: Path = ()) -> Iterator[Mismatch]:
        """Yield the rules that a value breaks."""
        if actual is NOT_RECORDED:
            yield Difference(path, Described(self.words), actual)
            return
        for each in self._problems(actual, seen):
            yield each._replace(
                path=(*path, *each.path),
                expected=Described(each.expected),
                known_path=(*path, *each.path_without_content),
            )

    def _problems(self, actual: Any, seen: Seen) -> list[Mismatch]:
        seen.run.spend()
        try:
            return self._schema.problems(actual, seen.run.schema_work)
        except UncheckableError as error:
            message = f"a value cannot be checked by its $schema: {error}"
            raise TooMuchWorkError(message) from error
