"""Checks of the offsets that users give for MirrorMaker's connectors, with Kafka's texts.

Source: MirrorUtils (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConnectError

_INT_MAX = 2**31 - 1


def check(
    offsets: Sequence[tuple[JsonMap, JsonMap | None]],
    texts: Sequence[str],
    *,
    has_partition: bool = True,
    is_zero: bool = False,
) -> None:
    """Check offsets that a user wants to store, by source partition; None is to be forgotten.

    A source partition must have a text under each key of `texts`, and the number of a partition
    where it has one. An offset must be a number; of checkpoints and heartbeats 0. Raises
    ConnectError.
    """
    for partition, offset in offsets:
        if offset is None:
            continue
        for key in texts:
            _check_text(partition, key)
        if has_partition:
            _check_partition(partition)
        _check_offset(partition, offset, is_zero=is_zero)


def _check_text(partition: JsonMap | None, key: str) -> None:
    value = _value(partition, key)
    if not isinstance(value, str):
        raise _wrong(partition, key, value, "which must be a string")


def _check_partition(partition: JsonMap | None) -> None:
    value = _value(partition, "partition")
    if not _is_int(value) or value > _INT_MAX:
        raise _wrong(partition, "partition", value, "which must be an integer")
    if value < 0:
        raise _wrong(partition, "partition", value, "which cannot be negative")


def _check_offset(partition: JsonMap, offset: JsonMap, *, is_zero: bool) -> None:
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
