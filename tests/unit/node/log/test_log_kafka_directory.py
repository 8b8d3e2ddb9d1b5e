"""A directory that Apache Kafka wrote opens, whole, and as Kafka itself would find it."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.recovery import RecoveryReport
from barnabas.protocol.records.batch import TimestampType, iterate_headers
from barnabas.protocol.records.records import Record
from sim.manual_clock import ManualClock
from support.logs import make_batch, read_records

KAFKA_DATA = Path(__file__).parents[5] / "shared" / "kafka-data"
ARCHIVE = KAFKA_DATA / "data.tar.gz"
INDEX_INTERVAL_BYTES = 512
"""The setting of the Kafka that wrote the directory."""
JANUARY_2026_MS = 1_767_225_600_000

pytestmark = pytest.mark.skipif(
    not ARCHIVE.is_file(), reason="needs a directory written by Apache Kafka beside the checkout"
)


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((KAFKA_DATA / "MANIFEST.json").read_text())
    return loaded


class Opened:
    """Kafka's directory, opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._disk = LocalDisk()
        self.reports: list[RecoveryReport] = []
        self.load()

    def load(self) -> None:
        self.logs = LogManager(
            self._disk,
            [str(self.path)],
            ManualClock(JANUARY_2026_MS),
            LogConfig(),
            topic_config=lambda topic: LogConfig(
                cleanup_policy=frozenset({"compact" if topic == "compacted" else "delete"})
            ),
        )
        self.reports = self.logs.load()

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        log = self.logs.get(TopicPartition(topic, partition))
        assert log is not None
        return log

    def records(self, topic: str, partitions: int) -> list[Record]:
        return [
            record
            for partition in range(partitions)
            for record in read_records(self.log(topic, partition))
        ]

    def close(self) -> None:
        self._disk.close()


