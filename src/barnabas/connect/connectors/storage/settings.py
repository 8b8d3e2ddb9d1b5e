"""The settings that sinks of files share, under the names of Confluent's storage connectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    group,
)
from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.storage.formats.avro import CODECS as AVRO_CODECS
from barnabas.connect.connectors.storage.formats.avro import AvroFormat
from barnabas.connect.connectors.storage.formats.base import FileFormat
from barnabas.connect.connectors.storage.formats.lines import BytesFormat, JsonFormat
from barnabas.connect.connectors.storage.formats.parquet import CODECS as PARQUET_CODECS
from barnabas.connect.connectors.storage.formats.parquet import ParquetFormat
from barnabas.connect.connectors.storage.partitioners import make_partitioner
from barnabas.connect.connectors.storage.time_path import zone_of
from barnabas.schemas.data.errors import ConfigError

_LAST_LONG: Final = 2**63 - 1
_SEPARATOR: Final = "format.bytearray.separator"
FORMATS: Final = ("AvroFormat", "ByteArrayFormat", "JsonFormat", "ParquetFormat")


def format_name(class_name: str) -> str:
    """Return which format a class name means: its last part. Raises ConfigError."""
    name = class_name.rpartition(".")[2]
    if name not in FORMATS:
        raise ConfigError(f"there is no such format: it must be one of {', '.join(FORMATS)}")
    return name


def _is_format(name: str, value: Any) -> None:
    try:
        format_name(str(value))
    except ConfigError as error:
        raise invalid(name, value, str(error)) from None


def _is_zone(name: str, value: Any) -> None:
    if value:
        try:
            zone_of(str(value))
        except ConfigError as error:
            raise invalid(name, value, str(error)) from None


_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


_T = ConfigType

PARTITIONER: Final = group("Partitioner",
    ("partitioner.class", _T.STRING, "DefaultPartitioner", _HIGH,
     "DefaultPartitioner, FieldPartitioner, TimeBased-, Daily- or HourlyPartitioner."),
    ("partition.field.name", _T.LIST, "", _MEDIUM, "Fields for the FieldPartitioner."),
    ("partition.duration.ms", _T.LONG, -1, _MEDIUM,
     "Time span of a directory of the TimeBasedPartitioner."),
    ("path.format", _T.STRING, "", _MEDIUM,
     "Directories of the TimeBasedPartitioner: 'year'=YYYY/'month'=MM/'day'=dd, as Joda-Time."),
    ("locale", _T.STRING, "", _MEDIUM, "Must be given for times; names are English ones."),
    ("timezone", _T.STRING, "", _MEDIUM, "Whose clocks the directories follow.", _is_zone),
    ("timestamp.extractor", _T.STRING, "Wallclock", _MEDIUM,
     "Wallclock, Record or RecordField: where a record's time is from."),
    ("timestamp.field", _T.STRING, "timestamp", _MEDIUM, "The field for RecordField."),
)  # fmt: skip

CONNECTOR: Final = group("Connector",
    ("flush.size", _T.INT, 1000, _HIGH, "Number of records of a partition that completes a file.",
     validators.at_least(1)),
    ("rotate.interval.ms", _T.LONG, -1, _HIGH,
     "Files end at a record so much later than the first. Needs a partitioner of times."),
    ("rotate.schedule.interval.ms", _T.LONG, -1, _MEDIUM,
     "Files end so often by the clock, counted from midnight in `timezone`."),
    ("rotate.file.on.partition.change", _T.BOOLEAN, True, _LOW,
     "With rotate.interval.ms: whether a record for another directory ends files."),
    ("schema.compatibility", _T.STRING, "NONE", _HIGH,
     "NONE, BACKWARD, FORWARD or FULL: which changes of schemas end files.",
     validators.one_of_any_case("NONE", "BACKWARD", "FORWARD", "FULL")),
    ("behavior.on.null.values", _T.STRING, "fail", _LOW,
     "Handling of records without a value: fail, ignore or write (keys only).",
     validators.one_of_any_case("fail", "ignore", "write")),
    ("report.null.values.to.dlq", _T.BOOLEAN, True, _LOW,
     "Send ignored records to the dead letter queue."),
    ("tombstone.encoded.partition", _T.STRING, "tombstone", _LOW,
     "The directory of records without a value."),
    ("partitioner.max.open.files", _T.INT, -1, _LOW,
     "Maximum number of directories with open files in a partition; -1 is no limit."),
    ("retry.backoff.ms", _T.LONG, 5000, _LOW, "Taken; the worker's own back-off is used."),
    ("shutdown.timeout.ms", _T.LONG, 3000, _LOW, "Taken; has no effect."),
    ("max.write.duration.ms", _T.LONG, _LAST_LONG, _LOW, "Taken; has no effect."),
    ("schema.cache.size", _T.INT, 1000, _LOW, "Taken; has no effect."),
    ("enhanced.avro.schema.support", _T.BOOLEAN, True, _LOW, "Taken; has no effect."),
    ("connect.meta.data", _T.BOOLEAN, True, _LOW,
     "Whether Avro's schemas keep names and versions of Connect's."),
    ("allow.optional.map.keys", _T.BOOLEAN, False, _LOW, "Taken; has no effect."),
)  # fmt: skip

STORAGE: Final = group("Storage",
    ("topics.dir", _T.STRING, "topics", _HIGH, "The directory above those of topics."),
    ("directory.delim", _T.STRING, "/", _MEDIUM, "Separator of directories."),
    ("file.delim", _T.STRING, "+", _MEDIUM, "Separator of topic, partition and offset."),
    ("filename.offset.zero.pad.width", _T.INT, 10, _LOW,
     "Minimum number of digits of offsets in names.", validators.at_least(0)),
    ("format.class", _T.STRING, "JsonFormat", _HIGH,
     "JsonFormat, AvroFormat, ParquetFormat or ByteArrayFormat.", _is_format),
    ("store.kafka.keys", _T.BOOLEAN, False, _LOW, "Store keys beside the values."),
    ("store.kafka.headers", _T.BOOLEAN, False, _LOW, "Store headers beside the values."),
    ("keys.format.class", _T.STRING, "AvroFormat", _LOW, "The format of keys.", _is_format),
    ("headers.format.class", _T.STRING, "AvroFormat", _LOW, "The format of headers.", _is_format),
    ("avro.codec", _T.STRING, "null", _LOW, "How Avro files are compressed.",
     validators.one_of(*AVRO_CODECS)),
    ("parquet.codec", _T.STRING, "snappy", _LOW, "How Parquet files are compressed.",
     validators.one_of(*PARQUET_CODECS)),
    ("format.bytearray.extension", _T.STRING, ".bin", _LOW,
     "The end of the names of ByteArrayFormat's files."),
    (_SEPARATOR, _T.STRING, None, _LOW,
     "Text after each record of ByteArrayFormat; by default a line feed."),
    ("json.decimal.format", _T.STRING, "BASE64", _LOW,
     "How JsonFormat writes decimals: BASE64 or NUMERIC.",
     validators.one_of_any_case("BASE64", "NUMERIC")),
)  # fmt: skip

READING: Final = group("Reading",
    ("topics.dir", _T.STRING, "topics", _HIGH, "The directory that files are looked for below."),
    ("topic.regex.list", _T.LIST, "", _HIGH,
     "Pairs of `topic:pattern`: files whose names match go to the topic, with mode=GENERIC."),
    ("mode", _T.STRING, "RESTORE_BACKUP", _HIGH,
     "RESTORE_BACKUP reads what the sink wrote, GENERIC any files.",
     validators.one_of_any_case("RESTORE_BACKUP", "GENERIC")),
    ("record.batch.max.size", _T.INT, 200, _LOW, "Taken; batches are of 64 MiB of files."),
    ("file.discovery.starting.timestamp", _T.LONG, 0, _LOW,
     "Files that were last changed before it are left out; milliseconds since 1970."),
    ("behavior.on.error", _T.STRING, "fail", _LOW,
     "Handling of a damaged file: fail, or ignore, which continues with the next.",
     validators.one_of_any_case("fail", "ignore", "log")),
)  # fmt: skip
_READ_TOO: Final = (
    *("file.delim", "format.class", "store.kafka.keys", "store.kafka.headers"),
    *("keys.format.class", "headers.format.class", "format.bytearray.extension"),
    _SEPARATOR,
)
SOURCE: Final = Definition((*READING, *(one for one in STORAGE if one.name in _READ_TOO)))


def routes_of(values: Mapping[str, Any]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return (pattern, topic) of `topic.regex.list`; none for a backup. Raises ConfigError."""
    if str(values["mode"]).upper() != "GENERIC":
        return ()
    routes = []
    for pair in values["topic.regex.list"]:
        topic, separator, pattern = str(pair).partition(":")
        if not separator or not topic:
            raise invalid("topic.regex.list", pair, "must be topic:pattern")
        try:
            routes.append((re.compile(pattern), topic))
        except re.error as error:
            raise invalid("topic.regex.list", pair, str(error)) from None
    if not routes:
        raise ConfigError("mode=GENERIC needs topic.regex.list")
    return tuple(routes)


