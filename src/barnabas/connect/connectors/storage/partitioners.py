"""Into which directory a record goes: its *encoded partition*, below `topics.dir` and topic.

Names of classes and settings are Confluent's (`io.confluent.connect.storage.partitioner`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.storage.time_path import (
    TimePath,
    to_ms,
    truncated,
    zone_of,
)
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.schema import TIMESTAMP, Schema, Struct, Type

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_PACKAGE: Final = "io.confluent.connect.storage.partitioner."
_NUMERIC: Final = re.compile(r"-?[0-9]{1,19}")
_WHOLE: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


class PartitionError(DataError):
    """A record does not say into which directory it goes (PartitionException)."""

    java_name = "io.confluent.connect.storage.errors.PartitionException"


class Partitioner(ABC):
    """Says where records go. Picklable."""

    delimiter: str = "/"
    is_timed = False
    """True if records have a time, which `rotate.interval.ms` goes by."""

    @abstractmethod
    def encode(self, record: SinkRecord, now_ms: int) -> str:
        """Return the directory below the topic's. Raises DataError."""

    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return the record's time, where there is one that counts. Raises DataError."""
        return None


class DefaultPartitioner(Partitioner):
    """A directory per partition of the topic."""

    def encode(self, record: SinkRecord, now_ms: int) -> str:
        """Return `partition=N`."""
        return f"partition={record.partition}"


class FieldPartitioner(Partitioner):
    """A directory per value of fields."""

    def __init__(self, names: list[str], delimiter: str) -> None:
        if not names:
            raise ConfigError("partition.field.name must be given for the FieldPartitioner")
        self.names = names
        self.delimiter = delimiter

    def encode(self, record: SinkRecord, now_ms: int) -> str:
        """Return `name=value` for each field."""
        if not isinstance(record.value, Struct):
            raise PartitionError("Error encoding partition: the value is not a struct.")
        return self.delimiter.join([self._one(record.value, name) for name in self.names])

    def _one(self, struct: Struct, name: str) -> str:
        schema, value = field_of(struct, name)
        if schema is None:
            raise DataError(f"Field '{name}' is not present in the schema.")
        if value is None:
            return f"{name}=null"
        if schema.type in _WHOLE and isinstance(value, int):
            return f"{name}={value}"
        if schema.type is Type.STRING:
            return f"{name}={value}"
        if schema.type is Type.BOOLEAN:
            return f"{name}={'true' if value else 'false'}"
        raise PartitionError(
            f"Error encoding partition: field '{name}' of type {schema.type.name} is not supported."
        )


