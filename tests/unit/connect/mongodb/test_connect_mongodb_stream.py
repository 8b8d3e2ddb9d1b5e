"""The source on cursors made here: what the server of the other tests does not do."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import bson
import pytest
from bson import Binary, Decimal128, Int64, ObjectId, Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo.errors import AutoReconnect, OperationFailure

from barnabas.connect.connectors.mongodb import reader as module
from barnabas.connect.connectors.mongodb.connectors import MongoSource
from barnabas.connect.connectors.mongodb.documents import json_formatter
from barnabas.connect.connectors.mongodb.reader import (
    ChangeReader,
    operation_time,
    partition_name,
)
from barnabas.connect.connectors.mongodb.settings import SOURCE, TopicNames
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from barnabas.schemas.data.schema import Struct

LOST = OperationFailure("the oplog is shorter", 286)


def token(number: int) -> dict[str, str]:
    return {"_data": f"{number:04x}"}


def change(number: int, operation: str = "insert", **more: Any) -> dict[str, Any]:
    return {
        "_id": token(number),
        "operationType": operation,
        "ns": {"db": "shop", "coll": "orders"},
        "documentKey": {"_id": number},
        **more,
    }


class FakeStream:
    """A change stream; what is said is a change, nothing for now, or an error."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said
        self.resume_token: Any = token(0)
        self.alive = True

    def try_next(self) -> Any:
        if not self.said:
            return None
        found = self.said.pop(0)
        if isinstance(found, Exception):
            raise found
        if found is None:
            return None
        self.resume_token = found["_id"]
        self.alive = found["operationType"] != "invalidate"
        return RawBSONDocument(bson.encode(found))

    def close(self) -> None:
        self.alive = False


class FakeMongo:
    """Client, database and collection in one; `opened` has what streams were asked for.

    `watched` has of what: a collection's two names, a database's name, nothing for all.
    """

    def __init__(self) -> None:
        self.streams: list[FakeStream | Exception] = []
        self.opened: list[tuple[Any, dict[str, Any]]] = []
        self.watched: list[tuple[str, ...]] = []

    def get_database(self, name: str, codec_options: Any = None) -> FakePart:
        return FakePart(self, name)

    def watch(self, pipeline: Any, **options: Any) -> Any:
        return self.open((), pipeline, options)

    def open(self, names: tuple[str, ...], pipeline: Any, options: dict[str, Any]) -> Any:
        self.watched.append(names)
        self.opened.append((pipeline, options))
        found = self.streams.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        pass


class FakePart:
    """A database or a collection."""

    def __init__(self, mongo: FakeMongo, *names: str) -> None:
        self._mongo, self._names = mongo, names

    def get_collection(self, name: str, codec_options: Any = None) -> FakePart:
        return FakePart(self._mongo, *self._names, name)

    def watch(self, pipeline: Any, **options: Any) -> Any:
        return self._mongo.open(self._names, pipeline, options)


class Stored:
    """Stored offsets."""

    def __init__(self, offset: JsonMap | None) -> None:
        self.found = offset

    def offset(self, partition: JsonMap) -> JsonMap | None:
        return self.found

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        return []


@pytest.fixture
def mongo(monkeypatch: pytest.MonkeyPatch) -> FakeMongo:
    made = FakeMongo()
    monkeypatch.setattr(module, "make_client", lambda values: made)
    return made


def values(**settings: str) -> dict[str, Any]:
    named = {name.replace("__", "."): text for name, text in settings.items()}
    return SOURCE.parse({"database": "shop", "collection": "orders", **named})


def reader(stored: JsonMap | None = None, /, **settings: str) -> ChangeReader:
    return ChangeReader(values(**settings), Stored(stored))


def batch(one: ChangeReader) -> tuple[list[SourceRecord], Sequence[tuple[JsonMap, JsonMap]]]:
    """Do a micro-batch, as the engine does."""
    start = one.initialOffset()
    end = one.latestOffset()
    if end == start:
        return [], []
    copy = pickle.loads(pickle.dumps(one))
    splits = pickle.loads(pickle.dumps(one.partitions(start, end)))
    records = [record for split in splits for record in copy.read(split)]
    offsets = one.offsets(end)
    one.commit(end)
    return records, offsets


