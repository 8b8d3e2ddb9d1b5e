"""WITH clauses: which properties a statement can have, of what types, and what they say.

Names and messages are ksqlDB's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from barnabas.java.time.units import NANOS_OF_MS, NANOS_OF_UNIT
from barnabas.sql.errors import PrepareError, SqlError
from barnabas.sql.formats.delimited import parse_delimiter
from barnabas.sql.plan.steps import TimestampColumn, WindowInfo
from barnabas.sql.syntax.statement_parser import StatementParser
from barnabas.sql.syntax.tree import Literal, WindowKind

Check = Callable[[str, Any], Any]
"""From a property's name and value to the value that counts; raises PrepareError."""

_INTEGER_MAX = {"INT": 2**31 - 1, "SHORT": 2**15 - 1, "LONG": 2**63 - 1}


def _invalid(name: str, value: Any, problem: str) -> PrepareError:
    return PrepareError(f"Invalid value {value} for property {name}: {problem}")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _invalid(name, value, "Expected value to be a string")
    return value


def _full_text(name: str, value: Any) -> str:
    if not _text(name, value):
        raise _invalid(name, value, "String must be non-empty")
    return str(value)


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _invalid(name, value, "Expected value to be either true or false")


def _whole(kind: str) -> Check:
    def check(name: str, value: Any) -> int:
        if isinstance(value, str):
            try:
                value = int(value.strip())
            except ValueError:
                raise _invalid(name, value, f"Not a number of type {kind}") from None
        if isinstance(value, bool | float | Decimal) or not isinstance(value, int):
            raise _invalid(name, value, f"Expected value to be a number of type {kind}")
        if abs(value) > _INTEGER_MAX[kind]:
            raise _invalid(name, value, f"Not a number of type {kind}")
        return value

    return check


def _one_of(*choices: str, ignores_case: bool = False) -> Check:
    def check(name: str, value: Any) -> str:
        text = _text(name, value)
        chosen = text.upper() if ignores_case else text
        if chosen not in choices:
            raise _invalid(name, value, f"String must be one of: {', '.join(choices)}, null")
        return chosen

    return check


def _parsed(parse: Callable[[str], Any]) -> Check:
    def check(name: str, value: Any) -> str:
        text = _text(name, value)
        try:
            parse(text)
        except SqlError as error:
            raise PrepareError(f"Configuration {name} is invalid: {error.message}") from error
        return text

    return check


_DURATION = re.compile(r"[+-]?[0-9]{1,18}\Z")


def duration_ms(text: str) -> int:
    """The milliseconds of a duration like `10 SECONDS`; raises SqlError."""
    parts = text.split()
    problem = ""
    unit = "" if len(parts) != 2 else parts[1].upper().removesuffix("S") + "S"
    if len(parts) != 2:
        problem = f"Expected 2 tokens, got: {len(parts)}"
    elif not _DURATION.match(parts[0]):
        problem = f"Not numeric: '{parts[0]}'"
    elif unit not in NANOS_OF_UNIT:
        units = ", ".join(reversed(NANOS_OF_UNIT))
        problem = f"Unknown time unit: '{parts[1].upper()}'\nSupported time units are: {units}"
    elif not 0 < int(parts[0]) * NANOS_OF_UNIT[unit] < 2**62 * NANOS_OF_MS:
        problem = f"Out of range: '{parts[0]}'"
    if problem:
        raise SqlError(f"Invalid duration: '{text}'. {problem}")
    return int(parts[0]) * NANOS_OF_UNIT[unit] // NANOS_OF_MS


_COMMON: dict[str, Check] = {
    "KAFKA_TOPIC": _full_text,
    "PARTITIONS": _whole("INT"),
    "REPLICAS": _whole("SHORT"),
    "RETENTION_MS": _whole("LONG"),
    "CLEANUP_POLICY": _text,
    "FORMAT": _text,
    "KEY_FORMAT": _text,
    "VALUE_FORMAT": _text,
    "KEY_DELIMITER": _parsed(parse_delimiter),
    "VALUE_DELIMITER": _parsed(parse_delimiter),
    "WRAP_SINGLE_VALUE": _boolean,
    "TIMESTAMP": _text,
    "TIMESTAMP_FORMAT": _text,
    "KEY_SCHEMA_ID": _whole("INT"),
    "VALUE_SCHEMA_ID": _whole("INT"),
    "KEY_SCHEMA_FULL_NAME": _text,
    "VALUE_SCHEMA_FULL_NAME": _text,
    "VALUE_AVRO_SCHEMA_FULL_NAME": _text,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _one_of("OPTIONAL", "WRAPPER"),
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _one_of("OPTIONAL", "WRAPPER"),
}
CREATE_AS: Mapping[str, Check] = _COMMON
CREATE: Mapping[str, Check] = _COMMON | {
    "WINDOW_TYPE": _one_of("SESSION", "HOPPING", "TUMBLING", ignores_case=True),
    "WINDOW_SIZE": _parsed(duration_ms),
    "SOURCE_CONNECTOR": _text,
    "SOURCED_BY_CONNECTOR": _text,
}
INSERT_INTO: Mapping[str, Check] = {"QUERY_ID": _text}


