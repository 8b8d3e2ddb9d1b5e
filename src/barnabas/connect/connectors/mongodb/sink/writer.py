"""Writes records to collections, in bulks. At least once: with ids that repeat, once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, DocumentTooLarge, InvalidOperation

from barnabas.connect.connectors.base import SinkRange, SinkWriter
from barnabas.connect.connectors.mongodb.client import make_client, told
from barnabas.connect.connectors.mongodb.documents import from_connect
from barnabas.connect.connectors.mongodb.settings import (
    SINK,
    for_topic,
    is_tolerant,
    no_class,
    short,
)
from barnabas.connect.connectors.mongodb.sink.cdc import change_handler
from barnabas.connect.connectors.mongodb.sink.models import (
    Model,
    chain,
    delete_strategy,
    write_strategy,
)
from barnabas.connect.connectors.mongodb.sink.parts import SinkDocument, at_path
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConnectError, DataError

_log = logging.getLogger(__name__)
_BULK_MAX = 10_000
_TOPICS_MAX = 1000
_NOT_BSON = (DocumentTooLarge, InvalidOperation, OverflowError, BSONError, UnicodeError)
"""Raised of a document before it is sent; nothing says which one it is."""
Write = tuple[SinkRecord, str, str, Model]
"""Of a record: database, collection and what is done."""


class Topic:
    """The handling of one topic's records."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.is_tolerant = is_tolerant(values)
        self.logs = bool(values["mongo.errors.log.enable"] or values["errors.log.enable"])
        self._chain = chain(values)
        self._write = write_strategy(values)
        self._delete = delete_strategy(values)
        self._change = change_handler(values)
        mapper = short(values["namespace.mapper"])
        if mapper not in ("DefaultNamespaceMapper", "FieldPathNamespaceMapper"):
            raise no_class("namespace.mapper", mapper)
        self._by_fields = mapper == "FieldPathNamespaceMapper"

    def write(self, record: SinkRecord) -> Write | None:
        """Return the write that a record causes; None for none. Raises DataError."""
        is_change = self._change is not None
        key = self._key(record)
        value = from_connect(record.value, record.value_schema)
        one = SinkDocument(record, key, value)
        database, collection = self._namespace(one)
        if is_change:
            assert self._change is not None
            model = self._change(one)
        elif value is None:
            model = None if self._delete is None else self._delete(one)
        else:
            for process in self._chain:
                process(one)
            model = self._write(one)
        return None if model is None else (record, database, collection, model)

    def _key(self, record: SinkRecord) -> Any:
        """Keys that are no documents matter only to those who ask for them."""
        try:
            return from_connect(record.key, record.key_schema)
        except DataError:
            strategy = short(self.values["document.id.strategy"])
            if "Key" in strategy or self._change is not None:
                raise
            return None

    def _namespace(self, one: SinkDocument) -> tuple[str, str]:
        database = str(self.values["database"])
        collection = str(self.values["collection"] or one.record.topic)
        if not self._by_fields:
            return database, collection
        return (
            self._field(one, "database") or database,
            self._field(one, "collection") or collection,
        )

    def _field(self, one: SinkDocument, part: str) -> str | None:
        for side, document in (("key", one.key), ("value", one.value)):
            path = self.values[f"namespace.mapper.{side}.{part}.field"]
            if not path:
                continue
            value = at_path(document, path)
            if isinstance(value, str) and value:
                return value
            if self.values["namespace.mapper.error.if.invalid"]:
                raise DataError(f"Missing or invalid {side} field `{path}` for the {part}")
        return None


class MongoWriter(SinkWriter):
    """Writes for one task."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._topics: dict[str, Topic] = {}
        self._batches = 0
        self._topic_of("")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_topics": {}}

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Write the records of a range. Raises RetriableError, ConnectError."""
        topic = self._topic_of(where.topic)
        client = make_client(topic.values)
        try:
            bulk: list[Write] = []
            for record in records:
                own = self._topic_of(record.topic)  # a transform may have changed it
                if own is not topic:
                    self._send(client, topic, bulk)
                    bulk, topic = [], own
                limit = topic.values["max.batch.size"] or _BULK_MAX
                try:
                    write = topic.write(record)
                except (DataError, BSONError) as error:
                    self._refused(topic, record, error)
                    continue
                if write is None:
                    continue
                if bulk and (len(bulk) >= limit or bulk[-1][1:3] != write[1:3]):
                    self._send(client, topic, bulk)
                    bulk = []
                bulk.append(write)
            self._send(client, topic, bulk)
        finally:
            client.close()

    def _send(self, client: MongoClient[Any], topic: Topic, bulk: list[Write]) -> None:
        is_ordered = bool(topic.values["bulk.write.ordered"])
        while bulk:
            _, database, collection, _ = bulk[0]
            models = [write[3] for write in bulk]
            with told(f"cannot write to {database}.{collection}"):
                try:
                    client[database][collection].bulk_write(models, ordered=is_ordered)
                except BulkWriteError as error:
                    bulk = self._after(topic, bulk, error, is_ordered=is_ordered)
                    continue
                except _NOT_BSON as error:
                    if len(bulk) == 1:
                        self._refused(topic, bulk[0][0], DataError(str(error)))
                    else:  # which one it is, is found by halves
                        half = len(bulk) // 2
                        self._send(client, topic, bulk[:half])
                        self._send(client, topic, bulk[half:])
            break
        self._rest(topic)

    def _after(
        self, topic: Topic, bulk: list[Write], error: BulkWriteError, *, is_ordered: bool
    ) -> list[Write]:
        """Report what was refused; returns what was not tried. Raises ConnectError."""
        details = error.details or {}
        refused = details.get("writeErrors") or []
        if not refused:
            raise error
        for one in refused:
            cause = DataError(f"{one.get('errmsg', '')} (code {one.get('code')})")
            self._refused(topic, bulk[one["index"]][0], cause)
        return bulk[refused[-1]["index"] + 1 :] if is_ordered else []

    def _refused(self, topic: Topic, record: SinkRecord, error: Exception) -> None:
        """One record cannot be written. Raises ConnectError where that is not tolerated."""
        if not topic.is_tolerant:
            raise ConnectError(f"cannot write a record of {record.topic}: {error}") from error
        if topic.logs:
            _log.error("skipping a record of %s: %s", record.topic, error)
        is_everywhere = str(self._settings.get("errors.tolerance", "none")).lower() == "all"
        if self.report is not None and is_everywhere:
            self.report(record, error)

    def _rest(self, topic: Topic) -> None:
        every, rest_ms = (
            topic.values["rate.limiting.every.n"],
            topic.values["rate.limiting.timeout"],
        )
        self._batches += 1
        if every > 0 and rest_ms > 0 and self._batches % every == 0:
            time.sleep(rest_ms / 1000)

    def _topic_of(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            if len(self._topics) >= _TOPICS_MAX:  # a transform makes ever new ones
                self._topics.clear()
            topic = self._topics[name] = Topic(SINK.parse(for_topic(self._settings, name)))
        return topic
