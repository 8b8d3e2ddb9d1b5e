"""TimestampConverter: moments as texts, numbers, Dates, Times and Timestamps.

Source: org.apache.kafka.connect.transforms.TimestampConverter (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import one_of
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    plain,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.java.time.simple_date import SimpleDateFormat
from barnabas.schemas.data.builder import (
    DATE_SCHEMA,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    optional,
    with_default,
    with_fields,
)
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import (
    ConfigError,
    ConnectError,
    DataError,
    NullPointerError,
)
from barnabas.schemas.data.logical import (
    DAY_MS,
    date_to_days,
    days_to_date,
    ms_to_time,
    ms_to_timestamp,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.schema import (
    DATE,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    java_class,
)

_PURPOSE: Final = "converting timestamp formats"
_SCHEMAS: Final = {
    "string": STRING,
    "unix": INT64,
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}
_LONG_MAX: Final = 2**63 - 1
_MS_PER_SECOND: Final = 1000
_UNITS_PER_MS: Final = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}


class TimestampConverter(Sided):
    """Converts a field, or all of the key or value."""

    definition: ClassVar[Definition] = Definition([
        Setting("field", ConfigType.STRING, default="", importance=Importance.HIGH,
                doc="The field with the moment; empty if all of the key or value is one."),
        Setting("target.type", ConfigType.STRING, importance=Importance.HIGH,
                doc="Target type: string, unix, Date, Time or Timestamp.",
                validator=one_of(*_SCHEMAS)),
        Setting("format", ConfigType.STRING, default="",
                doc="Format of strings, for Java's SimpleDateFormat."),
        Setting("unix.precision", ConfigType.STRING, default="milliseconds",
                importance=Importance.LOW,
                doc="Unit of numbers since 1970. Fractions of milliseconds are lost.",
                validator=one_of("nanoseconds", "microseconds", "milliseconds", "seconds")),
        REPLACE_NULL,
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._field: str = parsed["field"]
        self._type: str = parsed["target.type"]
        self._precision: str = parsed["unix.precision"]
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        pattern = parsed["format"]
        if self._type == "string" and not pattern.strip():
            raise ConfigError(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._format: SimpleDateFormat | None = None
        if pattern.strip():
            try:
                self._format = SimpleDateFormat(pattern)
            except ValueError as error:
                raise ConfigError(
                    f"Invalid value java.lang.IllegalArgumentException: {error} for configuration "
                    "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                    f"timestamps: {pattern}"
                ) from error
        self._plans: Cache[Schema, tuple[Rebuild, int | None, str | None]] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            if value is None or not self._field:
                return self._with(record, None, self._converted(value, None))
            entries = dict(require_map(value, _PURPOSE))
            entries[self._field] = self._converted(entries.get(self._field), None)
            return self._with(record, None, entries)
        if not self._field:
            made = self._target(schema)
            return self._with(record, made, self._converted(value, _kind_of(schema)))
        struct = None if value is None else require_struct(value, _PURPOSE, schema)
        plan = self._plans(schema)
        if struct is None:
            return self._with(record, plan[0].schema, None)
        made_struct = self._rebuilt(plan, struct)
        return self._with(record, made_struct.schema, made_struct)

    def _rebuilt(self, plan: tuple[Rebuild, int | None, str | None], struct: Struct) -> Struct:
        rebuild, index, kind = plan
        values = rebuild.values(struct)
        if index is not None:
            if kind is None:
                _kind_of(struct.schema.fields[index].schema)
            values[index] = self._converted(values[index], kind)
        return Struct(rebuild.schema, values)

    def _target(self, schema: Schema) -> Schema:
        target = _SCHEMAS[self._type]
        return optional(target) if schema.optional else target

    def _plan(self, schema: Schema) -> tuple[Rebuild, int | None, str | None]:
        fields = [
            (f.name, self._target(f.schema) if f.name == self._field else f.schema)
            for f in schema.fields
        ]
        field = schema.field(self._field)
        made = replace(with_fields(plain(schema), fields), optional=schema.optional)
        index = None if field is None else field.index
        try:
            kind = None if field is None else _kind_of(field.schema)
        except ConnectError:
            kind = None  # told when there is a value
        plan = Rebuild(made, schema.fields, replaces_null=self._replaces_null), index, kind
        if schema.default is not None:
            made = with_default(made, replace(self._rebuilt(plan, schema.default), schema=made))
            plan = Rebuild(made, schema.fields, replaces_null=self._replaces_null), index, kind
        return plan

    def _converted(self, value: Any, kind: str | None) -> Any:
        if value is None:
            return None
        ms = self._ms(value, _inferred(value) if kind is None else kind)
        match self._type:
            case "string":
                assert self._format is not None
                return self._format.format(ms)
            case "unix":
                return self._number(ms)
            case "Date":
                return days_to_date(ms // DAY_MS)
            case "Time":
                return ms_to_time(ms % DAY_MS)
        return ms_to_timestamp(ms)

    def _ms(self, value: Any, kind: str) -> int:
        if kind == "string":
            if type(value) is not str:
                raise DataError(
                    f"Expected string timestamp to be a String, but found {java_class(value)}"
                )
            if self._format is None:
                raise NullPointerError("There is no format to read texts with")
            try:
                return self._format.parse(value)
            except ValueError as error:
                raise DataError(
                    f"Could not parse timestamp: value ({value}) does not match pattern "
                    f"({self._format.pattern})"
                ) from error
        if kind == "unix":
            if type(value) is not int:
                raise DataError(
                    f"Expected Unix timestamp to be a Long, but found {java_class(value)}"
                )
            return self._from_number(value)
        if not isinstance(value, (date, time)):
            raise DataError(
                f"Expected {kind} to be a java.util.Date, but found {java_class(value)}"
            )
        if isinstance(value, datetime):
            return timestamp_to_ms(value)
        return time_to_ms(value) if isinstance(value, time) else date_to_days(value) * DAY_MS

    def _from_number(self, value: int) -> int:
        if self._precision == "seconds":
            return _saturated(value * _MS_PER_SECOND)
        return _towards_zero(value, _UNITS_PER_MS[self._precision])

    def _number(self, ms: int) -> int:
        if self._precision == "seconds":
            return _towards_zero(ms, _MS_PER_SECOND)
        return _saturated(ms * _UNITS_PER_MS[self._precision])


def _towards_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def _saturated(value: int) -> int:
    return max(-_LONG_MAX - 1, min(_LONG_MAX, value))


def _kind_of(schema: Schema) -> str:
    kind = _KINDS.get(schema.name)
    if kind is not None:
        return kind
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


_KINDS: Final[dict[str | None, str]] = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}


def _inferred(value: Any) -> str:
    if isinstance(value, (date, time)):
        return "Timestamp"
    if type(value) is int:
        return "unix"
    if type(value) is str:
        return "string"
    raise DataError(
        f"TimestampConverter does not support {java_class(value)} objects as timestamps"
    )


TimestampConverterKey, TimestampConverterValue = two_sided(TimestampConverter)
