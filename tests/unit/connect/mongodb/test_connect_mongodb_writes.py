"""MongoDB's sink turns records into writes; no server is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import bson
import pytest
from bson import Decimal128, Int64
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.mongodb.connectors import MongoSink
from barnabas.connect.connectors.mongodb.documents import from_connect
from barnabas.connect.connectors.mongodb.settings import SINK, for_topic, overridden
from barnabas.connect.connectors.mongodb.sink import writer as writer_module
from barnabas.connect.connectors.mongodb.sink.writer import MongoWriter, Topic
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.builder import (
    DATE_SCHEMA,
    INT64,
    STRING,
    array_of,
    decimal,
    struct_of,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError
from barnabas.schemas.data.schema import Struct

Settings = dict[str, str]
CDC = "change.data.capture.handler"
RELATIONAL = {CDC: "com.mongodb.kafka.connect.sink.cdc.debezium.rdbms.postgres.PostgresHandler"}
OWN = {CDC: "com.mongodb.kafka.connect.sink.cdc.mongodb.ChangeStreamHandler"}
MONGO = {CDC: "com.mongodb.kafka.connect.sink.cdc.debezium.mongodb.MongoDbHandler"}


def record(value: Any, key: Any = None) -> SinkRecord:
    return SinkRecord(
        topic="t",
        partition=0,
        key=json.dumps(key) if isinstance(key, dict) else key,
        value=json.dumps(value) if isinstance(value, dict) else value,
        timestamp_ms=5,
        offset=3,
        original_topic="t",
        original_partition=0,
        original_offset=3,
    )


def write(settings: Settings, value: Any, key: Any = None) -> Any:
    found = Topic(SINK.parse({"database": "d", **settings})).write(record(value, key))
    return None if found is None else found[3]


def strategy(name: str, **more: str) -> Settings:
    return {"document.id.strategy": f"x.{name}Strategy", **more}


@pytest.mark.parametrize(
    ("settings", "found_by"),
    [
        (strategy("FullKey"), {"a": 1, "b": 2}),
        (strategy("KafkaMetaData"), "t#0#3"),
        (strategy("ProvidedInValue"), 9),
        (
            strategy(
                "PartialKey",
                **{
                    "document.id.strategy.partial.key.projection.type": "AllowList",
                    "document.id.strategy.partial.key.projection.list": "a",
                },
            ),
            {"a": 1},
        ),
        (
            strategy(
                "PartialValue",
                **{
                    "document.id.strategy.partial.value.projection.type": "blocklist",
                    "document.id.strategy.partial.value.projection.list": "_id,x",
                },
            ),
            {"y": {"z": 1}},
        ),
    ],
)
def test_ids(settings: Settings, found_by: Any) -> None:
    settings = {**settings, "document.id.strategy.overwrite.existing": "true"}
    value = {"_id": 9, "x": 1, "y": {"z": 1}}
    made = {**value, "_id": found_by}
    assert write(settings, value, {"a": 1, "b": 2}) == ReplaceOne(
        {"_id": found_by}, made, upsert=True
    )


def test_an_id_that_is_there_stays_and_others_are_made() -> None:
    assert write({}, {"_id": 1}) == ReplaceOne({"_id": 1}, {"_id": 1}, upsert=True)
    with pytest.raises(DataError, match="no _id"):
        write(strategy("ProvidedInKey"), {"v": 1}, {"k": 1})


def test_ways_to_write() -> None:
    def by(name: str) -> Settings:
        return {"writemodel.strategy": f"x.{name}Strategy"}

    value = {"_id": {"a": 1}, "v": 2}
    assert write(by("InsertOneDefault"), value) == InsertOne(value)
    assert write(by("ReplaceOneBusinessKey"), value) == ReplaceOne({"a": 1}, {"v": 2}, upsert=True)
    assert write(by("DeleteOneDefault"), value) == DeleteOne({"_id": {"a": 1}})
    assert write(by("DeleteOneBusinessKey"), value) == DeleteOne({"a": 1})
    assert isinstance(write(by("UpdateOneTimestamps"), value), UpdateOne)
    with pytest.raises(ConfigError, match="there is no such class"):
        write(by("Other"), value)


def test_tombstones() -> None:
    assert write({}, None, {"a": 1}) is None
    deleting = strategy("FullKey", **{"delete.on.null.values": "true"})
    assert write(deleting, None, {"a": 1}) == DeleteOne({"_id": {"a": 1}})
    errors = MongoSink().validate({"database": "d", "delete.on.null.values": "true"})
    assert list(errors) == ["document.id.strategy"]


def processed(settings: Settings, value: Any) -> Any:
    return write(settings, value)._doc


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {
                "post.processor.chain": "x.BlockListValueProjector",
                "value.projection.type": "blocklist",
                "value.projection.list": "a.b,l.x",
            },
            {"_id": 1, "a": {"c": 2}, "l": [{"y": 2}], "n": None},
        ),
        (
            {
                "post.processor.chain": "x.AllowListValueProjector",
                "value.projection.type": "allowlist",
                "value.projection.list": "a.b,l.y",
            },
            {"_id": 1, "a": {"b": 1}, "l": [{"y": 2}]},
        ),
        (
            {
                "post.processor.chain": "x.NullFieldValueRemover, x.RenameByMapping",
                "field.renamer.mapping": '[{"oldName": "value.a.b", "newName": "z"}]',
            },
            {"_id": 1, "a": {"z": 1, "c": 2}, "l": [{"x": 1, "y": 2}]},
        ),
        (
            {
                "post.processor.chain": "x.RenameByRegex,x.NullFieldValueRemover",
                "field.renamer.regexp": '[{"regexp": "^value\\\\.a\\\\..*$", "pattern": "[bc]",'
                ' "replace": "q$0"}]'.replace("$0", ""),
            },
            {"_id": 1, "a": {"q": 2}, "l": [{"x": 1, "y": 2}]},
        ),
        (
            {"post.processor.chain": "x.KafkaMetaAdder,x.NullFieldValueRemover"},
            {
                "_id": 1,
                "a": {"b": 1, "c": 2},
                "l": [{"x": 1, "y": 2}],
                "topic-partition-offset": "t-0-3",
                "CreateTime": 5,
            },
        ),
    ],
)
def test_what_documents_pass(settings: Settings, expected: Any) -> None:
    value = {"_id": 1, "a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}], "n": None}
    assert processed(settings, value) == expected


def test_rows_of_debezium() -> None:
    key, row = {"id": 1}, {"id": 1, "v": 2}
    expected = ReplaceOne({"_id": key}, {"_id": key, **row}, upsert=True)
    for operation in "cru":
        assert write(RELATIONAL, {"op": operation, "after": row}, key) == expected
    assert write(RELATIONAL, {"op": "d", "before": row}, key) == DeleteOne({"_id": key})
    assert write(RELATIONAL, {"op": "d", "before": row}) == DeleteOne(row)
    assert write(RELATIONAL, {"op": "t"}, key) is None
    assert write(RELATIONAL, None, key) is None
    with pytest.raises(DataError, match="CDC operation field"):
        write(RELATIONAL, {"after": row}, key)


def test_changes_of_mongodb() -> None:
    key = {"documentKey": {"_id": 1}}
    put = {"operationType": "replace", "fullDocument": {"_id": 1, "v": 2}, **key}
    assert write(OWN, put) == ReplaceOne({"_id": 1}, {"_id": 1, "v": 2}, upsert=True)
    described = {"updatedFields": {"v": 2}, "removedFields": ["w"]}
    update = {"operationType": "update", "updateDescription": described, **key}
    assert write(OWN, update) == UpdateOne({"_id": 1}, {"$set": {"v": 2}, "$unset": {"w": ""}})
    assert write(OWN, {"operationType": "delete", **key}) == DeleteOne({"_id": 1})
    with pytest.raises(DataError, match="Unsupported operationType"):
        write(OWN, {"operationType": "odd", **key})
    for operation in ("drop", "dropDatabase", "rename", "invalidate"):
        assert write(OWN, {"operationType": operation, "ns": {"db": "d", "coll": "c"}}) is None
    cut = {"updatedFields": {}, "truncatedArrays": [{"field": "many", "newSize": 2}]}
    with pytest.raises(DataError, match="truncatedArrays"):
        write(OWN, {"operationType": "update", "updateDescription": cut, **key})


def test_changes_of_mongodb_by_debezium() -> None:
    after = json.dumps({"_id": 1, "v": 2})
    put = write(MONGO, {"op": "c", "after": after}, {"id": "1"})
    assert put == ReplaceOne({"_id": 1}, {"_id": 1, "v": 2}, upsert=True)
    described = {"updatedFields": '{"v": 3}', "removedFields": ["w"]}
    update = write(MONGO, {"op": "u", "updateDescription": described}, {"id": "1"})
    assert update == UpdateOne({"_id": 1}, {"$set": {"v": 3}, "$unset": {"w": ""}})
    assert write(MONGO, {"op": "d"}, {"id": '{"$oid": "5f0f0f0f0f0f0f0f0f0f0f0f"}'}) is not None


def test_namespaces_by_fields_and_topics() -> None:
    settings = {
        "database": "d",
        "namespace.mapper": "x.FieldPathNamespaceMapper",
        "namespace.mapper.value.collection.field": "to.name",
        "topic.override.a.b.collection": "special",
    }
    made = Topic(SINK.parse(settings)).write(record({"to": {"name": "c1"}}))
    assert made is not None
    assert made[1:3] == ("d", "c1")
    plain = Topic(SINK.parse(settings)).write(record({"v": 1}))
    assert plain is not None
    assert plain[1:3] == ("d", "t")
    assert overridden(settings) == ["a.b"]
    assert for_topic(settings, "a.b")["collection"] == "special"


def test_connect_s_data_as_documents() -> None:
    schema = struct_of(
        {"l": INT64, "d": decimal(2), "day": DATE_SCHEMA, "many": array_of(STRING)}, name="r"
    )
    value = {"l": 1, "d": Decimal("1.50"), "day": date(2024, 5, 1), "many": ["x"]}
    found = from_connect(Struct.of(schema, value), schema)
    assert found == {
        "l": 1,
        "d": Decimal128("1.50"),
        "day": datetime(2024, 5, 1, tzinfo=UTC),
        "many": ["x"],
    }
    assert type(found["l"]) is Int64
    for bad in (5, "no", b"\xff\xfe", "[1]"):
        with pytest.raises(DataError):
            from_connect(bad)


class Encoding:
    """A client that encodes documents as the driver does, and keeps them."""

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def __getitem__(self, _: str) -> Encoding:
        return self

    def bulk_write(self, models: list[InsertOne[Any]], *, ordered: bool) -> None:
        assert ordered
        encoded = [bson.encode(one._doc) for one in models]
        self.written += [bson.decode(one) for one in encoded]

    def close(self) -> None: ...


@pytest.mark.parametrize("bad", [{"a\0b": 1}, {"text": "\ud800"}, {"number": Decimal("1" * 40)}])
def test_what_cannot_be_encoded_is_one_records_fault(
    bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Encoding()
    monkeypatch.setattr(writer_module, "make_client", lambda _: client)
    settings = {
        "database": "shop",
        "topics": "t",
        "writemodel.strategy": "com.mongodb.kafka.connect.sink.writemodel.strategy."
        "InsertOneDefaultStrategy",
    }
    values = [{"_id": 1}, {"_id": 2, **bad}, {"_id": 3}]
    records = [replace(record(None), value=value) for value in values]
    where = SinkRange("t", 0, 0, 3)
    with pytest.raises(ConnectError, match="cannot write a record of t"):
        MongoWriter(settings).write(iter(records), where)
    client.written.clear()
    reported: list[SinkRecord] = []
    tolerant = MongoWriter({**settings, "errors.tolerance": "all"})
    tolerant.report = lambda one, _: reported.append(one)
    tolerant.write(iter(records), where)
    assert [one["_id"] for one in client.written] == [1, 3]
    assert reported == [records[1]]


def test_settings_of_a_topic_hold_for_the_records_that_a_transform_gave_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Named(Encoding):
        """Keeps the names of the collections that are written to."""

        def __getitem__(self, name: str) -> Encoding:
            names.append(name)
            return self

    names: list[str] = []
    client = Named()
    monkeypatch.setattr(writer_module, "make_client", lambda _: client)
    settings = {
        "database": "shop",
        "topics": "t",
        "topic.override.renamed.collection": "special",
        "writemodel.strategy": "com.mongodb.kafka.connect.sink.writemodel.strategy."
        "InsertOneDefaultStrategy",
    }
    topics = ("t", "renamed", "renamed", "t")
    records = [replace(record({"_id": number}), topic=topic) for number, topic in enumerate(topics)]
    MongoWriter(settings).write(iter(records), SinkRange("t", 0, 0, 4))
    assert names == ["shop", "t", "shop", "special", "shop", "t"]
    assert [one["_id"] for one in client.written] == [0, 1, 2, 3]
