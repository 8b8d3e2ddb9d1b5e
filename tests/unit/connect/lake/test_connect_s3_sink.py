"""S3's sink: names, contents and limits of objects, and each record once despite failures."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from barnabas.connect.connectors.s3 import bucket as bucket_module
from barnabas.connect.connectors.s3.bucket import Bucket
from barnabas.connect.connectors.s3.connectors import S3_SINK, S3Sink, make_bucket
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.errors import ConnectError, RetriableError
from support.connect.s3 import S3Server, s3_server

JSON = "org.apache.kafka.connect.json.JsonConverter"
FIELDS = [
    {"field": "id", "type": "int64"},
    {"field": "city", "type": "string", "optional": True},
]
ROW = {"type": "struct", "name": "Row", "fields": FIELDS}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(server: S3Server) -> Iterator[str]:
    server.make_bucket("events")
    yield "events"
    server.drop_bucket("events")


def row(id_: int, city: str | None = None, schema: dict[str, Any] = ROW) -> bytes:
    return json.dumps({"schema": schema, "payload": {"id": id_, "city": city}}).encode()


def sink(server: S3Server, bucket: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
        "value.converter": JSON,
        **server.settings(bucket),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def ids(server: S3Server, bucket: str) -> dict[str, list[int]]:
    """The `id` of each record, by object."""
    return {
        key: [json.loads(line)["id"] for line in server.read(bucket, key).splitlines()]
        for key in server.keys(bucket)
    }


def test_objects_are_named_for_their_first_offset_and_end_at_flush_size(server, bucket):
    with ConnectKit() as kit:
        kit.create("orders", 2)
        for number in range(7):
            kit.produce("orders", row(number), partition=0)
        for number in range(3):
            kit.produce("orders", row(10 + number), partition=1)
        kit.start("lake", sink(server, bucket))
        done = {("orders", 0): 6, ("orders", 1): 3}
        kit.wait_until(lambda: kit.committed("lake") == done)
        kit.produce("orders", row(7), partition=0)
        kit.produce("orders", row(8), partition=0)
        kit.wait_until(lambda: kit.committed("lake")["orders", 0] == 9)

    assert ids(server, bucket) == {
        "topics/orders/partition=0/orders+0+0000000000.json": [0, 1, 2],
        "topics/orders/partition=0/orders+0+0000000003.json": [3, 4, 5],
        "topics/orders/partition=0/orders+0+0000000006.json": [6, 7, 8],
        "topics/orders/partition=1/orders+1+0000000000.json": [10, 11, 12],
    }


def test_each_format_is_read_by_others(server, bucket):
    with ConnectKit() as kit:
        for number in range(3):
            kit.produce("orders", row(number, "Oslo"), b"k%d" % number)
        formats = {
            "avro": ("avro.AvroFormat", {"avro_codec": "snappy", "store_kafka_keys": "true"}),
            "parquet": ("parquet.ParquetFormat", {}),
            "json": ("json.JsonFormat", {"s3_compression_type": "gzip"}),
            "bytes": (
                "bytearray.ByteArrayFormat",
                {"value_converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
            ),
        }
        for name, (class_, more) in formats.items():
            settings = sink(server, bucket, topics_dir=name, **more)
            settings["format.class"] = f"io.confluent.connect.s3.format.{class_}"
            kit.start(name, settings)
        kit.wait_until(lambda: all(kit.committed(name) for name in formats))

    rows = [{"id": number, "city": "Oslo"} for number in range(3)]
    start = "orders/partition=0/orders+0+0000000000"
    assert server.keys(bucket) == [
        f"avro/{start}.avro",
        f"avro/{start}.keys.avro",
        f"bytes/{start}.bin",
        f"json/{start}.json.gz",
        f"parquet/{start}.snappy.parquet",
    ]
    read = {key: server.read(bucket, key) for key in server.keys(bucket)}
    avro: Any = fastavro.reader(io.BytesIO(read[f"avro/{start}.avro"]))
    assert list(avro) == rows
    assert avro.writer_schema["name"] == "Row"
    keys = fastavro.reader(io.BytesIO(read[f"avro/{start}.keys.avro"]))
    assert list(keys) == ["k0", "k1", "k2"]
    table = pq.read_table(io.BytesIO(read[f"parquet/{start}.snappy.parquet"]))
    assert table.to_pylist() == rows
    lines = gzip.decompress(read[f"json/{start}.json.gz"]).splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert read[f"bytes/{start}.bin"].splitlines() == [row(n, "Oslo") for n in range(3)]


def test_directories_are_of_the_time_that_records_have(server, bucket):
    hour = 3_600_000
    times = [0, 1, hour, hour + 1, 2 * hour]
    with ConnectKit() as kit:
        for number, ms in enumerate(times):
            kit.produce("orders", row(number), timestamp_ms=1_700_000_000_000 + ms)
        settings = sink(
            server,
            bucket,
            flush_size="100",
            partitioner_class="io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
            path_format="'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
            partition_duration_ms=str(hour),
            locale="en-US",
            timezone="Europe/Oslo",
            timestamp_extractor="Record",
            rotate_interval_ms=str(hour),
        )
        kit.start("lake", settings)
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 4})

    day = "topics/orders/year=2023/month=11/day=14"
    assert ids(server, bucket) == {
        f"{day}/hour=23/orders+0+0000000000.json": [0, 1],
        "topics/orders/year=2023/month=11/day=15/hour=00/orders+0+0000000002.json": [2, 3],
    }


def test_directories_are_of_fields_and_end_together(server, bucket):
    cities = ["Oslo", "Rome", "Oslo", None, "Rome", "Oslo"]
    with ConnectKit() as kit:
        for number, city in enumerate(cities):
            kit.produce("orders", row(number, city))
        settings = sink(
            server,
            bucket,
            partitioner_class="FieldPartitioner",
            partition_field_name="city",
        )
        kit.start("lake", settings)
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 6})

    assert ids(server, bucket) == {
        "topics/orders/city=Oslo/orders+0+0000000000.json": [0, 2],
        "topics/orders/city=Oslo/orders+0+0000000005.json": [5],
        "topics/orders/city=Rome/orders+0+0000000001.json": [1],
        "topics/orders/city=Rome/orders+0+0000000004.json": [4],
        "topics/orders/city=null/orders+0+0000000003.json": [3],
    }


def test_a_new_schema_ends_a_file_and_backward_projects_older_records(server, bucket):
    tip_field = {"field": "tip", "type": "int32", "optional": True}
    wide = {**ROW, "version": 2, "fields": [*FIELDS, tip_field]}
    narrow = {**ROW, "version": 1}
    with ConnectKit() as kit:
        for schema in (narrow, wide, narrow, wide):
            kit.produce("orders", row(1, schema=schema))
        for name, size in (("NONE", 2), ("BACKWARD", 3)):
            settings = sink(
                server, bucket, topics_dir=name, schema_compatibility=name, flush_size=str(size)
            )
            settings["format.class"] = "io.confluent.connect.s3.format.avro.AvroFormat"
            kit.start(name, settings)
        kit.wait_until(lambda: kit.committed("NONE") and kit.committed("BACKWARD"))

    found = [(key, server.read(bucket, key)) for key in server.keys(bucket)]
    counts = {
        key.partition("/")[0] + key[-7:-5]: list(fastavro.reader(io.BytesIO(data)))
        for key, data in found
    }
    plain, tip = {"id": 1, "city": None}, {"id": 1, "city": None, "tip": None}
    assert counts == {
        "NONE00": [plain],
        "NONE01": [tip],
        "NONE02": [plain],
        "BACKWARD00": [plain],
        "BACKWARD01": [tip, tip, tip],
    }


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("create", marks=pytest.mark.slow),
        pytest.param("write", marks=pytest.mark.slow),
        pytest.param("complete", marks=pytest.mark.slow),
        "after",
        pytest.param("commit", marks=pytest.mark.slow),
    ],
)
def test_each_record_is_there_once_when_a_step_fails_and_the_task_starts_anew(
    server, bucket, step, monkeypatch
):
    failures = fail_at(step, monkeypatch)
    settings = sink(
        server,
        bucket,
        flush_size="4",
        partitioner_class="FieldPartitioner",
        partition_field_name="city",
    )
    with ConnectKit() as kit:
        for number in range(20):
            kit.produce("orders", row(number, "ab"[number % 2]))
        for _ in range(len(failures) + 1):
            running = kit.start("lake", settings)
            with contextlib.suppress(InjectedError):
                kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 20})
            running.stop()
            running.logs.clear()
        assert kit.committed("lake") == {("orders", 0): 20}
    assert not failures
    records = sorted(number for found in ids(server, bucket).values() for number in found)
    assert records == list(range(20))
    assert server.open_uploads(bucket) == []


class InjectedError(ConnectError):
    """Ends a task, as a crash would."""


def fail_at(step: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a step fail at some of its first calls; the list empties as it does."""
    from barnabas.connect.connectors.s3 import bucket as module
    from barnabas.connect.connectors.storage.sink import FileSinkWriter

    left, calls = [1] if step == "commit" else [2, 3, 7], [0]
    upload = module._S3Upload

    def failing(call: Any, *, is_after: bool = False) -> Any:
        def run(*args: Any) -> Any:
            result = call(*args) if is_after else None
            calls[0] += 1
            if left and calls[0] >= left[0]:
                left.pop(0)
                raise InjectedError
            return result if is_after else call(*args)

        return run

    owner, name = {
        "create": (Bucket, "create"),
        "write": (upload, "write"),
        "complete": (upload, "complete"),
        "after": (upload, "complete"),
        "commit": (FileSinkWriter, "commit"),
    }[step]
    changed = failing(getattr(owner, name), is_after=step in ("after", "commit"))
    monkeypatch.setattr(owner, name, changed)
    return left


