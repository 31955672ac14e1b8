"""Values that are cheap to construct: many at a time, or only on first use."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, Sized
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, Generic, TypeVar, cast, dataclass_transform

import msgspec

from spanscore.model.spans import JSON

_T = TypeVar("_T")
_Content = TypeVar("_Content", bound=Sized)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass with fields by keyword, as far as type checkers go.

    At run time, to keep it frozen takes three times as long, and defaults of parameters by keyword are dear.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def struct(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass with fields by keyword, of which several are made for each span.

    To make one takes a fifth of the time of any other dataclass, and a `changed` copy a twentieth. The class has no
    methods of its own.
    """
    described: Any = dataclass(cls)
    listed = [(each.name, Any, *_default(each)) for each in fields(described)]
    # By its fields, `dataclasses` knows the class.
    namespace = {"__doc__": cls.__doc__, "__dataclass_fields__": described.__dataclass_fields__}
    made: Any = msgspec.defstruct(cls.__name__, listed, namespace=namespace, module=cls.__module__, frozen=True)
    return cast("type[_T]", made)


def _default(described: Field[Any]) -> tuple[Any, ...]:
    if described.default_factory is not MISSING:
        return (msgspec.field(default_factory=described.default_factory),)
    return () if described.default is MISSING else (described.default,)


values_of: Final[Callable[[object], tuple[Any, ...]]] = msgspec.structs.astuple  # type: ignore[assignment]
"""Returns the values of a `struct`, in the order of its fields."""


def changed(struct: _T, **changes: Any) -> _T:
    """Return a copy of a `struct` with other values of some fields, as `dataclasses.replace` does of any dataclass."""
    copy: _T = msgspec.structs.replace(struct, **changes)  # type: ignore[type-var]
    return copy


class OnFirstUse(Generic[_Content]):
    """A content that is read on first use, which in most traces is never.

    A model is sent the whole conversation and all its tools each time: to read them takes longer than all the rest.
    """

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], _Content]) -> None:
        self._find: Final = find
        self._found: _Content | None = None

    def content(self) -> _Content:
        """Return the content, read now if it was not read before."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def __len__(self) -> int:
        return len(self.content())


class Later(OnFirstUse[Mapping[str, JSON]], Mapping[str, JSON]):
    """A mapping whose content is read on first use."""

    __slots__ = ()

    def __getitem__(self, key: str) -> JSON:
        return self.content()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content())

    # Methods of Mapping would call `content` for each key.
    def __contains__(self, key: object) -> bool:
        return key in self.content()

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return the value of a key, else the default."""
        return self.content().get(key, default)

    def items(self) -> ItemsView[str, JSON]:
        """Return the keys with their values."""
        return self.content().items()


class LaterList(OnFirstUse[Sequence[_T]], Sequence[_T]):
    """A sequence whose content is read on first use. It equals any sequence with the same items."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> Any:
        return self.content()[place]

    def __iter__(self) -> Iterator[_T]:
        return iter(self.content())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
