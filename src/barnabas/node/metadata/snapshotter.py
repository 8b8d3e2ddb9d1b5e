"""Snapshots of the metadata log: when one is due, and how it is written beside the node's work.

Source: Kafka's SnapshotGenerator and SnapshotEmitter (KIP-630, KIP-876).
"""

import asyncio
import logging

from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.metadata.loader import NO_TRANSACTION
from barnabas.node.metadata.publisher import ImagePublisher
from barnabas.node.metadata.records import encode_record
from barnabas.node.metadata.snapshot import image_records
from barnabas.node.raft.node import RaftNode
from barnabas.node.raft.snapshot_files import SnapshotId

telemetry = logging.getLogger(__name__)


class SnapshotSchedule:
    """Counts what was committed since the last snapshot.

    A snapshot is due when that reaches `bytes_max`, or when anything was committed and
    `interval_ms` passed since the last one; 0 switches the latter off. Source: Kafka's
    SnapshotGenerator.
    """

    __slots__ = ("_bytes", "_bytes_max", "_interval_ms", "_last_ms")

    def __init__(self, *, bytes_max: int, interval_ms: int, now_ms: int) -> None:
        self._bytes_max = bytes_max
        self._interval_ms = interval_ms
        self._bytes = 0
        self._last_ms = now_ms

    def committed(self, size_bytes: int) -> None:
        """Count committed records."""
        self._bytes += size_bytes

    def is_due(self, now_ms: int) -> bool:
        """Return whether a snapshot should be written now. Times are monotonic milliseconds."""
        if self._bytes >= self._bytes_max:
            return True
        return bool(
            self._bytes and self._interval_ms and now_ms - self._last_ms >= self._interval_ms
        )

    def started(self, now_ms: int) -> None:
        """A snapshot of everything counted so far is under way."""
        self._bytes = 0
        self._last_ms = now_ms


class Snapshotter:
    """Writes snapshots of the committed image, one at a time, once it is started."""

    def __init__(
        self,
        raft: RaftNode,
        publisher: ImagePublisher,
        clock: Clock,
        config: NodeConfig,
    ) -> None:
        self._raft = raft
        self._publisher = publisher
        self._clock = clock
        self._retention_bytes = config.get_int("metadata.max.retention.bytes")
        self._retention_ms = config.get_int("metadata.max.retention.ms")
        self._schedule = SnapshotSchedule(
            bytes_max=config.get_int("metadata.log.max.record.bytes.between.snapshots"),
            interval_ms=config.get_int("metadata.log.max.snapshot.interval.ms"),
            now_ms=clock.monotonic_ms(),
        )
        self._is_started = False
        self._task: asyncio.Task[None] | None = None

    def start(self, loaded_bytes: int) -> None:
        """The log is loaded, with so many bytes since its last snapshot: count from here on."""
        self._schedule.started(self._clock.monotonic_ms())
        self._schedule.committed(loaded_bytes)
        self._is_started = True

    def appended(self, size_bytes: int) -> None:
        """Count appended records, and begin a snapshot if one is due."""
        if not self._is_started:
            return
        self._schedule.committed(size_bytes)
        if self._task is None and self._schedule.is_due(self._clock.monotonic_ms()):
            self._schedule.started(self._clock.monotonic_ms())
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def stop(self) -> None:
        """Finish the snapshot under way."""
        if self._task is not None:
            await self._task

    async def _write(self) -> None:
        """Write the committed image. A full disk costs the snapshot, not the node."""
        image = self._publisher.image
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        try:
            # The records of an open transaction stand before the end and would be lost.
            if self._publisher.transaction_offset != NO_TRANSACTION:
                return
            if self._raft.snapshot_id is not None and snapshot_id <= self._raft.snapshot_id:
                return
            values = (encode_record(record) for record in image_records(image))
            size_bytes = await self._raft.write_snapshot(snapshot_id, values, image.timestamp_ms)
            telemetry.info("wrote metadata snapshot %s, %d bytes", snapshot_id, size_bytes)
            self._raft.clean(retention_bytes=self._retention_bytes, retention_ms=self._retention_ms)
        except (OSError, LogDirFailure) as error:
            telemetry.error("metadata snapshot %s failed: %s", snapshot_id, error)
        finally:
            self._task = None