def test_large_objects_are_sent_in_parts_and_nothing_is_left_of_those_given_up(server, bucket):
    store = Bucket(_place(server, bucket))
    data = bytes(range(256)) * 4096 * 11
    upload = store.create("large")
    for start in range(0, len(data), 100_000):
        upload.write(data[start : start + 100_000])
    upload.complete()
    other = store.create("other")
    other.write(data)
    assert server.open_uploads(bucket) == ["other"]
    other.abort()

    with store.open("large") as file:
        file.seek(-10, io.SEEK_END)
        assert file.read() == data[-10:]
    assert server.read(bucket, "large") == data
    assert server.keys(bucket) == ["large"]
    assert server.open_uploads(bucket) == []
    store.close()


def _place(server: S3Server, bucket: str) -> Any:
    from barnabas.connect.connectors.s3.bucket import BucketPlace

    settings = server.settings(bucket)
    return BucketPlace(
        bucket,
        settings["s3.region"],
        settings["store.url"],
        settings["aws.access.key.id"],
        settings["aws.secret.access.key"],
        part_bytes=5 * 1024 * 1024,
        retries=0,
    )


class Requests:
    """A client of S3 that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def ask(**given: Any) -> dict[str, str]:
            self.asked.append((name, given))
            return {"UploadId": "1", "ETag": "tag"}

        return ask


@pytest.mark.parametrize("size", [1, 6 * 1024 * 1024])
def test_a_key_of_the_customer_goes_with_all_of_an_object(monkeypatch, size):
    key = bytes(range(32))
    settings = {
        "s3.bucket.name": "events",
        "flush.size": "1",
        "s3.part.size": str(5 * 1024 * 1024),
        "s3.sse.customer.key": base64.b64encode(key).decode(),
    }
    bucket = make_bucket(S3_SINK.parse(settings))
    client = Requests()
    monkeypatch.setitem(bucket_module._CLIENTS, bucket.place, client)
    upload = bucket.create("large")
    upload.write(bytes(size))
    upload.complete()
    parts = [given for name, given in client.asked if name != "complete_multipart_upload"]
    assert len(parts) == (1 if size == 1 else 3)
    for given in parts:
        assert (given["SSECustomerKey"], given["SSECustomerAlgorithm"]) == (key, "AES256")


def test_a_key_of_the_customer_that_is_none_is_refused_and_not_shown():
    settings = {"s3.bucket.name": "events", "flush.size": "1", "s3.sse.customer.key": "c2hvcnQ="}
    errors = S3Sink().validate(settings)
    assert errors == {"s3.sse.customer.key": ["s3.sse.customer.key must be 32 bytes in base64"]}


def test_what_is_wrong_is_said_without_secrets(server, bucket):
    wrong = {
        "s3.bucket.name": ("nowhere", "Non-existent S3 bucket: nowhere"),
        "aws.secret.access.key": ("wrong-secret", "403 Forbidden"),
    }
    if server.kind == "moto":
        del wrong["aws.secret.access.key"]  # it checks none
    with ConnectKit() as kit:
        kit.produce("orders", row(1))
        for name, (value, text) in wrong.items():
            running = kit.start(name, {**sink(server, bucket), name: value})
            error = kit.wait_for_failure(running)
            assert text in str(error)
            assert "wrong-secret" not in repr(error)
            running.logs.clear()


def test_a_server_that_does_not_answer_is_asked_again(server, bucket):
    place = _place(server, bucket)
    store = Bucket(type(place)(**{**_fields(place), "url": "http://127.0.0.1:9"}))
    with pytest.raises(RetriableError, match="Could not connect"):
        store.check()
    store.close()


def _fields(place: Any) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__slots__}


def test_records_that_do_not_fit_are_dead_letters_and_the_others_are_stored(server, bucket):
    with ConnectKit() as kit:
        for value in (row(0), b'{"schema": null, "payload": {"id": 5}}', row(1), None, row(2)):
            kit.produce("orders", value)
        settings = sink(
            server,
            bucket,
            errors_tolerance="all",
            errors_deadletterqueue_topic_name="bad",
            behavior_on_null_values="ignore",
            flush_size="2",
        )
        settings["format.class"] = "io.confluent.connect.s3.format.avro.AvroFormat"
        kit.start("lake", settings)
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 5})
        assert kit.values("bad") == [b'{"schema": null, "payload": {"id": 5}}', None]


def test_the_schedule_ends_files_by_the_clock(server, bucket):
    with ConnectKit() as kit:
        kit.produce("orders", row(0))
        settings = sink(
            server, bucket, flush_size="100", rotate_schedule_interval_ms="200", timezone="UTC"
        )
        kit.start("lake", settings)
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 1})
        kit.produce("orders", row(1))
        kit.produce("orders", row(2))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 3})
    records = sorted(number for found in ids(server, bucket).values() for number in found)
    assert records == [0, 1, 2]


def test_a_bucket_that_vanishes_ends_the_task_and_nothing_is_lost(server):
    server.make_bucket("vanishing")
    with ConnectKit() as kit:
        kit.produce("orders", row(0))
        running = kit.start("lake", sink(server, "vanishing", flush_size="2"))
        server.drop_bucket("vanishing")
        kit.produce("orders", row(1))
        assert "NoSuchBucket" in str(kit.wait_for_failure(running)) or "Non-existent" in str(
            running.error
        )
        running.logs.clear()
        server.make_bucket("vanishing")
        kit.start("lake", sink(server, "vanishing", flush_size="2"))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 2})
    assert list(ids(server, "vanishing").values()) == [[0, 1]]
    server.drop_bucket("vanishing")


def test_a_server_that_comes_back_is_used_again():
    with s3_server() as server, ConnectKit() as kit:
        if server.kind == "moto":
            pytest.skip("moto forgets its objects when it ends")
        server.make_bucket("events")
        settings = sink(server, "events", s3_part_retries="0", flush_size="2")
        kit.start("lake", settings)
        kit.produce("orders", row(0))
        kit.produce("orders", row(1))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 2})
        server.stop()
        kit.produce("orders", row(2))
        kit.produce("orders", row(3))
        server.start()
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 4})
        found = ids(server, "events")
    assert sorted(found.values()) == [[0, 1], [2, 3]]
