"""Our compaction against Apache Kafka's own cleaner, on copies of one log.

Random logs (codecs, tombstones, idempotent and transactional producers, aborts) are cleaned in
several rounds, with time passing in between. After each, what we left of every segment must be
what Kafka left of a copy: batch by batch, with all header fields, records, and the index of
aborted transactions.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.compaction.compactor import CompactionSettings, Compactor
from barnabas.node.log.compaction.offset_map import map_bytes
from barnabas.node.log.compaction.selection import measure
from barnabas.node.log.compaction.workers import InlineWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.index.txn_index import read_aborted
from barnabas.node.log.loader import create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.records.batch import Codec, check_crc, iterate_headers
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from sim.manual_clock import ManualClock
from support.apache_kafka import java_with_kafka, needs_apache_kafka
from support.effort import examples
from support.logs import TOPIC_ID, TOPIC_PARTITION

DAY_MS = 86_400_000
RETENTION_MS = 3_600_000
SEGMENT_BYTES = 6000
KEYS = [b"a", b"bb", b"", b"a key that is longer than thirty bytes, so it is hashed"] + [
    b"key-%d" % number for number in range(12)
]

pytestmark = needs_apache_kafka

Clean = Callable[..., int]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Clean]:
    """Kafka's cleaner."""
    command = java_with_kafka(str(Path(__file__).with_name("KafkaCleaner.java")))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def clean(*words: object) -> int:
            stdin.write(" ".join(map(str, words)) + "\n")
            stdin.flush()
            while not (answer := stdout.readline().strip()).isdigit():
                assert answer, "it ended"
                assert not answer.startswith("error"), answer
            return int(answer)

        yield clean
        stdin.close()


