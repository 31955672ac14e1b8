"""The frame of the dialects of single frameworks."""

from __future__ import annotations

from typing import ClassVar

from spanscore.contracts import ModelReading, Precedence
from spanscore.model import Span


class FrameworkDialect:
    """A dialect of one framework or one instrumentation. Without a `read_model` of its own it reads no requests."""

    precedence: ClassVar[int] = Precedence.FRAMEWORK

    def read_model(self, span: Span) -> ModelReading | None:
        return None
