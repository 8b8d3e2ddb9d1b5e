"""The interfaces of transforms and predicates, and what transforms are made with.

Each transform and predicate is made with `configure` in every process. One that works on keys or on
values is written once as a subclass of `Sided`; `two_sided` makes of it the two classes that Kafka
names `…$Key` and `…$Value`. `Rebuild` makes structs of other structs' fields: what is to be done is
found once per schema.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord
from barnabas.schemas.data.builder import with_fields
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Field, Schema, Struct, java_class, validate_value


class Transform(ABC):
    """Changes records one by one. Must not change its argument: copy with dataclasses.replace."""

    definition: ClassVar[Definition] = Definition()
    masks: ClassVar[bool] = False
    """True if it masks fields: status and log then do not quote records as they are before."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        self._configure(self.definition.parse(settings))

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take parsed settings. Raises ConfigError."""

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record that goes on; None drops it. Raises ConnectError."""

    def close(self) -> None:
        """Close what it holds open."""


class Predicate(ABC):
    """Says which records a transform is for."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        self._configure(self.definition.parse(settings))

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take parsed settings. Raises ConfigError."""

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Return whether the record is meant. Raises ConnectError."""

    def close(self) -> None:
        """Close what it holds open."""


# Settings and checks that several transforms have.

REPLACE_NULL: Final = Setting(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    default=True,
    importance=Importance.MEDIUM,
    doc="Replace null with the field's default, if it has one.",
)
FIELD_SYNTAX: Final = Setting(
    "field.syntax.version",
    ConfigType.STRING,
    default="V1",
    importance=Importance.HIGH,
    doc="Syntax of field names: V1 is the name of a top-level field, V2 a path with dots between "
    "names, where names that contain dots are quoted with backticks.",
    validator=one_of_any_case("V1", "V2"),
)


def non_empty_list(name: str, value: Any) -> None:
    """A list with something in it. Raises ConfigError."""
    if not value:
        raise invalid(name, value, "Empty list")


class Sided(Transform, ABC):
    """A transform of the key or the value of a record."""

    is_key: ClassVar[bool] = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record that goes on. Raises ConnectError."""
        if self.is_key:
            return self._apply(record, record.key_schema, record.key)
        return self._apply(record, record.value_schema, record.value)

    @abstractmethod
    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        """Return the record with another key or value. Raises ConnectError."""

    def _with(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        """Return a copy of the record with that key or value."""
        return record.with_key(schema, value) if self.is_key else record.with_value(schema, value)


def two_sided(transform: type[Sided]) -> tuple[type[Sided], type[Sided]]:
    """Return the classes for keys and for values."""
    name, place = transform.__name__, {"__module__": transform.__module__}
    return (
        type(f"{name}Key", (transform,), {**place, "is_key": True}),
        type(f"{name}Value", (transform,), {**place, "is_key": False}),
    )


def require_map(value: Any, purpose: str) -> Mapping[str, Any]:
    """The value, if it is a map. Raises DataError."""
    if isinstance(value, Mapping):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], "
        f"found: {_class_name(value)}"
    )


def require_struct(value: Any, purpose: str, schema: Schema | None = None) -> Struct:
    """The value, if it is a struct; the schema tells what else it is. Raises DataError."""
    if type(value) is Struct:
        return value
    class_name = _class_name(value, schema)
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name}")


def _class_name(value: Any, schema: Schema | None = None) -> str:
    if value is None:
        return "null"
    if type(value) is int and schema is None:
        return "java.lang.Long"
    return java_class(value, schema).removeprefix("class ")


class Rebuild:
    """Makes structs of `schema` of the fields of another; `sources` are fields of the other one.

    A null becomes the default of its source where `replaces_null` says so; a null in a field that
    has to have a value is refused, as Struct.put refuses it.
    """

    __slots__ = ("_defaults", "_indexes", "_required", "schema")

    def __init__(self, schema: Schema, sources: Iterable[Field], *, replaces_null: bool) -> None:
        self.schema = schema
        fields = list(sources)
        self._indexes: list[int] | None = [field.index for field in fields]
        if self._indexes == list(range(len(fields))):
            self._indexes = None
        self._defaults = [
            (place, field.schema.default)
            for place, field in enumerate(fields)
            if replaces_null and field.schema.default is not None
        ]
        self._required = [
            (place, field)
            for place, (field, _) in enumerate(zip(schema.fields, fields, strict=False))
            if not field.schema.optional
        ]

    def values(self, struct: Struct) -> list[Any]:
        """The values of the new struct's first fields. Raises DataError."""
        old, indexes = struct.values, self._indexes
        values = old[: len(self.schema.fields)] if indexes is None else [old[i] for i in indexes]
        for place, default in self._defaults:
            if values[place] is None:
                values[place] = default
        for place, field in self._required:
            if values[place] is None:
                validate_value(field.schema, None, field.name)
        return values

    def __call__(self, struct: Struct) -> Struct:
        """The new struct. Raises DataError."""
        return Struct(self.schema, self.values(struct))


def of_fields(schema: Schema, kept: Sequence[Field], *, replaces_null: bool) -> Rebuild:
    """Return what rebuilds structs of a schema with the fields `kept` alone."""
    made = with_fields(plain(schema), ((field.name, field.schema) for field in kept))
    return Rebuild(made, kept, replaces_null=replaces_null)


def java_split(text: str, separator: str) -> list[str]:
    """Return the parts of a text as String.split does, without the empty ones at the end.

    An empty text has no parts; Java returns one, which is empty.
    """
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def basics_of(schema: Schema) -> Mapping[str, Any]:
    """Return what a new schema inherits from another: name, version, doc and parameters."""
    return {
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": schema.parameters,
    }


def plain(schema: Schema) -> Schema:
    """The schema as required and without its default."""
    return replace(schema, optional=False, default=None)
