"""An internal topic's partitions, as the leader of each has them (a `PartitionWriter`)."""

from collections.abc import Callable, Iterator

from barnabas.base.clock import Clock
from barnabas.base.disk import Buffer, FileRange
from barnabas.node.coordinator.partition_writer import CoordinatorWriteError
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import AppendOrigin
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode

READ_SIZE_BYTES = 256 << 10


class InternalTopic:
    """One internal topic, by name."""

    __slots__ = ("_clock", "_replicas", "name")

    def __init__(self, name: str, replicas: ReplicaManager, clock: Clock) -> None:
        self.name = name
        self._replicas = replicas
        self._clock = clock

    def append(self, partition: int, batch: bytearray, terms: AppendTerms | None = None) -> int:
        """Append one batch; returns the offset after it. Raises CoordinatorWriteError."""
        leader = self._leader(partition)
        if leader.is_under_min_isr:
            raise CoordinatorWriteError(ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            result = leader.append(batch, self._clock.now_ms(), AppendOrigin.COORDINATOR, terms)
        except LogDirFailure as failure:
            raise CoordinatorWriteError(ErrorCode.KAFKA_STORAGE_ERROR) from failure
        if result.error:
            raise CoordinatorWriteError(result.error)
        return result.last_offset + 1

    def append_plain(
        self, partition: int, batch: bytearray, size_bytes_bound: int
    ) -> tuple[int, bool]:
        """As `append`: (the offset after the batch, whether it is committed)."""
        leader = self._leader(partition)
        log = leader.log
        if size_bytes_bound > log.config.max_message_bytes:
            raise CoordinatorWriteError(ErrorCode.RECORD_LIST_TOO_LARGE)
        try:
            is_committed = leader.append_own_alone(batch)
        except LogDirFailure as failure:
            raise CoordinatorWriteError(ErrorCode.KAFKA_STORAGE_ERROR) from failure
        if is_committed:
            return log.log_end_offset, True
        end_offset = self.append(partition, batch)
        return end_offset, leader.high_watermark >= end_offset

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """Return whether everything before `end_offset` is committed, for all that is known now."""
        leader = self._replicas.find(self.name, partition)
        return isinstance(leader, Partition) and leader.high_watermark >= end_offset

    def when_committed(
        self, partition: int, end_offset: int, callback: Callable[[ErrorCode], None]
    ) -> None:
        """Call back once everything before `end_offset` is committed, or cannot be known."""
        try:
            leader = self._leader(partition)
        except CoordinatorWriteError as failure:
            callback(failure.error)
            return
        leader.when_committed(end_offset, callback)

    def read_all(self, partition: int) -> Iterator[Buffer]:
        """The whole partition in runs of batches. Raises CoordinatorWriteError."""
        leader = self._leader(partition)
        offset = leader.log.log_start_offset
        while offset < leader.log.log_end_offset:
            log = leader.log  # another one, if the replica moves to another directory
            try:
                result = log.read_local(offset, READ_SIZE_BYTES, max_offset=log.log_end_offset)
            except LogDirFailure as failure:
                raise CoordinatorWriteError(ErrorCode.KAFKA_STORAGE_ERROR) from failure
            if result.error:
                raise CoordinatorWriteError(result.error)
            if not result.size_bytes:
                return
            for part in result.parts:
                yield part.read() if isinstance(part, FileRange) else part
            offset = result.next_offset

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete what lies before a committed offset. Raises CoordinatorWriteError."""
        leader = self._leader(partition)
        try:
            leader.raise_log_start(min(offset, leader.high_watermark))
        except LogDirFailure as failure:
            raise CoordinatorWriteError(ErrorCode.KAFKA_STORAGE_ERROR) from failure

    def batch_size_bytes_max(self, partition: int) -> int:
        """The largest batch that the partition takes. Raises CoordinatorWriteError."""
        return self._leader(partition).log.config.max_message_bytes

    def _leader(self, partition: int) -> Partition:
        leader = self._replicas.find(self.name, partition)
        if not isinstance(leader, Partition):
            raise CoordinatorWriteError(leader)
        if not leader.is_leader:
            raise CoordinatorWriteError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return leader
