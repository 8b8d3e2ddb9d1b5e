"""What `barnabas log dump` shows of every kind of file, damaged ones too."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.dump import dump_file, dump_path, render
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import NOW_MS, LogBench, make_batch

KAFKA_DATA = Path(__file__).parents[5] / "shared" / "kafka-data" / "data.tar.gz"


@pytest.fixture
def bench() -> LogBench:
    """A log with a transaction that was aborted, in two segments, closed."""
    bench = LogBench(config=LogConfig(segment_bytes=300, index_interval_bytes=50))
    bench.append(make_batch("a", "b", producer=(9, 1, 0), transactional=True, codec=Codec.LZ4))
    marker = encode_end_txn(
        is_commit=False, coordinator_epoch=4, producer_id=9, producer_epoch=1, timestamp_ms=NOW_MS
    )
    bench.log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    bench.append(
        encode_batch(
            [Record(timestamp=NOW_MS, key=b"\xff\x00", headers=[("h", b"v"), ("n", None)])]
        )
    )
    bench.fill("x" * 200, "last")
    bench.log.close()
    return bench


def entries(bench: LogBench, name: str, **options: bool) -> list[dict[str, Any]]:
    first, *rest = dump_file(bench.disk, bench.path(name), **options)
    assert first["kind"] == "file"
    json.dumps(rest)
    assert all(render(entry) for entry in rest)
    return rest


def test_batches_and_records(bench: LogBench) -> None:
    found = entries(bench, f"{0:020d}.log", records=True)
    assert [entry["kind"] for entry in found] == (
        ["batch", "record", "record", "batch", "record", "batch", "record"]
    )
    first = found[0]
    assert (first["base_offset"], first["last_offset"], first["count"]) == (0, 1, 2)
    assert (first["codec"], first["producer_id"], first["is_transactional"]) == ("lz4", 9, True)
    assert first["is_valid"]
    assert found[1] == {
        "kind": "record", "offset": 0, "timestamp": NOW_MS, "key": None, "value": "a",
    }  # fmt: skip
    assert (found[4]["control"], found[4]["coordinator_epoch"]) == ("ABORT", 4)
    assert (found[6]["key"], found[6]["value"]) == ("0xff00", None)
    assert found[6]["headers"] == [["h", "v"], ["n", None]]
    assert "sequences=0..1 transactional" in render(first)
    assert len(entries(bench, f"{0:020d}.log")) == 3


def test_indexes_snapshots_and_small_files(bench: LogBench) -> None:
    assert entries(bench, f"{0:020d}.index")[0]["kind"] == "offset_entry"
    assert entries(bench, f"{0:020d}.timeindex") == [
        {"kind": "time_entry", "timestamp": NOW_MS, "offset": 1}
    ]
    assert entries(bench, f"{0:020d}.txnindex") == [
        {
            "kind": "aborted_transaction", "producer_id": 9, "first_offset": 0,
            "last_offset": 2, "last_stable_offset": 3,
        }
    ]  # fmt: skip
    (producer,) = entries(bench, f"{bench.log.log_end_offset:020d}.snapshot")
    assert (producer["producer_id"], producer["last_sequence"], producer["epoch"]) == (9, 1, 1)
    assert entries(bench, "leader-epoch-checkpoint") == [
        {"kind": "epoch", "epoch": 0, "start_offset": 0}
    ]
    assert entries(bench, "partition.metadata") == [
        {"kind": "topic_id", "topic_id": "AAAAAAAAAAAAAAAAAAAABw"}
    ]


def test_directory_with_all_its_files(bench: LogBench) -> None:
    bench.disk.write_atomic("/data/recovery-point-offset-checkpoint", b"0\n1\ntopic 0 5\n")
    bench.disk.write_atomic("/data/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":7}')
    bench.disk.write_atomic("/data/meta.properties", b"#\nnode.id=1\n")
    bench.disk.write_atomic("/data/something-else", b"")
    found = list(dump_path(bench.disk, "/data"))
    files = [entry["path"] for entry in found if entry["kind"] == "file"]
    assert files[:3] == [
        "/data/.kafka_cleanshutdown",
        "/data/meta.properties",
        "/data/recovery-point-offset-checkpoint",
    ]
    assert len(files) == 3 + len(bench.names())
    assert {"kind": "content", "version": 0, "brokerEpoch": 7} in found
    assert {"kind": "line", "text": "node.id=1"} in found
    assert {"kind": "offset", "topic": "topic", "partition": 0, "offset": 5} in found


def test_damage_is_shown_where_it_is(bench: LogBench) -> None:
    data = bench.disk.inode(bench.path(f"{0:020d}.log")).data
    data[80] ^= 1
    del data[-1:]
    found = entries(bench, f"{0:020d}.log", records=True)
    assert [entry["kind"] for entry in found] == ["batch", "batch", "record", "damage"]
    assert not found[0]["is_valid"]
    assert "BAD CRC" in render(found[0])
    assert "DAMAGED" in render(found[-1])


@pytest.mark.parametrize(
    "name",
    [
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
        f"{0:020d}.txnindex",
        f"{4:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
        f"{0:020d}.checkpoint",
        "nothing-known",
    ],
)
def test_garbage_is_damage(bench: LogBench, name: str) -> None:
    bench.disk.write_atomic(bench.path(name), b"\x11\x22\x33garbage")
    assert entries(bench, name)[-1]["kind"] == "damage"


def test_records_of_internal_topics_that_cannot_be_read_are_shown_raw() -> None:
    bench = LogBench()
    bench.fill("plain")
    bench.disk.rename("/data/topic-0", "/data/__consumer_offsets-0")
    path = f"/data/__consumer_offsets-0/{0:020d}.log"
    *_, record = dump_file(bench.disk, path, records=True)
    assert record["value"] == "plain"
    assert "unknown" in record["problem"]


@pytest.mark.skipif(not KAFKA_DATA.is_file(), reason="needs a directory written by Apache Kafka")
def test_directory_that_kafka_wrote(tmp_path: Path) -> None:
    with tarfile.open(KAFKA_DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    disk = LocalDisk()
    found = list(dump_path(disk, str(tmp_path / "data"), records=True))
    disk.close()
    assert all(render(entry) for entry in found)
    assert not [entry for entry in found if entry["kind"] == "damage" or "problem" in entry]
    types = {entry["type"] for entry in found if "type" in entry}
    assert {
        "OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata", "TransactionLog",
        "RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "FeatureLevelRecord",
    } <= types  # fmt: skip
    commits = [entry for entry in found if entry.get("type") == "OffsetCommit"]
    assert {(entry["key"]["group"], entry["key"]["topic"]) for entry in commits} >= {
        ("readers", "codec-none"),
        ("new-protocol", "txn"),
    }
    topic = next(entry for entry in found if entry.get("type") == "TopicRecord")
    assert len(topic["value"]["topic_id"]) == 22
    controls = {entry["control"] for entry in found if "control" in entry}
    assert {"COMMIT", "ABORT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "KRAFT_VOTERS"} <= controls