SINK: Final = Definition((*CONNECTOR, *STORAGE, *PARTITIONER))


def parsed(definition: Definition, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return parsed settings; spaces and line ends of a separator stay. Raises ConfigError."""
    values = definition.parse(settings)
    if _SEPARATOR in settings:
        values[_SEPARATOR] = settings[_SEPARATOR]
    return values


def make_format(class_name: str, values: Mapping[str, Any]) -> FileFormat:
    """Return the format that a class name and parsed settings say. Raises ConfigError."""
    name = format_name(class_name)
    if name == "JsonFormat":
        return JsonFormat(str(values.get("json.decimal.format", "BASE64")).upper())
    if name == "AvroFormat":
        has_meta = bool(values.get("connect.meta.data", True))
        return AvroFormat(str(values.get("avro.codec", "null")), has_meta=has_meta)
    if name == "ParquetFormat":
        return ParquetFormat(str(values.get("parquet.codec", "snappy")))
    separator = values[_SEPARATOR]
    given = b"\n" if separator is None else str(separator).encode()
    return BytesFormat(str(values["format.bytearray.extension"]), given)


def errors_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what is wrong with parsed settings beyond each one alone."""
    errors: dict[str, list[str]] = {}
    try:
        make_partitioner(values)
    except ConfigError as error:
        errors["partitioner.class"] = [str(error)]
    if str(values["behavior.on.null.values"]).lower() == "write" and not values["store.kafka.keys"]:
        errors["behavior.on.null.values"] = [
            "Records without a value are only written with store.kafka.keys=true"
        ]
    if values["rotate.schedule.interval.ms"] > 0 and not values["timezone"]:
        errors["timezone"] = ["rotate.schedule.interval.ms needs a timezone"]
    return errors