def unpack(target: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    return target / "data"


@pytest.fixture(scope="module", params=["closed cleanly", "killed", "without indexes"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    path = unpack(tmp_path_factory.mktemp("kafka"))
    if request.param == "killed":
        (path / ".kafka_cleanshutdown").unlink()
        (path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    elif request.param == "without indexes":
        for index in path.glob("*/*index"):
            if index.suffix in (".index", ".timeindex"):
                index.unlink()
    opened = Opened(path)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("topic", "partitions"),
    [
        ("codec-none", 3),
        ("codec-gzip", 2),
        ("codec-snappy", 2),
        ("codec-lz4", 2),
        ("codec-zstd", 2),
        ("appendtime", 1),
    ],
)
def test_every_record_is_there(
    kafka: Opened, manifest: dict[str, Any], topic: str, partitions: int
) -> None:
    records = kafka.records(topic, partitions)
    assert len(records) == manifest["topics"][topic]["records"]
    for partition in range(partitions):
        log = kafka.log(topic, partition)
        found = read_records(log, max_bytes=5000)
        assert [record.offset for record in found] == list(range(log.log_end_offset))


def test_timestamps_are_found_to_the_record(kafka: Opened) -> None:
    for topic in ("codec-none", "codec-zstd"):
        log = kafka.log(topic)
        records = read_records(log)
        for wanted in records[:: len(records) // 40]:
            found = log.offset_for_timestamp(wanted.timestamp, log.log_end_offset)
            expected = next(record for record in records if record.timestamp >= wanted.timestamp)
            assert found is not None
            assert (found.timestamp, found.offset) == (expected.timestamp, expected.offset)
        assert log.offset_for_timestamp(1 << 60, log.log_end_offset) is None
        greatest = log.max_timestamp_offset(log.log_end_offset)
        assert greatest is not None
        assert greatest.timestamp == max(record.timestamp for record in records)


def test_transactions(kafka: Opened, manifest: dict[str, Any]) -> None:
    log = kafka.log("txn")
    aborted = log.aborted_transactions(0, log.log_end_offset)
    committed_values: list[Any] = []
    aborted_values: list[Any] = []
    for segment in log.segments:
        data = Path(segment.files.log_path).read_bytes()
        for _, header in iterate_headers(data):
            if header.is_control:
                continue
            is_aborted = any(
                entry.producer_id == header.producer_id
                and entry.first_offset <= header.base_offset <= entry.last_offset
                for entry in aborted
            )
            values = [
                (record.value or b"").decode()
                for record in read_records(log, header.base_offset, max_bytes=1)
                if header.base_offset <= record.offset <= header.last_offset
            ]
            (aborted_values if is_aborted else committed_values).extend(values)
    assert committed_values == manifest["topics"]["txn"]["committed_values"]
    assert aborted_values == manifest["topics"]["txn"]["aborted_values"]
    assert log.last_stable_offset == log.log_end_offset
    (producer,) = log.active_producers()
    assert (producer.producer_id, producer.epoch, producer.txn_first_offset) == (5, 0, -1)


def test_compaction_gaps_headers_and_nulls(kafka: Opened, manifest: dict[str, Any]) -> None:
    latest: dict[str, str | None] = {}
    offsets = []
    for record in read_records(kafka.log("compacted")):
        assert record.key is not None
        latest[record.key.decode()] = None if record.value is None else record.value.decode()
        offsets.append(record.offset)
    assert offsets != list(range(len(offsets)))
    wanted = manifest["topics"]["compacted"]["latest"]
    assert {key: value for key, value in latest.items() if value is not None} == {
        key: value for key, value in wanted.items() if value is not None
    }

    found = [
        {
            "key": None if record.key is None else record.key.decode(),
            "value": None if record.value is None else record.value.decode(),
            "headers": [
                [name, None if value is None else value.decode()] for name, value in record.headers
            ],
            "timestamp_ms": record.timestamp,
        }
        for record in read_records(kafka.log("headers-and-nulls"))
    ]
    assert found == manifest["topics"]["headers-and-nulls"]["records"]


def test_topic_ids_epochs_and_watermarks(kafka: Opened) -> None:
    log = kafka.log("txn")
    assert uuid_to_text(log.topic_id) == "e3FBmRA6QSiXQV8OahkCbg"
    assert log.epochs.entries == [(0, 0)]
    assert log.high_watermark == log.log_end_offset == 252
    assert uuid_to_text(kafka.logs.directory_ids[str(kafka.path)]) == "IYOgVadARyqNPljXBL1pKg"
    assert len(kafka.logs) == 23  # all but the metadata log
    assert not any(report.is_loss for report in kafka.reports)
    headers = iterate_headers(Path(kafka.log("appendtime").active.files.log_path).read_bytes())
    assert next(headers)[1].timestamp_type is TimestampType.LOG_APPEND_TIME


def test_appends_go_on_where_kafka_stopped(tmp_path: Path) -> None:
    opened = Opened(unpack(tmp_path))
    log = opened.log("codec-none")
    end = log.log_end_offset
    result = log.append_as_leader(
        make_batch("more", timestamp=JANUARY_2026_MS), leader_epoch=1, now_ms=JANUARY_2026_MS
    )
    assert result.first_offset == end
    opened.logs.shutdown(14)
    opened.load()
    assert opened.logs.previous_broker_epochs == {str(opened.path): 14}
    assert read_records(opened.log("codec-none"))[-1].value == b"more"
    assert opened.log("codec-none").epochs.entries == [(0, 0), (1, end)]
    opened.close()


def test_our_indexes_equal_kafkas(tmp_path: Path) -> None:
    """Rebuilt from the batches, every index has the bytes that Kafka gave it."""
    path = unpack(tmp_path)
    opened = Opened(path)
    compared = 0
    for log in opened.logs:
        if log.topic_partition.topic == "compacted":
            continue  # its indexes are of before the compaction
        for segment in log.segments:
            index_paths = [
                Path(p) for p in (segment.files.offset_index.path, segment.files.time_index.path)
            ]
            before = [p.read_bytes() for p in index_paths]
            segment.rebuild_indexes(INDEX_INTERVAL_BYTES)
            assert [p.read_bytes() for p in index_paths] == before, segment.files.log_path
            compared += bool(before[1])
    assert compared > 10
    opened.close()
