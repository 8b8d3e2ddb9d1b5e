"""InsertField: fields of the record's topic, partition, offset, time, or a fixed text.

Source: org.apache.kafka.connect.transforms.InsertField (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Setting
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
from barnabas.schemas.data.schema import Schema, Struct

_PURPOSE: Final = "field insertion"
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
        raise DataError(f"Only SinkRecord supported for [{_PURPOSE}], found: {name}")
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
            entries = dict(require_map(value, _PURPOSE))
            for insertion in self._insertions:
                taken = insertion.take(record)
                if taken is not None:
                    entries[insertion.name] = taken
            return self._with(record, None, entries)
        struct = require_struct(value, _PURPOSE, schema)
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


InsertFieldKey, InsertFieldValue = two_sided(InsertField)
