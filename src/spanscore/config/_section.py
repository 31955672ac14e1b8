"""What all sections of the configuration have in common: they are strict, immutable, and document their keys."""

from typing import Any

from pydantic import BaseModel, ConfigDict


def _nullable(schema: dict[str, Any]) -> None:
    """Allow `key:` with nothing behind it, as everywhere in the Collector's configuration: the section's defaults."""
    schema["type"] = ["object", "null"]


class Section(BaseModel):
    """A mapping with known keys. Strict: no other keys, no converted types."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        json_schema_extra=_nullable,
    )
