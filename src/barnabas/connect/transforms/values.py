"""Transforms of fields' values: InsertField and MaskField.

InsertField adds the record's topic, partition, offset, time, or a fixed text. MaskField replaces
values with a given text, or with the empty value of their type. Source:
org.apache.kafka.connect.transforms.InsertField and MaskField (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting
from barnabas.connect.config.validators import list_of, non_empty
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord, SinkRecord
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    plain,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.java.numbers import low_bits, parse_decimal, short_float
from barnabas.schemas.data.builder import (
    INT32,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    optional,
    with_fields,
)
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.logical import ms_to_timestamp
from barnabas.schemas.data.schema import WHOLE_BITS, Schema, Struct, Type, java_class

_INSERTION: Final = "field insertion"
_MASKING: Final = "mask fields"
_HOW: Final = " A ! after the name makes it required, a ? optional (the default)."


@dataclass(slots=True, frozen=True)
class _Insertion:
    """A field, and what of the record goes into it; without a schema a time stays a number."""

    name: str
    schema: Schema
    take: Callable[[ConnectRecord], Any]
    is_time: bool = False

    @classmethod
    def of(
        cls, spec: str, schema: Schema, take: Callable[[ConnectRecord], Any], *, is_time: bool
    ) -> _Insertion:
        """`name!` is required, `name?` or `name` optional."""
        is_required = spec.endswith("!")
        name = spec[:-1] if spec.endswith(("!", "?")) else spec
        return cls(name, schema if is_required else optional(schema), take, is_time)


def _offset(record: ConnectRecord) -> int:
    if not isinstance(record, SinkRecord):
        name = "org.apache.kafka.connect.source.SourceRecord"
        raise DataError(f"Only SinkRecord supported for [{_INSERTION}], found: {name}")
    return record.offset


class InsertField(Sided):
    """Adds fields."""

    definition: ClassVar[Definition] = Definition(
        [
            *(
                Setting(name, ConfigType.STRING, default=None, doc=doc + _HOW)
                for name, doc in (
                    ("topic.field", "The field for the topic."),
                    ("partition.field", "The field for the partition."),
                    ("offset.field", "The field for the offset, of sink connectors only."),
                    ("timestamp.field", "The field for the record's time."),
                    ("static.field", "The field for a fixed text."),
                )
            ),
            Setting("static.value", ConfigType.STRING, default=None, doc="The fixed text."),
            REPLACE_NULL,
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        static = parsed["static.value"]
        sources: list[tuple[str, Schema, Callable[[ConnectRecord], Any]]] = [
            ("topic.field", STRING, lambda record: record.topic),
            ("partition.field", INT32, lambda record: record.partition),
            ("offset.field", INT64, _offset),
            ("timestamp.field", TIMESTAMP_SCHEMA, lambda record: record.timestamp_ms),
            ("static.field", STRING, lambda _: static),
        ]
        self._insertions = [
            _Insertion.of(parsed[name], schema, take, is_time=name == "timestamp.field")
            for name, schema, take in sources
            if parsed[name] is not None
        ]
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        if parsed["static.field"] is not None and static is None:
            raise invalid(
                "static.value",
                None,
                f"No value specified for static field: {parsed['static.field']}",
            )
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._plans: Cache[Schema, Rebuild] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if value is None:
            return record
        if schema is None:
            entries = dict(require_map(value, _INSERTION))
            for insertion in self._insertions:
                taken = insertion.take(record)
                if taken is not None:
                    entries[insertion.name] = taken
            return self._with(record, None, entries)
        struct = require_struct(value, _INSERTION, schema)
        plan = self._plans(struct.schema)
        values = plan.values(struct)
        for insertion in self._insertions:
            taken = insertion.take(record)
            if taken is not None and insertion.is_time:
                taken = ms_to_timestamp(taken)
            values.append(taken)
        return self._with(record, plan.schema, Struct(plan.schema, values))

    def _plan(self, schema: Schema) -> Rebuild:
        fields = [(field.name, field.schema) for field in schema.fields]
        fields += [(insertion.name, insertion.schema) for insertion in self._insertions]
        made = with_fields(plain(schema), fields)
        return Rebuild(made, schema.fields, replaces_null=self._replaces_null)


class MaskField(Sided):
    """Masks fields."""

    masks: ClassVar[bool] = True
    definition: ClassVar[Definition] = Definition([
        Setting("fields", ConfigType.LIST, importance=Importance.HIGH, doc="The fields to mask.",
                validator=list_of(is_empty_allowed=False), is_distinct=True),
        Setting("replacement", ConfigType.STRING, default=None, importance=Importance.LOW,
                doc="The replacement for numbers and strings, instead of 0 and an empty string.",
                validator=non_empty),
        REPLACE_NULL,
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._fields: frozenset[str] = frozenset(parsed["fields"])
        self._replacement: str | None = parsed["replacement"]
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._plans: Cache[Schema, tuple[Rebuild, list[tuple[int, Schema]]]] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            entries = dict(require_map(value, _MASKING))
            for name in self._fields:
                entries[name] = self._masked(entries.get(name), None)
            return self._with(record, None, entries)
        whole = require_struct(value, _MASKING, schema)
        rebuild, masked = self._plans(whole.schema)
        values = rebuild.values(whole)
        for index, part in masked:
            values[index] = self._masked(values[index], part)
        return self._with(record, schema, Struct(whole.schema, values))

    def _plan(self, schema: Schema) -> tuple[Rebuild, list[tuple[int, Schema]]]:
        rebuild = Rebuild(schema, schema.fields, replaces_null=self._replaces_null)
        return rebuild, [(f.index, f.schema) for f in schema.fields if f.name in self._fields]

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        if self._replacement is None:
            return _nothing(value)
        return _replaced(self._replacement, value, schema)


def _nothing(value: Any) -> Any:
    for kind, nothing in _NOTHING.items():
        if type(value) is kind:
            return nothing
    if isinstance(value, (list, tuple)):
        return []
    if isinstance(value, Mapping):
        return {}
    raise DataError(f"Cannot mask value of type: {java_class(value)}")


_NOTHING: Final[dict[type, Any]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    Decimal: Decimal(0),
    datetime: datetime(1970, 1, 1, tzinfo=UTC),
    date: date(1970, 1, 1),
    time: time(0),
}


def _replaced(replacement: str, value: Any, schema: Schema | None) -> Any:
    if type(value) is str:
        return replacement
    if type(value) not in (int, float, Decimal):
        raise DataError(f"Cannot mask value of type {java_class(value)} with custom replacement.")
    try:
        number = parse_decimal(replacement)
    except ValueError as error:
        what = "number" if type(value) is Decimal else "a number"
        text = f"Unable to convert {replacement} (class java.lang.String) to {what}"
        raise DataError(text) from error
    if type(value) is Decimal:
        return number
    if type(value) is int:
        bits = 64 if schema is None else WHOLE_BITS[schema.type]
        return low_bits(low_bits(number, 64), bits)
    result = float(number)
    return result if schema is None or schema.type is Type.FLOAT64 else short_float(result)


InsertFieldKey, InsertFieldValue = two_sided(InsertField)
MaskFieldKey, MaskFieldValue = two_sided(MaskField)
