"""MongoDB's source and sink on a server (mongo-java-server), through the kit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson.datetime_ms import DatetimeMS
from pymongo import MongoClient

from barnabas.connect.testing import ConnectKit
from support.connect.mongodb import mongo_server

SOURCE = "com.mongodb.kafka.connect.MongoSourceConnector"
SINK = "com.mongodb.kafka.connect.MongoSinkConnector"
ID = "com.mongodb.kafka.connect.sink.processor.id.strategy."


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mongo")
    with pytest.MonkeyPatch.context() as patch, mongo_server(folder, patch) as found:
        yield found


@pytest.fixture
def client(uri: str) -> Iterator[MongoClient[Any]]:
    with MongoClient[Any](uri) as made:
        yield made


def source(uri: str, collection: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": SOURCE,
        "connection.uri": uri,
        "database": "shop",
        "collection": collection,
        "poll.await.time.ms": "20",
        **{name.replace("__", "."): text for name, text in more.items()},
    }


def sink(uri: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": SINK,
        "connection.uri": uri,
        "topics": "t",
        "database": "shop",
        **{name.replace("__", "."): text for name, text in more.items()},
    }


def test_what_is_there_is_copied_and_changes_follow(uri: str, client: MongoClient[Any]) -> None:
    orders = client["shop"]["orders"]
    late = DatetimeMS(2**50)  # no datetime of Python's
    orders.insert_many([{"_id": n, "v": "old", "late": late} for n in range(3)])
    settings = source(uri, "orders", startup__mode="copy_existing")
    with ConnectKit() as kit:
        running = kit.start("c", settings)
        kit.wait_for_records("shop.orders", 3)
        orders.insert_one({"_id": 3, "v": "new"})
        orders.delete_one({"_id": 0})
        found = kit.wait_for_records("shop.orders", 5)
        changes = [json.loads(record.value or b"") for record in found]
        assert [one["operationType"] for one in changes] == [*["insert"] * 4, "delete"]
        assert [one["fullDocument"]["v"] for one in changes[:4]] == ["old"] * 3 + ["new"]
        assert changes[0]["fullDocument"]["late"] == {"$date": 2**50}
        assert json.loads(found[3].key or b"") == {"_id": 3}
        kit.wait_until(lambda: "copy" not in kit.offsets("c")[0][1])
        ((partition, offset),) = kit.offsets("c")
        assert partition == {"ns": f"{uri}/shop.orders"}
        assert "_data" in json.loads(offset["_id"])

        running.stop()
        orders.insert_one({"_id": 4, "v": "meanwhile"})
        kit.start("c", settings)
        kit.wait_for_records("shop.orders", 6)
        later = [json.loads(value or b"") for value in kit.values("shop.orders")[5:]]
        assert [one["fullDocument"]["_id"] for one in later] == [4]


def test_documents_alone_and_tombstones(uri: str, client: MongoClient[Any]) -> None:
    things = client["shop"]["things"]
    things.insert_one({"_id": 1, "v": 1})
    settings = source(
        uri,
        "things",
        startup__mode="copy_existing",
        publish__full__document__only="true",
        publish__full__document__only__tombstone__on__delete="true",
        topic__prefix="a",
        topic__suffix="z",
    )
    with ConnectKit() as kit:
        kit.start("c", settings)
        kit.wait_for_records("a.shop.things.z", 1)
        things.delete_one({"_id": 1})
        kit.wait_for_records("a.shop.things.z", 2)
        assert kit.values("a.shop.things.z") == [b'{"_id": 1, "v": 1}', None]


def test_records_become_documents_and_tombstones_delete(uri: str, client: MongoClient[Any]) -> None:
    with ConnectKit() as kit:
        kit.create("t")
        settings = sink(
            uri,
            document__id__strategy=ID + "FullKeyStrategy",
            delete__on__null__values="true",
            max__batch__size="2",
        )
        for number in range(5):
            kit.produce("t", b'{"n": %d}' % number, b'{"k": %d}' % number)
        kit.produce("t", b'{"n": 10}', b'{"k": 0}')
        kit.produce("t", None, b'{"k": 1}')
        kit.start("s", settings)
        kit.wait_until(lambda: kit.committed("s") == {("t", 0): 7})
    found = sorted(client["shop"]["t"].find(), key=lambda one: one["_id"]["k"])
    assert [(one["_id"]["k"], one["n"]) for one in found] == [(0, 10), (2, 2), (3, 3), (4, 4)]


def test_records_that_are_refused_go_to_the_dead_letters(
    uri: str, client: MongoClient[Any]
) -> None:
    with ConnectKit() as kit:
        kit.create("t")
        kit.create("dead")
        settings = sink(
            uri,
            collection="unique",
            document__id__strategy=ID + "ProvidedInValueStrategy",
            writemodel__strategy="x.InsertOneDefaultStrategy",
            errors__tolerance="all",
            errors__deadletterqueue__topic__name="dead",
        )
        for value in (b'{"_id": 1}', b"no document", b'{"_id": 1}', b'{"_id": 2}', b'{"v": 1}'):
            kit.produce("t", value)
        kit.start("s", settings)
        kit.wait_until(lambda: kit.committed("s") == {("t", 0): 5})
        assert sorted(filter(None, kit.values("dead"))) == sorted(
            [b"no document", b'{"_id": 1}', b'{"v": 1}']
        )
    assert sorted(one["_id"] for one in client["shop"]["unique"].find()) == [1, 2]


def test_one_refused_record_ends_the_task(uri: str) -> None:
    with ConnectKit() as kit:
        kit.create("t")
        kit.produce("t", b"no document")
        running = kit.start("s", sink(uri))
        error = kit.wait_for_failure(running)
        assert "the text is not a document in JSON" in str(error)


def test_a_collection_is_copied_by_both_connectors(
    uri: str, client: MongoClient[Any], tmp_path: Path
) -> None:
    client["shop"]["from"].insert_many([{"_id": n, "v": n * 1.5} for n in range(20)])
    with ConnectKit() as kit:
        kit.start("c", source(uri, "from", startup__mode="copy_existing"))
        handler = "com.mongodb.kafka.connect.sink.cdc.mongodb.ChangeStreamHandler"
        kit.start(
            "s",
            sink(uri, collection="to", topics="shop.from", change__data__capture__handler=handler),
        )
        client["shop"]["from"].delete_one({"_id": 7})
        kit.wait_until(
            lambda: (
                list(client["shop"]["to"].find()) == list(client["shop"]["from"].find())
                and client["shop"]["to"].count_documents({}) == 19
            )
        )