class TimeBasedPartitioner(Partitioner):
    """A directory per span of time."""

    is_timed = True

    def __init__(self, duration_ms: int, pattern: str, timezone: str, extractor: Extractor) -> None:
        if duration_ms <= 0:
            text = "Partition duration needs to be a positive."
            raise invalid("partition.duration.ms", duration_ms, text)
        self._duration_ms = duration_ms
        self._given = pattern, timezone
        self._zone = zone_of(timezone)
        self._path = TimePath(pattern, self._zone)
        self._extractor = extractor
        self._texts: dict[int, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeBasedPartitioner, (self._duration_ms, *self._given, self._extractor)

    def encode(self, record: SinkRecord, now_ms: int) -> str:
        """Return what the pattern says of the start of the span that the record's time is in."""
        ms = self._extractor.time_ms(record, now_ms)
        if ms is None:
            raise PartitionError(
                "Unable to determine timestamp using timestamp.extractor "
                f"{type(self._extractor).__name__} for record at offset {record.offset}"
            )
        # Zones' offsets change at full minutes only.
        minute = ms // 60_000 if self._duration_ms % 60_000 == 0 else ms
        text = self._texts.get(minute)
        if text is None:
            if len(self._texts) > _TEXTS_MAX:
                self._texts.clear()
            try:
                start = truncated(ms, self._duration_ms, self._zone)
                text = self._path.text(start)
            except (OverflowError, ValueError) as error:
                raise PartitionError(f"{ms} ms after 1970 is not a time of a directory") from error
            self._texts[minute] = text
        return text

    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return what the extractor finds."""
        return self._extractor.time_ms(record, now_ms)


_TEXTS_MAX: Final = 10_000


class Extractor(ABC):
    """Finds the time of a record, in milliseconds since 1970."""

    @abstractmethod
    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return the time; None if absent. Raises DataError."""


class WallclockExtractor(Extractor):
    """When the connector first saw the record."""

    def time_ms(self, record: SinkRecord, now_ms: int) -> int:
        """Return `now_ms`."""
        return now_ms


class RecordExtractor(Extractor):
    """The record's own timestamp."""

    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return it."""
        return record.timestamp_ms


class RecordFieldExtractor(Extractor):
    """A field of the record's value: a number, a Timestamp or ISO 8601's text."""

    def __init__(self, name: str) -> None:
        self._name = name

    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return it."""
        if not isinstance(record.value, (Struct, Mapping)):
            raise PartitionError(
                "Error encoding partition: the value is neither a struct nor a map."
            )
        schema, value = field_of(record.value, self._name)
        if schema is not None and schema.name == TIMESTAMP and isinstance(value, datetime):
            return to_ms(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, str):
            return self._parsed(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and isfinite(value):
            return int(value)
        raise PartitionError(f"Error extracting timestamp from record field: {self._name}")

    def _parsed(self, text: str) -> int:
        if _NUMERIC.fullmatch(text):
            return int(text)
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            raise PartitionError(
                f"Error extracting timestamp from record field: {self._name}: "
                "its text is neither a number nor a time in ISO 8601"
            ) from None
        return to_ms(when if when.tzinfo else when.replace(tzinfo=UTC))


class SchemaAffix(Partitioner):
    """Puts the name of the value's schema before or behind another partitioner's directory."""

    def __init__(self, inner: Partitioner, *, is_prefix: bool, delimiter: str) -> None:
        self._inner = inner
        self._is_prefix = is_prefix
        self.delimiter = delimiter
        self.is_timed = inner.is_timed

    def encode(self, record: SinkRecord, now_ms: int) -> str:
        """Return the other's with `schema_name=…`."""
        inner = self._inner.encode(record, now_ms)
        name = record.value_schema.name if record.value_schema is not None else None
        affix = f"schema_name={'null' if name is None else name}"
        return self.delimiter.join((affix, inner) if self._is_prefix else (inner, affix))

    def time_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        """Return the other's."""
        return self._inner.time_ms(record, now_ms)


def field_of(value: Any, path: str) -> tuple[Schema | None, Any]:
    """Return the schema and value of a field, whose name may have dots; None where it is not."""
    schema: Schema | None = None
    for name in path.split("."):
        if isinstance(value, Struct):
            field = value.schema.field(name)
            if field is None:
                return None, None
            schema, value = field.schema, value.get(name)
        elif isinstance(value, Mapping):
            schema, value = None, value.get(name)
        else:
            return schema, None
    return schema, value


def make_partitioner(values: Mapping[str, Any]) -> Partitioner:
    """Return the partitioner that parsed settings say. Raises ConfigError."""
    name = str(values["partitioner.class"]).removeprefix(_PACKAGE)
    delimiter = str(values["directory.delim"])
    made: Partitioner
    if name == "DefaultPartitioner":
        made = DefaultPartitioner()
    elif name == "FieldPartitioner":
        made = FieldPartitioner(list(values["partition.field.name"]), delimiter)
    elif name in _SPANS:
        made = _timed(name, values, delimiter)
    else:
        known = ", ".join(("DefaultPartitioner", "FieldPartitioner", *_SPANS))
        raise invalid("partitioner.class", name, f"it must be one of {known}")
    affix = str(values.get("s3.schema.partition.affix.type", "NONE"))
    if affix != "NONE":
        return SchemaAffix(made, is_prefix=affix == "PREFIX", delimiter=delimiter)
    return made


_SPANS: Final = {
    "TimeBasedPartitioner": (0, ()),
    "DailyPartitioner": (DAY_MS, ("'year'=YYYY", "'month'=MM", "'day'=dd")),
    "HourlyPartitioner": (HOUR_MS, ("'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH")),
}


def _timed(name: str, values: Mapping[str, Any], delimiter: str) -> Partitioner:
    duration_ms, pieces = _SPANS[name]
    pattern = delimiter.join(pieces)
    if name == "TimeBasedPartitioner":
        duration_ms = int(values["partition.duration.ms"])
        pattern = str(values["path.format"])
        if not pattern.strip() or pattern == delimiter:
            raise invalid("path.format", pattern, "Path format cannot be empty.")
        if delimiter.strip():
            pattern = pattern.removesuffix(delimiter)
    for setting in ("locale", "timezone"):
        if not str(values[setting]).strip():
            raise invalid(setting, values[setting], f"{setting.title()} cannot be empty.")
    return TimeBasedPartitioner(
        duration_ms, pattern, str(values["timezone"]), make_extractor(values)
    )


def make_extractor(values: Mapping[str, Any]) -> Extractor:
    """Return the extractor of times that parsed settings say. Raises ConfigError."""
    given = str(values["timestamp.extractor"])
    name = given.rpartition("$")[2].removesuffix("TimestampExtractor")
    if name == "Wallclock":
        return WallclockExtractor()
    if name == "Record":
        return RecordExtractor()
    if name == "RecordField":
        return RecordFieldExtractor(str(values["timestamp.field"]))
    raise ConfigError(
        f"Invalid timestamp extractor: {given} (it must be Wallclock, Record or RecordField)"
    )