@dataclass
class World:
    """Our log, to which producers write at random."""

    root: Path
    random: Random
    clock: ManualClock = field(default_factory=ManualClock)
    sequences: dict[int, int] = field(default_factory=dict)
    open_transactions: set[int] = field(default_factory=set)
    epochs: dict[int, int] = field(default_factory=dict)
    rounds: int = 0
    batches_compared: int = 0

    def __post_init__(self) -> None:
        self.clock.time_ms = SystemClock().now_ms()
        self.disk = LocalDisk()
        self.config = LogConfig(
            cleanup_policy=frozenset({"compact"}),
            segment_bytes=SEGMENT_BYTES,
            index_interval_bytes=300,
            delete_retention_ms=RETENTION_MS,
            min_cleanable_dirty_ratio=0.0,
            message_timestamp_after_max_ms=1 << 60,
        )
        self.directory = LogDirectory(str(self.root / "ours"), self.disk, self.clock)
        self.disk.make_dirs(self.directory.path)
        self.log = create_log(self.directory, TOPIC_PARTITION, TOPIC_ID, self.config)

    def append(self, data: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        result = self.log.append_as_leader(
            data, leader_epoch=4, now_ms=self.clock.time_ms, origin=origin
        )
        assert not result.error, (result.error, result.message)
        self.log.high_watermark = self.log.log_end_offset

    def step(self) -> None:
        """A batch, or the end of a transaction."""
        random = self.random
        if self.open_transactions and random.random() < 0.3:
            self._end(random.choice(sorted(self.open_transactions)))
            return
        producer_id = random.choice((-1, -1, 7, 8, 9, 10))
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        records = [
            Record(
                timestamp=self.clock.time_ms - random.randrange(1000),
                key=random.choice(KEYS),
                value=None if random.random() < 0.2 else random.randbytes(random.randrange(90)),
                headers=[("h", b"v"), ("n", None)] if random.random() < 0.1 else [],
            )
            for _ in range(random.choice((1, 1, 3, 8, 50)))
        ]
        self.append(
            encode_batch(
                records,
                codec=random.choice(list(Codec)),
                producer_id=producer_id,
                producer_epoch=self.epochs.get(producer_id, 0) if producer_id >= 0 else -1,
                base_sequence=sequence,
                is_transactional=producer_id > 7,
            )
        )
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(records)
        if producer_id > 7:
            self.open_transactions.add(producer_id)

    def _end(self, producer_id: int) -> None:
        self.open_transactions.discard(producer_id)
        if self.random.random() < 0.2:  # as with KIP-890: the epoch goes up
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
            self.sequences[producer_id] = 0
        self.append(
            encode_end_txn(
                is_commit=self.random.random() < 0.5,
                coordinator_epoch=1,
                producer_id=producer_id,
                producer_epoch=self.epochs.get(producer_id, 0),
                timestamp_ms=self.clock.time_ms,
            ),
            AppendOrigin.COORDINATOR,
        )

    def reopen(self) -> None:
        """Close and open: then Kafka can open a copy."""
        cleaned = self.log.cleaned_offset
        self.log.close()
        end = self.log.log_end_offset
        self.log, report = open_log(
            self.directory, TOPIC_PARTITION, self.config, is_clean=True, recovery_point=end
        )
        assert not report.is_loss
        self.log.cleaned_offset = cleaned
        self.log.high_watermark = end

    def compactor(self, settings: CompactionSettings) -> Compactor:
        """One for the log as it is open now."""
        return Compactor(
            [self.log],
            self.clock,
            InlineWorker(self.disk, self.clock),
            settings,
            checkpoint=no_checkpoint,
        )

    def round(self, kafka: Clean, name: str, keys_max: int) -> None:
        """Clean the log, and a copy of it with Kafka, and compare."""
        self.reopen()
        chosen = measure(self.log, self.clock.time_ms)
        if chosen is None or chosen.end_offset <= chosen.start_offset:
            return
        copy = self.root / name / "topic-0"
        shutil.copytree(self.log.directory, copy)
        settings = CompactionSettings(map_bytes_max=map_bytes(keys_max), map_load_factor=1.0)
        compactor = self.compactor(settings)
        theirs_end = kafka(
            copy,
            chosen.start_offset,
            chosen.end_offset,
            self.clock.time_ms,
            RETENTION_MS,
            SEGMENT_BYTES,
            keys_max,
        )
        assert asyncio.run(compactor.clean(chosen))
        assert not compactor.uncleanable
        assert self.log.cleaned_offset == theirs_end
        self.rounds += 1
        ours = contents(Path(self.log.directory), self.log)
        theirs = contents(copy, self.log)
        assert [name for name, *_ in ours] == [name for name, *_ in theirs]
        for (base, batches, aborted), (_, kafka_batches, kafka_aborted) in zip(
            ours, theirs, strict=True
        ):
            assert batches == kafka_batches
            self.batches_compared += len(batches)
            assert aborted == kafka_aborted, base


async def no_checkpoint(log: PartitionLog) -> None:
    """The log is opened without checkpoints."""


def contents(directory: Path, log: PartitionLog) -> list[tuple[str, list[dict[str, Any]], Any]]:
    """By segment: its name, what each batch says, and its index of aborted transactions."""
    found = []
    for path in sorted(directory.glob("*.log")):
        batches = []
        data = path.read_bytes()
        for position, header in iterate_headers(data):
            assert check_crc(data, position, header)
            values = header._asdict()
            for name in ("batch_length", "crc", "base_timestamp"):
                del values[name]
            values["horizon"] = header.delete_horizon_ms
            values["records"] = decode_records(data, position)
            batches.append(values)
        aborted = list(read_aborted(log.log_directory.disk, str(path.with_suffix(".txnindex"))))
        found.append((path.stem, batches, aborted))
    return found


@pytest.mark.parametrize("seed", range(examples(3)))
def test_what_stays_is_what_stays_with_kafka(seed: int, kafka: Clean, tmp_path: Path) -> None:
    random = Random(seed)
    world = World(tmp_path, random)
    keys_max = random.choice((3, 9, 1000))
    for number in range(8):
        for _ in range(random.randrange(5, 40)):
            world.step()
            world.clock.advance(random.randrange(200))
        if random.random() < 0.7:
            world.log.roll()
        world.round(kafka, f"kafka-{number}", keys_max)
        if random.random() < 0.3:
            world.round(kafka, f"kafka-again-{number}", keys_max)
        world.clock.advance(random.choice((1000, RETENTION_MS // 2, 2 * RETENTION_MS)))
    assert world.rounds >= 4
    assert world.batches_compared > 100
    world.disk.close()


def test_kafkas_dump_finds_nothing_wrong(tmp_path: Path) -> None:
    world = World(tmp_path, Random(4))
    compactor = world.compactor(CompactionSettings())
    for _ in range(6):
        for _ in range(40):
            world.step()
        world.log.roll()
        world.log.flush_now()
        chosen = measure(world.log, world.clock.time_ms)
        assert chosen is not None
        assert asyncio.run(compactor.clean(chosen))
        world.clock.advance(RETENTION_MS)
    world.log.close()
    assert compactor.groups_swapped > 5
    directory = Path(world.log.directory)
    logs = sorted(directory.glob("*.log"))
    printed = dump("--deep-iteration", "--print-data-log", files=logs)
    batches = [line for line in printed.splitlines() if line.startswith("baseOffset: ")]
    assert len(batches) == sum(1 for path in logs for _ in iterate_headers(path.read_bytes()))
    assert all("isvalid: true" in batch for batch in batches)
    assert any("deleteHorizonMs: OptionalLong[" in batch for batch in batches)
    indexes = [*sorted(directory.glob("*.index")), *sorted(directory.glob("*.timeindex"))]
    printed = dump("--index-sanity-check", files=indexes)
    assert printed.count("passed sanity check") + printed.count("is empty") == len(indexes)
    printed = dump("--verify-index-only", files=indexes)
    for trouble in ("mismatch", "Found timestamp", "out of order", "misMatches", "Exception"):
        assert trouble not in printed
    world.disk.close()


def dump(*options: str, files: list[Path]) -> str:
    """What Kafka's DumpLogSegments prints."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    names = ",".join(map(str, files))
    done = subprocess.run(  # a fixed command
        java_with_kafka(tool, *options, "--files", names),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
