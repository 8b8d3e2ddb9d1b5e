"""Changes of a change stream as records.

Source: MongoDB's StartedMongoSourceTask and its tests.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import bson
from bson.json_util import dumps

from barnabas.connect.connectors.mongodb.documents import (
    as_document,
    infer,
    json_formatter,
    to_connect,
)
from barnabas.connect.connectors.mongodb.settings import TopicNames, is_tolerant
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_reading import AvroReading
from barnabas.schemas.converters.avro_schemas import AvroOptions
from barnabas.schemas.data.builder import (
    BYTES,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    array_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.registry_client import StoredSchema

_log = logging.getLogger(__name__)
KEY: Final = struct_of({"_id": STRING}, name="keySchema")
_NS: Final = {"db": STRING, "coll": OPTIONAL_STRING}
CHANGE: Final = struct_of(
    {
        "_id": STRING,
        "operationType": OPTIONAL_STRING,
        "fullDocument": OPTIONAL_STRING,
        "ns": optional(struct_of(_NS, name="ns")),
        "to": optional(struct_of(_NS, name="to")),
        "documentKey": OPTIONAL_STRING,
        "updateDescription": optional(
            struct_of(
                {
                    "updatedFields": OPTIONAL_STRING,
                    "removedFields": optional(array_of(STRING)),
                },
                name="updateDescription",
            )
        ),
        "clusterTime": OPTIONAL_STRING,
        "txnNumber": OPTIONAL_INT64,
        "lsid": optional(struct_of({"id": STRING, "uid": STRING}, name="lsid")),
    },
    name="ChangeStream",
)
"""The schema of values with `output.format.value=schema` and no schema of the user's own."""


class Events:
    """Makes records of changes. `namespace` is the default for changes that name none."""

    def __init__(
        self, values: Mapping[str, Any], partition: JsonMap, namespace: tuple[str, str]
    ) -> None:
        self._partition = partition
        self._namespace = namespace
        self._topics = TopicNames(values)
        self._json = json_formatter(values["output.json.formatter"])
        self._formats = tuple(str(values[f"output.format.{p}"]).lower() for p in ("key", "value"))
        self._key_schema = _schema(values["output.schema.key"], "output.schema.key") or KEY
        self._value_schema = _schema(values["output.schema.value"], "output.schema.value") or CHANGE
        self._infers = bool(values["output.schema.infer.value"])
        self._publishes_documents = bool(values["publish.full.document.only"])
        self._has_tombstones = bool(values["publish.full.document.only.tombstone.on.delete"])
        self._has_document_keys = bool(values["change.stream.document.key.as.key"])
        self._is_tolerant = is_tolerant(values)
        self._logs = bool(values["mongo.errors.log.enable"] or values["errors.log.enable"])
        topic = "errors.deadletterqueue.topic.name"
        self._dead_letters = str(values[f"mongo.{topic}"] or values[topic] or "")

    def records(self, changes: list[bytes], offsets: list[JsonMap]) -> Iterator[SourceRecord]:
        """The records of changes in BSON, with the offset behind each."""
        for raw, offset in zip(changes, offsets, strict=True):
            try:
                change = as_document(raw)
                record = self._record(change, offset)
            except (DataError, bson.errors.BSONError) as error:
                if not self._is_tolerant:
                    raise ConnectError(f"Exception creating Source record: {error}") from error
                if self._logs:
                    _log.error("skipping a change: %s", error)
                record = self._dead_letter(raw, offset)
            if record is not None:
                yield record

    def _record(self, change: dict[str, Any], offset: JsonMap) -> SourceRecord | None:
        key: Any = {"_id": change["_id"]}
        if self._formats[0] == "schema":
            key = change
        elif self._has_document_keys and isinstance(change.get("documentKey"), dict):
            key = change["documentKey"]
        value: Any = change
        if self._publishes_documents:
            value = change.get("fullDocument")
            if not isinstance(value, dict):
                is_delete = change.get("operationType") == "delete"
                if not (self._has_tombstones and is_delete):
                    return None
                value = None
        ns = change.get("ns") or {}
        topic = self._topics.topic(
            ns.get("db") or self._namespace[0], ns.get("coll") or self._namespace[1]
        )
        if not topic:
            return None
        key_schema, made_key = self._part(key, self._formats[0], self._key_schema)
        value_schema: Schema | None = None
        made_value = None
        if value is not None:
            wanted = infer(value) if self._infers else self._value_schema
            value_schema, made_value = self._part(value, self._formats[1], wanted)
        return SourceRecord(
            source_partition=self._partition,
            source_offset=offset,
            topic=topic,
            key_schema=key_schema,
            key=made_key,
            value_schema=value_schema,
            value=made_value,
            timestamp_ms=time.time_ns() // 1_000_000,
        )

    def _part(self, document: Any, form: str, schema: Schema) -> tuple[Schema, Any]:
        if form == "json":
            return STRING, self._json(document)
        if form == "bson":
            return BYTES, bson.encode(document)
        return schema, to_connect(document, schema, self._json)

    def _dead_letter(self, raw: bytes, offset: JsonMap) -> SourceRecord | None:
        if not self._dead_letters:
            return None
        try:
            text = dumps(as_document(raw))
        except bson.errors.BSONError:
            text = raw.hex()
        return SourceRecord(
            source_partition=self._partition,
            source_offset=offset,
            topic=self._dead_letters,
            value_schema=STRING,
            value=text,
        )


def _schema(text: Any, name: str) -> Schema | None:
    """The Connect schema of an Avro schema."""
    if not text:
        return None
    try:
        names = AvroNames(StoredSchema(-1, "AVRO", str(text), ()))
        return AvroReading(names, AvroOptions()).of(names.root)[0]
    except ConnectError as error:
        raise ConfigError(f"Invalid value for configuration {name}: {error}") from error
