"""Checks of the offsets that users give for MirrorMaker's connectors, with Kafka's texts.

Source: MirrorUtils (Kafka 4.3).
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.errors.kinds import ConnectError
from barnabas.connect.record import JsonMap

_INT_MAX = 2**31 - 1


def check_text(partition: JsonMap | None, key: str) -> None:
    """A source partition must have a text under a key. Raises ConnectError."""
    value = _value(partition, key)
    if not isinstance(value, str):
        raise _wrong(partition, key, value, "which must be a string")


def check_partition(partition: JsonMap | None) -> None:
    """A source partition must have a number of a partition. Raises ConnectError."""
    value = _value(partition, "partition")
    if not _is_int(value) or value > _INT_MAX:
        raise _wrong(partition, "partition", value, "which must be an integer")
    if value < 0:
        raise _wrong(partition, "partition", value, "which cannot be negative")


def check_offset(partition: JsonMap, offset: JsonMap, *, is_zero: bool) -> None:
    """An offset must be a number; of checkpoints and heartbeats 0. Raises ConnectError."""
    where = f"Source offset {_java(offset)} for source partition {_java(partition)}"
    if "offset" not in offset:
        raise ConnectError(f"{where} is missing the 'offset' key, which is required")
    value = offset["offset"]
    said = f"{where} has an invalid value {value} for the 'offset' key"
    if not _is_int(value):
        raise ConnectError(f"{said}, which must be an integer")
    if is_zero and value != 0:
        raise ConnectError(f"{said}; the only accepted value is 0")
    if value < 0:
        raise ConnectError(f"{said}, which cannot be negative")


def _value(partition: JsonMap | None, key: str) -> Any:
    if partition is None:
        raise ConnectError("Source partitions may not be null")
    if key not in partition:
        raise ConnectError(
            f"Source partition {_java(partition)} is missing the '{key}' key, which is required"
        )
    return partition[key]


def _wrong(partition: JsonMap | None, key: str, value: Any, text: str) -> ConnectError:
    return ConnectError(
        f"Source partition {_java(partition or {})} has an invalid value {value} for the "
        f"'{key}' key, {text}"
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _java(mapping: JsonMap) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in mapping.items()) + "}"