@dataclass(frozen=True)
class SourceProperties:
    """A checked WITH clause: `values` by name in upper case, without those that are NULL."""

    values: Mapping[str, Any]

    @property
    def topic(self) -> str | None:
        return self.values.get("KAFKA_TOPIC")

    @property
    def key_format(self) -> str | None:
        return self.values.get("FORMAT") or self.values.get("KEY_FORMAT")

    @property
    def value_format(self) -> str | None:
        return self.values.get("FORMAT") or self.values.get("VALUE_FORMAT")

    @property
    def wraps_single(self) -> bool | None:
        return self.values.get("WRAP_SINGLE_VALUE")

    @property
    def texts(self) -> dict[str, str]:
        """All values as text, as formats take them."""
        return {
            name: str(value).strip() if name.endswith("FULL_NAME") else str(value)
            for name, value in self.values.items()
        }

    @property
    def timestamp(self) -> TimestampColumn | None:
        """The column that TIMESTAMP names: a name as in a statement."""
        text = self.values.get("TIMESTAMP")
        if text is None:
            return None
        return TimestampColumn(StatementParser(text).identifier(), self.timestamp_format)

    @property
    def timestamp_format(self) -> str | None:
        return self.values.get("TIMESTAMP_FORMAT")

    @property
    def window(self) -> WindowInfo | None:
        """The window of the topic's keys."""
        kind, size = self.values.get("WINDOW_TYPE"), self.values.get("WINDOW_SIZE")
        if kind is None:
            return None
        return WindowInfo(WindowKind(kind), None if size is None else duration_ms(size))


def read_properties(
    given: Mapping[str, Literal], allowed: Mapping[str, Check], *, needs_topic: bool = False
) -> SourceProperties:
    """The properties of a WITH clause, checked; raises PrepareError."""
    unknown = [name for name in given if name not in allowed]
    if unknown:
        names = ",".join(unknown)
        raise PrepareError(f"Invalid config variable(s) in the WITH clause: {names}")
    if needs_topic and given.get("KAFKA_TOPIC") is None:
        raise PrepareError('Missing required property "KAFKA_TOPIC" which has no default value.')
    values = {
        name: allowed[name](name, value) for name, value in given.items() if value is not None
    }
    _check_together(values)
    return SourceProperties(values)


def _check_together(values: Mapping[str, Any]) -> None:
    for name in ("KEY_FORMAT", "VALUE_FORMAT"):
        if "FORMAT" in values and name in values:
            raise PrepareError(
                f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both key "
                "and value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and "
                "'VALUE_FORMAT'."
            )
    if "VALUE_AVRO_SCHEMA_FULL_NAME" in values and "VALUE_SCHEMA_FULL_NAME" in values:
        raise PrepareError(
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' "
            "properties. Please only set 'VALUE_SCHEMA_FULL_NAME'."
        )
    needs_size = values.get("WINDOW_TYPE") in ("HOPPING", "TUMBLING")
    if needs_size and "WINDOW_SIZE" not in values:
        raise PrepareError(
            f"{values['WINDOW_TYPE']} windows require 'WINDOW_SIZE' to be provided in the WITH "
            "clause. For example: 'WINDOW_SIZE'='10 SECONDS'"
        )
    if not needs_size and "WINDOW_SIZE" in values:
        raise PrepareError("'WINDOW_SIZE' should not be set for SESSION windows.")
    if "CLEANUP_POLICY" in values:
        raise PrepareError(
            "Invalid config variable in the WITH clause: CLEANUP_POLICY.\n"
            "The CLEANUP_POLICY config is automatically inferred based on the type of source "
            "(STREAM or TABLE).\nUsers can't set the CLEANUP_POLICY config manually."
        )
