"""The state that the offset topic's records describe: the offset of each source partition.

The key is JSON, ["connector", {source partition}], the value the source offset's JSON object; a
tombstone deletes. Keys that say the same in another order of fields are one partition here (Kafka's
worker looks offsets up by the key's bytes): the order in which they were written last is kept, so
that what we write replaces what is there.

Source: org.apache.kafka.connect.storage.KafkaOffsetBackingStore and OffsetUtils (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.connect.record import JsonMap, offset_key, offset_value, partition_text
from barnabas.connect.worker.distributed.records import RecordError, parse
from barnabas.schemas.data.errors import DataError

_log = logging.getLogger(__name__)
Offsets = list[tuple[JsonMap, JsonMap]]


def check_format(fields: JsonMap) -> None:
    """Check that values are primitive. Raises DataError with Kafka's words."""
    for name, value in fields.items():
        if not isinstance(name, str):
            raise DataError("Offsets may only use String keys")
        if value is not None and not isinstance(value, bool | int | float | str | bytes):
            raise DataError(
                "Offsets may only contain primitive types as values, but field "
                f"{name} contains {'ARRAY' if isinstance(value, list) else 'MAP'}"
            )


class OffsetLog:
    """Takes the records in their order."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[str, tuple[bytes, JsonMap, JsonMap]]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record."""
        try:
            connector, partition = _parse_key(key)
            offset = parse(value)
            if offset is not None and not isinstance(offset, dict):
                raise RecordError("the offset is not an object")
        except RecordError as error:
            _log.warning("skipping a record of the offset topic: %s", error)
            return
        held = self._offsets.setdefault(connector, {})
        same = partition_text(partition)
        if offset is None:
            held.pop(same, None)
        else:
            held[same] = (key or b"", partition, offset)

    def connectors(self) -> Iterable[str]:
        """Return the connectors that have offsets."""
        return [name for name, held in self._offsets.items() if held]

    def offset(self, connector: str, partition: JsonMap) -> JsonMap | None:
        """Return the offset of a source partition."""
        held = self._offsets.get(connector, {}).get(partition_text(partition))
        return None if held is None else held[2]

    def all(self, connector: str) -> Offsets:
        """Return all (partition, offset) of a connector."""
        held = self._offsets.get(connector, {}).values()
        return [(partition, offset) for _, partition, offset in held]

    def record(
        self, connector: str, partition: JsonMap, offset: JsonMap | None
    ) -> tuple[bytes, bytes | None]:
        """Return what to write, under the key that is there. Raises DataError."""
        check_format(partition)
        if offset is not None:
            check_format(offset)
        key = offset_key(connector, partition)
        held = self._offsets.get(connector, {}).get(partition_text(partition))
        return key if held is None else held[0], offset_value(offset)


def _parse_key(key: bytes | None) -> tuple[str, Mapping[str, Any]]:
    parts = parse(key)
    if not isinstance(parts, list) or len(parts) != 2:
        raise RecordError("the key is not an array of connector and partition")
    connector, partition = parts
    if not isinstance(connector, str) or not isinstance(partition, dict):
        raise RecordError("the key is not an array of connector and partition")
    return connector, partition
