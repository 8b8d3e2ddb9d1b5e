"""Directories and buckets as sources, and directories as sinks."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.connect.connectors.files.local_store import LocalStore
from barnabas.connect.connectors.storage.formats import avro as avro_format
from barnabas.connect.connectors.storage.formats.avro import AvroFormat
from barnabas.connect.connectors.storage.formats.lines import JsonFormat
from barnabas.connect.connectors.storage.formats.parquet import ParquetFormat
from barnabas.connect.connectors.storage.source import FileSourceReader
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConnectError, DataError, RetriableError
from barnabas.schemas.data.schema import Struct
from support.connect.s3 import S3Server, s3_server

JSON = "org.apache.kafka.connect.json.JsonConverter"
PLAIN = {"value.converter": JSON, "value.converter.schemas.enable": "false"}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def source(directory: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "barnabas.connect.FilesSource",
        "files.directory": str(directory),
        "files.poll.interval.ms": "10",
        "topic": "rows",
        **PLAIN,
        **more,
    }


def sink(directory: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "barnabas.connect.FilesSink",
        "files.directory": str(directory),
        "topics": "orders",
        "flush.size": "3",
        **PLAIN,
        **more,
    }


def numbers(kit: ConnectKit, topic: str = "rows") -> list[int]:
    return [json.loads(value or b"{}")["id"] for value in kit.values(topic)]


def avro(rows: list[dict[str, Any]]) -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"]}]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "Row", "fields": fields}, rows)
    return out.getvalue()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


ROWS = [{"id": number, "city": "Oslo" if number else None} for number in range(3)]


@pytest.mark.parametrize(
    ("format_", "name", "data"),
    [
        ("JsonFormat", "a.json", lines(ROWS)),
        ("JsonFormat", "a.json.gz", gzip.compress(lines(ROWS))),
        ("AvroFormat", "a.avro", avro(ROWS)),
        ("ParquetFormat", "a.parquet", parquet(ROWS)),
    ],
    ids=["json", "gzip", "avro", "parquet"],
)
def test_a_format_is_read(tmp_path, format_, name, data):
    (tmp_path / name).write_bytes(data)
    with ConnectKit() as kit:
        kit.start("files", source(tmp_path, **{"format.class": format_}))
        kit.wait_for_records("rows", 3)
        assert [json.loads(value or b"") for value in kit.values("rows")] == ROWS


def test_bytes_are_read_as_lines(tmp_path):
    (tmp_path / "a.log").write_bytes(b"one\ntwo\n\nlast")
    bytes_ = "org.apache.kafka.connect.converters.ByteArrayConverter"
    with ConnectKit() as kit:
        more = {"format.class": "ByteArrayFormat", "value.converter": bytes_}
        settings = source(tmp_path, **more)
        del settings["value.converter.schemas.enable"]
        kit.start("files", settings)
        kit.wait_for_records("rows", 4)
        assert kit.values("rows") == [b"one", b"two", b"", b"last"]


def test_spaces_between_bytes_count(tmp_path):
    (tmp_path / "a.log").write_bytes(b"one\r\ntwo\nthree\r\n")
    settings = source(tmp_path, **{"format.class": "ByteArrayFormat"})
    del settings["value.converter.schemas.enable"]
    settings["value.converter"] = "org.apache.kafka.connect.converters.ByteArrayConverter"
    with ConnectKit() as kit:
        kit.start("files", {**settings, "format.bytearray.separator": "\r\n"})
        kit.wait_for_records("rows", 2)
        assert kit.values("rows") == [b"one", b"two\nthree"]


def test_new_and_changed_files_are_read_once_each_and_others_are_not(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_bytes(lines([{"id": 1}]))
    (tmp_path / "in/a.txt").write_bytes(b"not this")
    with ConnectKit() as kit:
        settings = source(tmp_path, **{"files.glob": "in/*.json"})
        running = kit.start("files", settings)
        kit.wait_for_records("rows", 1)
        (tmp_path / "in/b.json").write_bytes(lines([{"id": 2}, {"id": 3}]))
        kit.wait_for_records("rows", 3)
        kit.wait_until(lambda: len(kit.offsets("files")) == 2)
        running.stop()
        (tmp_path / "in/a.json").write_bytes(lines([{"id": 4}, {"id": 5}]))
        kit.start("files", settings)
        kit.wait_for_records("rows", 5)
        (tmp_path / "in/c.json").write_bytes(lines([{"id": 6}]))
        kit.wait_for_records("rows", 6)
        assert numbers(kit) == [1, 2, 3, 4, 5, 6]


def test_files_are_removed_when_their_records_are_written(tmp_path):
    (tmp_path / "a.json").write_bytes(lines([{"id": 1}]))
    with ConnectKit() as kit:
        kit.start("files", source(tmp_path, **{"files.delete": "true"}))
        kit.wait_for_records("rows", 1)
        kit.wait_until(lambda: not list(tmp_path.iterdir()))


@pytest.mark.parametrize("is_read_again", [False, True])
def test_files_that_cannot_be_removed_are_removed_later_and_not_read_again(
    tmp_path, monkeypatch, is_read_again
):
    for number in range(3):
        (tmp_path / f"{number}.json").write_bytes(lines([{"id": number}]))
    call, left = LocalStore.delete, [1, 1]

    def delete(self: LocalStore, name: str) -> None:
        if left:
            left.pop()
            raise ConnectError("as a crash would") if is_read_again else RetriableError("busy")
        call(self, name)

    monkeypatch.setattr(LocalStore, "delete", delete)
    with ConnectKit() as kit:
        settings = source(tmp_path, **{"files.delete": "true"})
        for _ in range(3 if is_read_again else 1):
            running = kit.start("files", settings, is_exactly_once=True)
            with contextlib.suppress(ConnectError):
                kit.wait_until(lambda: not list(tmp_path.iterdir()))
            running.stop()
            running.logs.clear()
        assert sorted(numbers(kit)) == [0, 1, 2]
    assert not left
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_named_or_left_out(tmp_path, caplog):
    (tmp_path / "a.json").write_bytes(b'{"id": 1}\nnonsense\n')
    (tmp_path / "b.json").write_bytes(lines([{"id": 2}]))
    with ConnectKit() as kit:
        running = kit.start("files", source(tmp_path))
        assert "a.json: line 2 is not JSON" in str(kit.wait_for_failure(running))
        running.logs.clear()
        for topic in ("ignore", "log"):
            caplog.clear()
            kit.start(topic, source(tmp_path, topic=topic, **{"behavior.on.error": topic}))
            kit.wait_for_records(topic, 2)
            assert numbers(kit, topic) == [1, 2]
            assert ("skipping the rest of a.json" in caplog.text) is (topic == "log")


FORMATS = [
    *(AvroFormat(codec) for codec in avro_format.CODECS),
    *(ParquetFormat(codec) for codec in ("none", "snappy", "gzip", "zstd")),
    JsonFormat(),
]


@pytest.mark.parametrize("format_", FORMATS, ids=lambda one: f"{type(one).__name__}{vars(one)}")
def test_whatever_is_damaged_in_a_file_its_reader_says_so(format_):
    schema = builder.struct_of({"id": builder.INT64, "city": builder.OPTIONAL_STRING}, name="Row")
    file = io.BytesIO()
    writer = format_.open(file, schema)
    for number in range(100):
        writer.write(Struct.of(schema, {"id": number, "city": "Oslo" * (number % 5)}))
    writer.finish()
    whole, draw, refused = file.getvalue(), random.Random(7), 0
    assert len(list(format_.read(io.BytesIO(whole)))) == 100
    for number in range(60):
        damaged = bytearray(whole)
        if number % 4:
            damaged[draw.randrange(len(whole))] ^= draw.randint(1, 255)
        else:
            del damaged[draw.randrange(len(whole)) :]
        try:
            list(format_.read(io.BytesIO(damaged)))
        except DataError:
            refused += 1
    assert refused


def test_a_disk_that_cannot_be_read_is_not_a_damaged_file():
    with LocalStore("/proc/self").open("mem") as memory:
        with pytest.raises(RetriableError, match="cannot read mem: Input/output error"):
            memory.read(1)
        with pytest.raises(RetriableError, match="cannot read mem: Input/output error"):
            memory.read()


@pytest.mark.parametrize("step", ["offsets", "read"])
def test_each_record_is_in_the_topic_once_exactly_once(tmp_path, monkeypatch, step):
    for number in range(4):
        (tmp_path / f"{number}.json").write_bytes(lines([{"id": number * 10 + i} for i in (0, 1)]))
    call, left = getattr(FileSourceReader, step), [1, 1]

    def failing(self: Any, *args: Any) -> Any:
        result = list(call(self, *args))
        if left:
            left.pop()
            raise ConnectError("as a crash would")
        return result

    monkeypatch.setattr(FileSourceReader, step, failing)
    with ConnectKit() as kit:
        for _ in range(3):
            running = kit.start("files", source(tmp_path), is_exactly_once=True)
            with contextlib.suppress(ConnectError):
                kit.wait_until(lambda: len(kit.offsets("files")) == 4)
            running.stop()
            running.logs.clear()
        assert sorted(numbers(kit)) == [0, 1, 10, 11, 20, 21, 30, 31]


def test_a_directory_is_written_and_restored_with_keys_headers_and_partitions(tmp_path):
    with ConnectKit() as kit:
        kit.create("orders", 2)
        for number in range(12):
            kit.produce(
                "orders",
                b'{"id": %d}' % number,
                b"k%d" % number,
                partition=number % 2,
                headers=[("h", b"v")],
            )
        sides = {
            "store.kafka.keys": "true",
            "store.kafka.headers": "true",
            "keys.format.class": "JsonFormat",
        }
        kit.start("out", sink(tmp_path, **sides))
        kit.wait_until(lambda: kit.committed("out") == {("orders", 0): 6, ("orders", 1): 6})
        before = [(r.partition, r.key, json.loads(r.value or b"")) for r in kit.records("orders")]

    assert sorted(os.listdir(tmp_path / "topics/orders/partition=1")) == [
        "orders+1+0000000000.headers.avro",
        "orders+1+0000000000.json",
        "orders+1+0000000000.keys.json",
        "orders+1+0000000003.headers.avro",
        "orders+1+0000000003.json",
        "orders+1+0000000003.keys.json",
    ]
    with ConnectKit() as kit:
        kit.create("orders", 2)
        restore = source(tmp_path, mode="RESTORE_BACKUP", **sides, **{"tasks.max": "2"})
        kit.start("in", restore)
        kit.wait_for_records("orders", 12)
        after = [(r.partition, r.key, json.loads(r.value or b"")) for r in kit.records("orders")]
        assert after == before
        assert all(list(r.headers) == [("h", b"v")] for r in kit.records("orders"))


def test_a_bucket_is_restored_in_order_and_read_by_patterns(server):
    server.make_bucket("backup")
    for offset in (0, 2, 10):
        rows = [{"id": offset}, {"id": offset + 1}]
        server.write("backup", f"topics/orders/partition=0/orders+0+{offset}.json", lines(rows))
    server.write("backup", "topics/other/x.csv", b"not of a backup")
    server.write("backup", "logs/2026/a.json", lines([{"id": 7}]))
    common = {
        "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
        "s3.poll.interval.ms": "10",
        **PLAIN,
        **server.settings("backup"),
    }
    with ConnectKit() as kit:
        kit.start("restore", common)
        generic = {"mode": "GENERIC", "topics.dir": "logs", "topic.regex.list": r"log:\d+/.*\.json"}
        kit.start("generic", {**common, **generic})
        kit.wait_for_records("orders", 6)
        kit.wait_for_records("log", 1)
        assert numbers(kit, "orders") == [0, 1, 2, 3, 10, 11]
        assert numbers(kit, "log") == [7]
    server.drop_bucket("backup")


def test_a_directory_that_cannot_be_listed_is_no_empty_one(tmp_path):
    store = LocalStore(str(tmp_path / "gone"))
    with pytest.raises(ConnectError, match="cannot list"):
        list(store.list(""))
    store.check()
    assert list(store.list("")) == []


def test_a_full_disk_is_waited_for(tmp_path, monkeypatch, caplog):
    """The file system has room again later: the task goes on by itself."""
    import errno

    fsync, left = os.fsync, [1, 1]

    def full(descriptor: int) -> None:
        if left:
            left.pop()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with ConnectKit() as kit:
        for number in range(3):
            kit.produce("orders", b'{"id": %d}' % number)
        kit.start("out", sink(tmp_path))
        kit.wait_until(lambda: kit.committed("out") == {("orders", 0): 3})
    assert not left
    assert "orders+0+0000000000.json: No space left on device; trying again in" in caplog.text
    folder = tmp_path / "topics/orders/partition=0"
    assert os.listdir(folder) == ["orders+0+0000000000.json"]


def test_names_stay_in_the_directory(tmp_path):
    with pytest.raises(ConnectError, match="outside of the directory"):
        LocalStore(str(tmp_path / "a")).create("../b")
    with pytest.raises(ConnectError, match="No such file"):
        LocalStore(str(tmp_path)).open("missing")
    assert not issubclass(ConnectError, RetriableError)


def test_keys_that_do_not_fit_end_the_task_and_are_not_left_out_alone(tmp_path):
    settings = sink(
        tmp_path,
        **{
            "store.kafka.keys": "true",
            "key.converter": JSON,
            "errors.tolerance": "all",
            "flush.size": "2",
        },
    )
    with ConnectKit() as kit:
        for kind, key in (("int32", 1), ("string", "one")):
            schema = {"schema": {"type": kind}, "payload": key}
            kit.produce("orders", b'{"id": 1}', json.dumps(schema).encode())
        running = kit.start("out", settings)
        assert "keys do not fit into one file" in str(kit.wait_for_failure(running))
        running.logs.clear()
    assert not list(tmp_path.rglob("*.json"))
