"""A problem of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from spanscore.otlp.findings import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProblem:
    """Something in a recording that cannot be used."""

    file: str
    line: int
    """Counted from 1; in protobuf with lengths the number of the request; 0 is the file as a whole."""
    what: str
    refused_spans: int = 0
    """The number of spans that were lost by it, if it is known."""
    refusal: Refusal | None = None
    """Why these spans were refused."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"
