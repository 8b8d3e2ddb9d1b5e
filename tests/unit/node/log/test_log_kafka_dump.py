"""Apache Kafka's own dump tool reads what we write, and finds nothing wrong with it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.control import encode_end_txn
from support.apache_kafka import java_with_kafka, needs_apache_kafka
from support.logs import make_batch

TOOL = "org.apache.kafka.tools.DumpLogSegments"

pytestmark = needs_apache_kafka


@pytest.fixture(
    scope="module", params=[pytest.param("closed", marks=pytest.mark.slow), "recovered"]
)
def log_files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The directory of a log of several segments with all that Kafka knows."""
    log_dir = tmp_path_factory.mktemp("logs")
    disk = LocalDisk()
    clock = SystemClock()
    manager = LogManager(disk, [str(log_dir)], clock, LogConfig())
    manager.load()
    partition = TopicPartition("written", 0)
    log = manager.create(partition, Uuid(bytes(range(16))), LogConfig(segment_bytes=10_000))
    now_ms = clock.now_ms()
    sequence = 0
    for number in range(120):
        values = [f"record {number} {index} " + "x" * 50 for index in range(10)]
        batch = make_batch(
            *values,
            timestamps=[now_ms - 1000 + number + index for index in range(10)],
            key="key" if number % 3 else None,
            codec=list(Codec)[number % 5],
            producer=(77, 0, sequence),
            transactional=True,
        )
        sequence += 10
        assert not log.append_as_leader(batch, leader_epoch=number // 50, now_ms=now_ms).error
        if number % 20 == 19:
            marker = encode_end_txn(
                is_commit=number % 40 == 19,
                coordinator_epoch=1,
                producer_id=77,
                producer_epoch=0,
                timestamp_ms=now_ms,
            )
            log.append_as_leader(
                marker, leader_epoch=number // 50, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
            )
    if request.param == "closed":
        manager.shutdown()
    else:
        log.close(clean=False)
        manager = LogManager(disk, [str(log_dir)], clock, LogConfig())
        manager.load()
        manager.shutdown()
    yield log_dir / "written-0"
    disk.close()


def dump(*options: str, files: list[Path]) -> str:
    names = ",".join(map(str, files))
    done = subprocess.run(  # a fixed command
        java_with_kafka(TOOL, *options, "--files", names),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafka_reads_every_batch_and_record(log_files: Path) -> None:
    logs = sorted(log_files.glob("*.log"))
    assert len(logs) > 2
    printed = dump("--deep-iteration", "--print-data-log", files=logs)
    batches = re.findall(r"^baseOffset: .*$", printed, re.MULTILINE)
    assert len(batches) == 126
    assert all("isvalid: true" in batch for batch in batches)
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(1206))
    payloads = re.findall(r"payload: (record \d+ \d+ )", printed)
    assert len(payloads) == 1200
    assert printed.count("endTxnMarker: COMMIT") == 3
    assert printed.count("endTxnMarker: ABORT") == 3


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only"])
def test_kafka_finds_the_indexes_sane(log_files: Path, option: str) -> None:
    indexes = [*sorted(log_files.glob("*.index")), *sorted(log_files.glob("*.timeindex"))]
    printed = dump(option, files=indexes)
    for trouble in ("mismatch", "Found timestamp", "out of order", "misMatches", "Exception"):
        assert trouble not in printed
    if option == "--index-sanity-check":
        assert printed.count("passed sanity check") == len(indexes)


def test_kafka_reads_snapshots_and_transaction_indexes(log_files: Path) -> None:
    snapshots = sorted(log_files.glob("*.snapshot"))
    txn_indexes = sorted(log_files.glob("*.txnindex"))
    assert snapshots
    assert txn_indexes
    printed = dump(files=[*snapshots, *txn_indexes])
    assert "producerId: 77 producerEpoch: 0" in printed
    assert "lastOffset: 1204" in printed
    assert len(re.findall(r"version: 0 producerId: 77 firstOffset", printed)) == 3
