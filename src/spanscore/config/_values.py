"""The values of `spanscore.settings` as pydantic reads them from a configuration and describes them for editors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from spanscore.settings import DURATION_PART, BesideConfiguration, Example, Written, seconds


def checked_by(mark: Any) -> Any:
    """Return what a mark of an annotation is to pydantic."""
    match mark:
        case Written():
            return _Text(mark)
        case BesideConfiguration():
            return AfterValidator(_beside_the_configuration)
        case Example(value):
            return Field(examples=[value])
        case _:
            return mark


def _beside_the_configuration(path: Path, info: ValidationInfo) -> Path:
    if path == Path() or "\0" in str(path):
        message = "must name a file"
        raise ValueError(message)
    return Path(info.context or "") / path


@dataclass(frozen=True, slots=True)
class _Text:
    """Written as text, kept as what is read from it."""

    written: Written

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text: CoreSchema = core_schema.str_schema()
        if self.written.error != "string_type":
            text = core_schema.custom_error_schema(
                text, custom_error_type=self.written.error, custom_error_message="must be text"
            )
        return core_schema.no_info_after_validator_function(self.written.read, text)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        pattern = {"pattern": f"^{self.written.pattern}$"} if self.written.pattern else {}
        return {"type": "string", **pattern, **({"examples": [self.written.example]} if self.written.example else {})}


def _time_limit(text: str) -> float:
    if text == "none":
        return math.inf
    limit = seconds(text)
    if not limit:
        message = f"must be more than 0, not {text!r}; write 'none' for no limit"
        raise ValueError(message)
    return limit


TimeLimit = Annotated[float, _Text(Written(_time_limit, f"(?:none|(?:{DURATION_PART})+)", "not_a_duration", "500ms"))]
ConfiguredFile = Annotated[Path, AfterValidator(_beside_the_configuration)]
