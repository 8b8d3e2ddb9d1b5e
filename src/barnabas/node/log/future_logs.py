"""Future logs: copies that are to take the place of a log in another directory of the node.

A future log lies in `<topic>-<partition>.<unique id>-future` of its directory, and is filled from
the log that it is to replace (`copying.py`). When it holds all of that, the two change places:

1. everything of the future log, and the checkpoints of its directory, which name it by its
   partition already, are forced to the medium;
2. the log's directory is renamed to `-delete`, and that is forced to the medium;
3. the future log's directory is renamed to `<topic>-<partition>`, and that as well.

Between 2 and 3 no directory has the log's own name. A node that starts then finds a complete future
log without a log and adopts it (`adopt`). Kafka renames in the other order, and a
broker that ends in between finds two logs and does not start.
Source: Kafka's LogManager.replaceCurrentWithFutureLog, recoverAbandonedFutureLogs; KIP-113.
"""

import logging
from collections.abc import Iterator
from random import Random

from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.leader_epochs import LeaderEpochs
from barnabas.node.log.loader import create_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.names import (
    DELETE_DIR_SUFFIX,
    directory_name,
    future_directory_name,
    marked_directory_name,
)
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.segment import Segment

telemetry = logging.getLogger(__name__)


class FutureLogs:
    """The future logs of a node, by partition."""

    def __init__(
        self, disk: Disk, random: Random, currents: dict[TopicPartition, PartitionLog]
    ) -> None:
        """`currents` are the logs of the node, of which some are replaced."""
        self._disk = disk
        self._random = random
        self._currents = currents
        self._logs: dict[TopicPartition, PartitionLog] = {}

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The future log of a partition, if there is one."""
        return self._logs.get(topic_partition)

    def add(self, log: PartitionLog) -> None:
        """Take up a future log that was there when the node started."""
        log.is_moving = True
        self._logs[log.topic_partition] = log

    def create(self, current: PartitionLog, directory: LogDirectory) -> PartitionLog:
        """A new, empty future log of `current`. Raises LogDirFailure."""
        assert current.topic_partition not in self._logs, current.topic_partition
        name = future_directory_name(current.topic_partition, self._unique())
        # Offsets of a log that was here before must not be taken for those of this one.
        self._renew_checkpoint(directory)
        log = create_log(
            directory, current.topic_partition, current.topic_id, current.config, name=name
        )
        log.cleaned_offset = current.cleaned_offset
        self.add(log)
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Give a future log up: it is renamed now and removed later.

        Does nothing if it does not exist. Raises LogDirFailure.
        """
        log = self._logs.pop(topic_partition, None)
        if log is None:
            return
        directory = log.log_directory
        directory.is_checkpoint_stale = True
        log.close(clean=False)
        directory.check_online()
        self._mark_deleted(log)

    def forget(self, topic_partition: TopicPartition) -> None:
        """Let go of a future log and leave its files: its disk failed, or that of its log."""
        log = self._logs.pop(topic_partition, None)
        if log is not None:
            log.close(clean=False)

    def prepare(self, current: PartitionLog, future: PartitionLog) -> None:
        """Write to the checkpoints what must be known once the future log is the log.

        Raises LogDirFailure.
        """
        if future.cleaned_offset is None and current.cleaned_offset is not None:
            # A round that was under way when the copy began has left gaps since.
            future.cleaned_offset = future.log_start_offset
        self._renew_checkpoint(future.log_directory)

    def replace(self, topic_partition: TopicPartition) -> PartitionLog:
        """Let a future log that holds all of the log take its place; see the module.

        Returns it. The log is closed then; on a failure it is as it was, or its directory has
        failed. Raises LogDirFailure.
        """
        current, future = self._currents[topic_partition], self._logs[topic_partition]
        assert future.log_end_offset == current.log_end_offset
        current.check_online()
        epochs = LeaderEpochs(current.epochs.entries)
        epochs.truncate_from_start(future.log_start_offset)
        epochs.is_dirty = True
        future.epochs = epochs
        if future.cleaned_offset is None and current.cleaned_offset is not None:
            self.prepare(current, future)
        # The producers' state holds more than the batches: all batches of some producers are gone.
        producers, snapshot_offset = current.producers, current.producers.snapshot_offset
        producers.snapshot_offset = future.producers.snapshot_offset
        future.producers = producers
        try:
            self._change_places(current, future)
        except LogDirFailure:
            producers.snapshot_offset = snapshot_offset
            raise
        future.high_watermark = max(current.high_watermark, future.log_start_offset)
        future.is_moving = False
        del self._logs[topic_partition]
        current.truncation_count += 1  # its compaction must stop
        current.flusher.settle()
        current.close(clean=False)
        current.log_directory.is_checkpoint_stale = True
        self._currents[topic_partition] = future
        return future

    def _change_places(self, current: PartitionLog, future: PartitionLog) -> None:
        source = current.log_directory
        future.complete()
        future.flush_now()
        marked = self._marked_path(current)
        try:
            self._disk.rename(current.directory, marked)
            self._disk.sync_dir(source.path)
        except OSError as error:
            raise source.fail(error) from error
        try:
            self._rename(future)
        except LogDirFailure:
            self._put_back(marked, current)
            raise
        source.delete_later(marked, current.config.file_delete_delay_ms)

    def adopt(self, topic_partition: TopicPartition) -> PartitionLog:
        """Make a future log whose log is gone the log. Raises LogDirFailure."""
        future = self._logs[topic_partition]
        telemetry.warning(
            "%s: %s replaces the log, which is missing", topic_partition, future.directory
        )
        future.complete()
        future.flush_now()
        self._renew_checkpoint(future.log_directory)
        self._rename(future)
        future.is_moving = False
        self._currents[topic_partition] = self._logs.pop(topic_partition)
        return future

    def _rename(self, future: PartitionLog) -> None:
        """Give a future log, all of which is on the medium, indexes too, the name of the log."""
        directory = future.log_directory
        path = f"{directory.path}/{directory_name(future.topic_partition)}"
        before = future.directory
        for segment in future.segments:
            segment.files.release()
        try:
            self._disk.rename(before, path)
            self._disk.sync_dir(directory.path)
        except OSError as error:
            raise directory.fail(error) from error
        directory.renamed(before, path)
        future.directory = path
        future.read_hints.clear()
        future.segments = [
            Segment(
                directory.files,
                path,
                segment.base_offset,
                size_bytes=segment.size_bytes,
                created_ms=segment.created_ms,
            )
            for segment in future.segments
        ]
        future.active = future.segments[-1]

    def _put_back(self, marked: str, current: PartitionLog) -> None:
        try:
            self._disk.rename(marked, current.directory)
        except OSError as error:
            telemetry.error("%s", current.fail(error))

    def _mark_deleted(self, log: PartitionLog) -> None:
        directory = log.log_directory
        partition = log.topic_partition
        marked = directory.mark(log.directory, partition, self._unique(), DELETE_DIR_SUFFIX)
        directory.renamed(log.directory, marked)
        directory.delete_later(marked, log.config.file_delete_delay_ms)

    def _marked_path(self, log: PartitionLog) -> str:
        name = marked_directory_name(log.topic_partition, self._unique(), DELETE_DIR_SUFFIX)
        return f"{log.log_directory.path}/{name}"

    def _unique(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def _renew_checkpoint(self, directory: LogDirectory) -> None:
        try:
            directory.renew_checkpoint()
        except OSError as error:
            raise directory.fail(error) from error
