"""Reading topics from beginning to end, and the records of the result topics.

Only committed records are read, as any consumer would. Statements of SQL write results, and the
Python pipeline.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from fastavro import parse_schema, schemaless_reader

from barnabas.demo.access import client_config
from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.topics import (
    ACTIVITY_PER_MINUTE,
    AVAILABILITY_WINDOW_MS,
    ENERGY_PER_MINUTE,
    MINUTE_MS,
    STATION_AVAILABILITY,
)
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import PREFIX_BYTES, schema_id_of

_READ_SECONDS = 1.0
_BATCH_RECORDS_MAX = 500
WINDOWED: Final = {
    STATION_AVAILABILITY: ("station_id", AVAILABILITY_WINDOW_MS),
    ENERGY_PER_MINUTE: ("city", MINUTE_MS),
    ACTIVITY_PER_MINUTE: ("kind", MINUTE_MS),
}
"""Tables of SQL: the column in the key, and the windows' size."""

_WINDOW_BYTES: Final = 8
_UNREADABLE: Final = (EOFError, IndexError, MemoryError, OverflowError, ValueError)
"""The errors that fastavro raises for bytes that do not match the schema."""


def records_of(
    topics: Sequence[str], bootstrap: str, group: str, still_seconds_max: int
) -> Iterator[Message]:
    """Yield every record up to each partition's end.

    Raises KafkaException where the cluster does not answer, or nothing comes for so long.
    """
    consumer = Consumer(
        {
            **client_config(bootstrap),
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    unread = {
        (topic, partition) for topic in topics for partition in range(TOPIC_PARTITIONS[topic])
    }
    try:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(unread)])
        still_reads = 0
        while unread:
            messages = consumer.consume(_BATCH_RECORDS_MAX, _READ_SECONDS)
            still_reads = 0 if messages else still_reads + 1
            if still_reads > still_seconds_max:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no end of {unread}"))
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((message.topic() or "", message.partition() or 0))
                elif not error.retriable():
                    raise KafkaException(error)
    finally:
        consumer.close()


class AvroValues:
    """Reads Avro in a registry's framing, each value with the schema that it was written with.

    For one thread.
    """

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._parsed: dict[int, Any] = {}

    def read(self, value: bytes | None) -> dict[str, Any] | None:
        """Return a record; None for no value, or one that cannot be read.

        Raises RegistryError.
        """
        schema_id = None if value is None else schema_id_of(value)
        if value is None or schema_id is None:
            return None
        if schema_id not in self._parsed:
            text = self._registry.resolved_avro(schema_id)
            if text is None:
                return None
            self._parsed[schema_id] = parse_schema(json.loads(text))
        try:
            source = io.BytesIO(value[PREFIX_BYTES:])
            read = schemaless_reader(source, self._parsed[schema_id], None)
        except _UNREADABLE:
            return None
        return cast(dict[str, Any], read) if isinstance(read, dict) else None


def read_row(topic: str, key: bytes, value: bytes, values: AvroValues) -> dict[str, Any] | None:
    """Return a row of a result topic, all columns in lower case; None if it cannot be read.

    A key of a windowed table is the text of its column and the window's start in eight bytes.
    Raises RegistryError.
    """
    windowed = WINDOWED.get(topic)
    if windowed is None:
        try:
            row = json.loads(value)
        except ValueError:
            return None
        return row if isinstance(row, dict) else None
    read = values.read(value)
    if read is None or len(key) <= _WINDOW_BYTES:
        return None
    column, size_ms = windowed
    start_ms = int.from_bytes(key[-_WINDOW_BYTES:], "big")
    return {
        column: key[:-_WINDOW_BYTES].decode(errors="replace"),
        "window_start_ms": start_ms,
        "window_end_ms": start_ms + size_ms,
        **{name.lower(): value for name, value in read.items()},
    }
