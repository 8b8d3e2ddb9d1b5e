"""Reads Avro values with a schema registry's framing, in a stream or a table.

Spark's `from_avro` reads with one writer's schema. If a topic's schema has evolved, its records
were written with several. So each record uses the expression for the id before its value; all of
them resolve to the reader's schema, which stays the same as long as a query keeps its state.

A query's plan is fixed when it starts. A record with an id that was registered later stops the
query with an error that names the id (`new_schema_id`). `AvroTopic.learn` adds the schema, and the
query, restarted from its checkpoint, reads the same micro-batch again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import ID_MAGIC, PREFIX_BYTES, prefix_of

_NEW_SCHEMA: Final = "was written with a schema that this query does not know yet: id "
_INT_MAX: Final = 2**31 - 1


class SchemaAbsentError(Exception):
    """A subject has no schema yet, so no data can have been written with it."""


class AvroTopic:
    """The values of one topic. Its methods may be called from one thread at a time."""

    def __init__(self, registry: RegistryClient, topic: str, reader_schema: str) -> None:
        self.topic = topic
        self._registry = registry
        self._reader_schema = reader_schema
        self._writers: dict[int, str | None] = {}

    def refresh(self) -> None:
        """Ask for the schemas of the topic's subject, `<topic>-value`.

        Raises RegistryError, and SchemaAbsentError if it has none.
        """
        self._writers.update(self._registry.resolved_avro_of(f"{self.topic}-value"))
        if not self._writers:
            raise SchemaAbsentError(f"the registry has no schema of {self.topic}-value")

    def learn(self, schema_id: int) -> bool:
        """Take up a schema of any subject; False if the registry has no such Avro schema.

        Its values are unreadable then. Raises RegistryError.
        """
        self._writers[schema_id] = self._registry.resolved_avro(schema_id)
        return self._writers[schema_id] is not None

    def decode(self, value: Column) -> Column:
        """Return what a value says, as a struct; null, or a struct of nulls, if unreadable."""
        return decoded(value, self._writers, self._reader_schema)


def decoded(value: Column, writers: Mapping[int, str | None], reader_schema: str) -> Column:
    """Return a framed value, read with `reader_schema`.

    `writers` are the known schemas by id; None stands for one that cannot be read. An id that is
    not there fails the query.
    """
    framed = f.substring(value, 1, PREFIX_BYTES)
    payload = f.substring(value, PREFIX_BYTES + 1, _INT_MAX)
    options = {"mode": "PERMISSIVE", "avroSchema": reader_schema}
    unframed = (f.length(value) < PREFIX_BYTES) | (
        f.substring(value, 1, 1) != f.lit(bytearray([ID_MAGIC]))
    )
    picked = f.when(value.isNull() | unframed, f.lit(None))
    for schema_id, writer_schema in writers.items():
        read = f.lit(None) if writer_schema is None else from_avro(payload, writer_schema, options)
        picked = picked.when(framed == f.lit(bytearray(prefix_of(schema_id))), read)
    unknown = f.conv(f.hex(f.substring(value, 2, PREFIX_BYTES - 1)), 16, 10)
    return picked.otherwise(f.raise_error(f.concat(f.lit(f"a value {_NEW_SCHEMA}"), unknown)))


def new_schema_id(error: BaseException | None) -> int | None:
    """Return the id for want of which a query has failed; None if that is not why."""
    match = re.search(re.escape(_NEW_SCHEMA) + r"(\d+)", str(error))
    return int(match[1]) if match else None