def test_an_update_is_told_as_the_server_tells_it(mongo: FakeMongo) -> None:
    update = {"updatedFields": {"v": 2}, "removedFields": ["w"]}
    mongo.streams = [
        FakeStream([change(1, "update", updateDescription=update, fullDocument={"v": 2})])
    ]
    one = reader(change__stream__full__document="updateLookup", pipeline='[{"$match": {}}]')
    (record,), offsets = batch(one)
    pipeline, options = mongo.opened[0]
    assert mongo.watched == [("shop", "orders")]
    assert pipeline == [{"$match": {}}]
    assert options["full_document"] == "updateLookup"
    found = json.loads(record.value)
    assert found["updateDescription"] == update
    assert (record.topic, record.key) == ("shop.orders", '{"_id": 1}')
    assert offsets == [(record.source_partition, record.source_offset)]
    assert json.loads(record.source_offset["_id"]) == token(1)


def test_the_first_position_is_stored_before_any_change(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([])]
    one = reader()
    records, ((_, offset),) = batch(one)
    assert records == []
    assert json.loads(offset["_id"]) == token(0)
    assert batch(one) == ([], [])


def test_a_restart_goes_on_behind_the_stored_token(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([])]
    batch(reader({"_id": json.dumps(token(7))}, startup__mode="copy_existing"))
    assert mongo.opened[0][1]["start_after"] == token(7)


def test_a_moment_to_begin_at(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([])]
    at = "startup__mode__timestamp__start__at__operation__time"
    batch(reader(startup__mode="timestamp", **{at: "1700000000"}))
    assert mongo.opened[0][1]["start_at_operation_time"] == Timestamp(1700000000, 0)
    assert operation_time("2023-11-14T22:13:20Z") == Timestamp(1700000000, 0)
    assert operation_time('{"$timestamp": {"t": 5, "i": 6}}') == Timestamp(5, 6)
    with pytest.raises(ConfigError):
        operation_time("soon")


def test_heartbeats_keep_the_position_fresh(
    mongo: FakeMongo, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = FakeStream([])
    mongo.streams = [stream]
    one = reader({"_id": json.dumps(token(1))}, heartbeat__interval__ms="1000")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 2)
    stream.resume_token = token(5)
    (record,), _ = batch(one)
    assert (record.topic, record.value) == ("__mongodb_heartbeats", None)
    assert json.loads(record.key) == token(5)
    assert record.source_offset["HEARTBEAT"] == "true"


def test_lost_changes_end_the_task_unless_they_are_tolerated(mongo: FakeMongo) -> None:
    mongo.streams = [LOST]
    one = reader({"_id": json.dumps(token(1))})
    with pytest.raises(ConnectError, match="ResumeToken not found") as found:
        one.latestOffset()
    assert not isinstance(found.value, RetriableError)

    mongo.streams = [LOST, FakeStream([change(9)])]
    one = reader({"_id": json.dumps(token(1))}, errors__tolerance="all")
    (record,), _ = batch(one)
    assert "start_after" not in mongo.opened[-1][1]
    assert record.key == '{"_id": 9}'


def test_an_error_that_passes_is_told_as_one(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([AutoReconnect("gone")]), FakeStream([change(1)])]
    one = reader()
    with pytest.raises(RetriableError, match="gone"):
        one.latestOffset()
    assert len(batch(one)[0]) == 1


def test_changes_before_an_error_are_kept(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([change(1), AutoReconnect("gone")]), FakeStream([change(2)])]
    one = reader()
    assert [record.key for record in batch(one)[0]] == ['{"_id": 1}']
    assert [record.key for record in batch(one)[0]] == ['{"_id": 2}']
    assert mongo.opened[1][1]["start_after"] == token(1)


def test_changes_that_drip_do_not_wait_until_there_are_many(
    mongo: FakeMongo, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0

    class Dripping(FakeStream):
        def try_next(self) -> Any:
            nonlocal now_s
            now_s += 0.03
            return super().try_next()

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now_s))
    mongo.streams = [Dripping([change(number) for number in range(1, 100)])]
    one = reader(poll__await__time__ms="100")
    assert len(batch(one)[0]) == 4
    assert len(batch(one)[0]) == 4


def test_a_copy_that_breaks_begins_again(mongo: FakeMongo, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = iter([True, False])

    def existing(one: ChangeReader, client: Any) -> Iterator[bytes]:
        yield bson.encode(change(1))
        if next(tries):
            raise AutoReconnect("gone")
        yield bson.encode(change(2))

    monkeypatch.setattr(ChangeReader, "_existing", existing)
    mongo.streams = [FakeStream([])]
    one = reader(startup__mode="copy_existing")
    with pytest.raises(RetriableError, match="gone"):
        one.latestOffset()
    records, offsets = batch(one)
    assert [record.key for record in records] == ['{"_id": 1}', '{"_id": 2}']
    assert records[0].source_offset["copy"] == "true"
    assert "copy" not in offsets[0][1]


def test_a_micro_batch_that_was_not_committed_is_the_same_again(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([change(1), None, change(2)])]
    one = reader()
    start = one.initialOffset()
    end = one.latestOffset()
    first = one.partitions(start, end)
    assert one.latestOffset() == end
    assert one.partitions(start, end) == first
    one.commit(end)
    ((changes, _, _),) = one.partitions(end, one.latestOffset())
    assert [bson.decode(raw)["_id"] for raw in changes] == [token(2)]


def test_a_dropped_collection_is_watched_on(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([change(1, "invalidate")]), FakeStream([change(2)])]
    one = reader()
    batch(one)
    (record,), _ = batch(one)
    assert mongo.opened[1][1]["start_after"] == token(1)
    assert record.key == '{"_id": 2}'


def test_a_deployment_is_watched_whole(mongo: FakeMongo) -> None:
    elsewhere = change(1) | {"ns": {"db": "other", "coll": "things"}}

    class Decoded(FakeStream):
        def try_next(self) -> Any:
            found = super().try_next()
            return None if found is None else bson.decode(found.raw)

    mongo.streams = [Decoded([elsewhere])]
    (record,), _ = batch(ChangeReader(SOURCE.parse({}), None))
    assert mongo.watched == [()]
    assert record.topic == "other.things"
    assert record.source_partition == {"ns": "mongodb://localhost:27017/"}


def test_a_database_is_watched_with_all_its_collections(mongo: FakeMongo) -> None:
    things = change(2) | {"ns": {"db": "shop", "coll": "things"}}
    mongo.streams = [FakeStream([change(1), things]), FakeStream([change(3)])]
    records, (stored,) = batch(reader(collection=""))
    assert [record.topic for record in records] == ["shop.orders", "shop.things"]
    assert records[0].source_partition == {"ns": "mongodb://localhost:27017/shop"}
    assert stored == (records[1].source_partition, records[1].source_offset)
    (record,), _ = batch(reader(stored[1], collection=""))
    assert record.key == '{"_id": 3}'
    assert mongo.opened[1][1]["start_after"] == token(2)
    assert mongo.watched == [("shop",), ("shop",)]


def test_what_cannot_be_converted_is_left_out_where_that_is_tolerated(mongo: FakeMongo) -> None:
    schema = '{"type":"record","name":"r","fields":[{"name":"v","type":"int"}]}'
    settings = {
        "output__format__value": "schema",
        "output__schema__value": schema,
        "publish__full__document__only": "true",
    }
    said = [change(1, fullDocument={"v": "x"}), change(2, fullDocument={"v": 2})]
    mongo.streams = [FakeStream(list(said)), FakeStream(list(said))]
    with pytest.raises(ConnectError, match="Exception creating Source record"):
        batch(reader(**settings))
    letters = {"mongo__errors__deadletterqueue__topic__name": "dead", "errors__tolerance": "all"}
    (dead, good), _ = batch(reader(**settings, **letters))
    assert dead.topic == "dead"
    assert isinstance(good.value, Struct)
    assert good.value.get("v") == 2


DOCUMENT = {
    "_id": ObjectId("5f0f0f0f0f0f0f0f0f0f0f0f"),
    "n": 1,
    "l": Int64(2),
    "d": Decimal128("1.50"),
    "b": Binary(b"ab"),
    "t": bson.decode(bson.encode({"t": datetime(2024, 5, 1)}))["t"],  # noqa: DTZ001
}


def test_the_texts_of_documents() -> None:
    strict = json.loads(json_formatter("x.DefaultJson")(DOCUMENT))
    assert strict["l"] == {"$numberLong": "2"}
    assert strict["b"] == {"$binary": "YWI=", "$type": "00"}
    assert strict["t"] == {"$date": 1714521600000}
    extended = json.loads(json_formatter("x.ExtendedJson")(DOCUMENT))
    assert extended["n"] == {"$numberInt": "1"}
    simple = json.loads(json_formatter("x.SimplifiedJson")(DOCUMENT))
    assert simple == {
        "_id": "5f0f0f0f0f0f0f0f0f0f0f0f",
        "n": 1,
        "l": 2,
        "d": "1.50",
        "b": "YWI=",
        "t": "2024-05-01T00:00:00Z",
    }


def test_values_with_a_schema(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([change(1, fullDocument=DOCUMENT)]) for _ in range(3)]
    (record,), _ = batch(reader(output__format__value="schema", output__format__key="schema"))
    assert record.value.get("operationType") == "insert"
    assert record.value.get("ns").get("coll") == "orders"
    assert json.loads(record.value.get("documentKey")) == {"_id": 1}
    assert json.loads(record.key.get("_id")) == token(1)
    (record,), _ = batch(
        reader(
            output__format__value="schema",
            output__schema__infer__value="true",
            publish__full__document__only="true",
        )
    )
    assert {field.name: field.schema.type.value for field in record.value_schema.fields} == {
        "_id": "string",
        "b": "bytes",
        "d": "bytes",
        "l": "int64",
        "n": "int32",
        "t": "int64",
    }
    assert str(record.value.get("d")) == "1.50"
    (record,), _ = batch(reader(output__format__value="bson", output__format__key="bson"))
    assert bson.decode(record.value)["fullDocument"]["n"] == 1
    assert bson.decode(record.key) == {"_id": 1}


@pytest.mark.parametrize(
    ("given", "topic"),
    [
        ("", "a.shop.orders.z"),
        ('{"shop": "S"}', "a.S.orders.z"),
        ('{"shop.orders": "S"}', "a.S.z"),
        ('{"/sh.*": "x-{coll}"}', "a.x-orders.z"),
        ('{"*": "all"}', "a.all.z"),
    ],
)
def test_topics_by_maps(given: str, topic: str) -> None:
    made = values(topic__prefix="a", topic__suffix="z", topic__namespace__map=given)
    assert TopicNames(made).topic("shop", "orders") == topic


def test_no_password_is_in_offsets_or_errors() -> None:
    uri = "mongodb://u:s3cret@h1:1,h2:2/?replicaSet=r"
    assert partition_name(values(connection__uri=uri)) == "mongodb://h1:1,h2:2/shop.orders"
    errors: Mapping[str, Any] = MongoSource().validate({"connection.uri": "mongodb://u:s3@cret@h"})
    assert "connection.uri" in errors
    assert "s3" not in str(errors)
    assert "collection" in MongoSource().validate({"collection": "c"})


def test_offsets_of_users_are_checked() -> None:
    good = {"_id": json.dumps(token(1))}
    assert MongoSource().alter_offsets({}, [({"ns": "n"}, good), ({"ns": "n"}, None)])
    with pytest.raises(ConnectError, match="resume token"):
        MongoSource().alter_offsets({}, [({"ns": "n"}, {"_id": "no"})])
    with pytest.raises(ConnectError, match="'ns'"):
        MongoSource().alter_offsets({}, [({}, good)])


def test_the_stream_is_read_on_while_a_transaction_is_open(mongo: FakeMongo) -> None:
    mongo.streams = [FakeStream([change(1), None, change(2), None])]
    one = reader()
    first, _ = batch(one)
    end = {"batch": 1}
    assert one.sent(end)
    planned = one.latestOffset()
    one.commit(end)  # of what was sent before: what is planned now stays
    assert planned == one.latestOffset() == {"batch": 2}
    (split,) = one.partitions(end, planned)
    numbers = [json.loads(record.value)["documentKey"]["_id"] for record in one.read(split)]
    assert (len(first), numbers) == (1, [2])
    one.commit(planned)
    assert one.latestOffset() == planned
