"""The logs of a node, over its log directories.

`load` opens them all, recovering what was not closed cleanly; the steps are called from time to
time by the node's timers; `shutdown` leaves everything so that the next start need not recover.
A directory whose disk fails goes offline with its logs, and the node lives on with the others.
Source: Kafka's LogManager; KIP-112, 113, 858.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random, SystemRandom

from barnabas.base.clock import Clock
from barnabas.base.config.properties import parse_properties
from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition, Uuid, uuid_from_text
from barnabas.node.log.checkpoints import (
    NO_BROKER_EPOCH,
    take_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
)
from barnabas.node.log.config import LogConfig
from barnabas.node.log.directory_offsets import (
    read_directory_offsets,
    save_cleaned,
    write_cleaned,
    write_directory_offsets,
)
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.future_logs import FutureLogs
from barnabas.node.log.loader import PRODUCER_ID_EXPIRATION_MS_DEFAULT, create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    HIGH_WATERMARK_FILE,
    META_PROPERTIES_FILE,
    STRAY_DIR_SUFFIX,
    parse_directory_name,
)
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.recovery import RecoveryReport
from barnabas.node.log.tail_cache import TOTAL_BYTES_MAX_DEFAULT, TailBudget
from barnabas.node.log.turns import Turns
from barnabas.protocol.well_known import CLUSTER_METADATA

COMPLETED_AT_ONCE = 64
PREFERRED_DIRS_MAX = 10_000
"""More are forgotten, the oldest first."""

telemetry = logging.getLogger(__name__)


class LogManager:
    """Finds, creates, deletes and looks after logs."""

    def __init__(
        self,
        disk: Disk,
        log_dirs: Sequence[str],
        clock: Clock,
        default_config: LogConfig,
        *,
        topic_config: Callable[[str], LogConfig] | None = None,
        on_directory_offline: Callable[[str], None] | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT,
        random: Random | None = None,
        open_files_max: int | None = None,
        tail_bytes_max: int = TOTAL_BYTES_MAX_DEFAULT,
    ) -> None:
        """`topic_config` gives the configuration of logs that `load` finds, by topic.

        `random` names what is to be deleted.
        """
        self.log_dirs = list(log_dirs)
        self.on_directory_offline = on_directory_offline
        self.cordoned_dirs: list[str] = []
        """Those of `log_dirs` that get no new logs, as long as there is another (KIP-1066)."""
        self.directory_ids: dict[str, Uuid] = {}
        """By log directory, as its meta.properties says."""
        self.previous_broker_epochs: dict[str, int] = {}
        """By log directory that was shut down cleanly, and is whole: the broker epoch at that time.

        Without one, the broker may have lost what its previous incarnation had (KIP-966).
        """
        self._default_config = default_config
        self._topic_config = topic_config
        self._disk = disk
        self._clock = clock
        self._random = random if random is not None else SystemRandom()
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._flushes: set[asyncio.Task[None]] = set()
        self._marks_written: dict[str, dict[TopicPartition, int]] = {}
        self.futures = FutureLogs(disk, self._random, self._logs)
        """Copies that are to take the place of logs, from another directory (KIP-113)."""
        self.preferred_dirs: dict[TopicPartition, str] = {}
        """Directories for logs that are not here yet, as AlterReplicaLogDirs said."""
        files = FileCache(disk, open_files_max)
        budget = TailBudget(tail_bytes_max)
        self.turns = Turns()
        """The turns for long work on batches, shared by all directories."""
        self._directories = {
            path: LogDirectory(
                path,
                disk,
                clock,
                files=files,
                tail_budget=budget,
                turns=self.turns,
                on_offline=self._went_offline,
            )
            for path in self.log_dirs
        }
        for directory in self._directories.values():
            directory.checkpoint = self._sync_checkpoints

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The log, if it is here (its directory may be offline)."""
        return self._logs.get(topic_partition)

    @property
    def offline_dirs(self) -> set[str]:
        """The directories whose disk has failed."""
        return {path for path, directory in self._directories.items() if directory.is_offline}

    def directory(self, path: str) -> LogDirectory:
        """One of `log_dirs`, for a log that the manager does not look after (the metadata's)."""
        return self._directories[path]

    def volume_bytes(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds a log directory; -1 if unknown."""
        try:
            return self._disk.total_bytes(path), self._disk.free_bytes(path)
        except OSError:
            return -1, -1

    def _went_offline(self, path: str) -> None:
        if self.on_directory_offline is not None:
            self.on_directory_offline(path)

    # Loading

    def load(self) -> list[RecoveryReport]:
        """Open every log of every directory but the metadata log; returns what was found.

        A directory that fails during this is offline afterwards.
        """
        reports: list[RecoveryReport] = []
        for directory in self._directories.values():
            try:
                self._load_directory(directory, reports)
            except OSError as error:
                directory.fail(error)
            except LogDirFailure as failure:
                telemetry.error("loading stopped: %s", failure)
        return reports

    def _load_directory(self, directory: LogDirectory, reports: list[RecoveryReport]) -> None:
        path = directory.path
        first_report = len(reports)
        self._disk.make_dirs(path)
        self._read_directory_id(path)
        broker_epoch = take_clean_shutdown(self._disk, path)
        is_clean = broker_epoch is not None
        if broker_epoch is not None:
            self.previous_broker_epochs[path] = broker_epoch
        offsets = read_directory_offsets(self._disk, path)
        names = [name for name in self._disk.list(path) if self._disk.is_dir(f"{path}/{name}")]
        if not is_clean and any(map(_is_log, names)):
            telemetry.warning("%s was not shut down cleanly: recovering its logs", path)
        for name in names:
            topic_partition = parse_directory_name(name)
            if topic_partition is None or topic_partition.topic == CLUSTER_METADATA:
                continue
            if name.endswith(DELETE_DIR_SUFFIX):
                directory.delete_later(f"{path}/{name}", 0)
                continue
            if name.endswith(STRAY_DIR_SUFFIX):
                telemetry.warning("ignoring %s/%s, a stray log", path, name)
                continue
            is_future = name.endswith(FUTURE_DIR_SUFFIX)
            other = (self.futures if is_future else self._logs).get(topic_partition)
            if other is not None:
                telemetry.error(
                    "%s is in %s and in %s/%s: ignoring the latter",
                    topic_partition,
                    other.directory,
                    path,
                    name,
                )
            else:
                config = self._config_of(topic_partition.topic)
                if is_future or topic_partition in offsets.cleaned:
                    # It has been compacted, even if its topic's configuration is not known yet:
                    # gaps are intended.
                    policy = config.cleanup_policy | {"compact"}
                    config = replace(config, cleanup_policy=policy)
                log, report = open_log(
                    directory,
                    topic_partition,
                    config,
                    is_clean=is_clean,
                    recovery_point=offsets.recovery_points.get(topic_partition, 0),
                    log_start_offset=offsets.start_offsets.get(topic_partition, 0),
                    high_watermark=offsets.high_watermarks.get(topic_partition, 0),
                    producer_id_expiration_ms=self._producer_id_expiration_ms,
                    name=name,
                )
                log.cleaned_offset = offsets.cleaned.get(topic_partition)
                if is_future:
                    self.futures.add(log)
                else:
                    self._logs[topic_partition] = log
                reports.append(report)
        known = {log.topic_partition for log in self.all_logs()}
        lost = [tp for tp in offsets.recovery_points if is_clean and tp not in known]
        if lost:
            telemetry.error("%s: the logs of %s are gone", path, ", ".join(map(str, lost)))
        if lost or any(report.flushed_lost for report in reports[first_report:]):
            # It ended cleanly and was damaged since: it must not be taken for one in sync.
            self.previous_broker_epochs.pop(path, None)
        directory.is_checkpoint_stale = any(named not in known for named in offsets.named())

    def _config_of(self, topic: str) -> LogConfig:
        return self._default_config if self._topic_config is None else self._topic_config(topic)

    def _read_directory_id(self, path: str) -> None:
        try:
            text = self._disk.read(f"{path}/{META_PROPERTIES_FILE}").decode("latin-1")
        except FileNotFoundError:
            return
        directory_id = parse_properties(text).get("directory.id")
        if directory_id is not None:
            try:
                self.directory_ids[path] = uuid_from_text(directory_id)
            except ValueError as error:
                telemetry.error("%s/%s: %s", path, META_PROPERTIES_FILE, error)

    # Creating and deleting

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        directory_id: Uuid | None = None,
        is_new: bool = True,
    ) -> PartitionLog:
        """A new log in the directory of that id, else in the one that has the fewest.

        Unless the partition `is_new` its log may lie in a directory that is offline, and an empty
        one must not take its place. Raises LogDirFailure then, if the directory fails, and if
        none is left.
        """
        assert topic_partition not in self._logs, topic_partition
        if not is_new and self.offline_dirs:
            raise LogDirFailure(min(self.offline_dirs))
        directory = self._choose(directory_id, self.preferred_dirs.pop(topic_partition, None))
        if directory.is_checkpoint_stale:
            try:
                directory.renew_checkpoint()
            except OSError as error:
                raise directory.fail(error) from error
        log = create_log(directory, topic_partition, topic_id, config)
        self._logs[topic_partition] = log
        return log

    def _choose(self, directory_id: Uuid | None, preferred: str | None) -> LogDirectory:
        counts = {
            path: 0 for path, directory in self._directories.items() if not directory.is_offline
        }
        if not counts:
            raise LogDirFailure(",".join(self.log_dirs))
        if preferred in counts:
            return self._directories[preferred]
        for path in counts:
            if directory_id is not None and self.directory_ids.get(path) == directory_id:
                return self._directories[path]
        if len(counts) > 1:
            # A replica that was placed here just before all were cordoned has to lie somewhere.
            open_paths = [path for path in counts if path not in self.cordoned_dirs]
            counts = dict.fromkeys(open_paths or [next(iter(counts))], 0)
            for log in self._logs.values():
                if log.log_dir in counts:
                    counts[log.log_dir] += 1
        return self._directories[min(counts, key=counts.__getitem__)]

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log away: its directory is renamed now and removed later.

        Does nothing if it does not exist. Raises LogDirFailure.
        """
        log = self._logs.pop(topic_partition, None)
        if log is not None:
            path = self._take_away(log, DELETE_DIR_SUFFIX)
            log.log_directory.delete_later(path, log.config.file_delete_delay_ms)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Take a log away, but leave its records, as Kafka does; an empty one is deleted.

        Raises LogDirFailure.
        """
        log = self._logs[topic_partition]
        if log.log_start_offset >= log.log_end_offset:
            self.delete(topic_partition)
            return
        del self._logs[topic_partition]
        path = self._take_away(log, STRAY_DIR_SUFFIX)
        telemetry.warning("renamed %s to %s", log.directory, path)

    def _take_away(self, log: PartitionLog, suffix: str) -> str:
        directory = log.log_directory
        directory.is_checkpoint_stale = True
        log.close(clean=False)
        directory.check_online()
        unique = f"{self._random.getrandbits(128):032x}"
        return directory.mark(log.directory, log.topic_partition, unique, suffix)

    def prefer(self, topic_partition: TopicPartition, path: str) -> None:
        """Create a log that is not here yet in the directory `path` when it comes."""
        self.preferred_dirs[topic_partition] = path
        if len(self.preferred_dirs) > PREFERRED_DIRS_MAX:
            del self.preferred_dirs[next(iter(self.preferred_dirs))]

    # Future logs

    def all_logs(self) -> list[PartitionLog]:
        """The logs, and the future ones."""
        return [*self._logs.values(), *self.futures]

    # Steps

    def retention_step(self, now_ms: int) -> int:
        """Apply retention to every log, and forget silent producers; returns segments dropped."""
        dropped = 0
        for log in self.all_logs():
            if log.is_offline:
                continue
            try:
                dropped += log.apply_retention(now_ms)
            except LogDirFailure as failure:
                telemetry.error("%s: retention stopped: %s", log.topic_partition, failure)
            log.producers.expire(now_ms, self._producer_id_expiration_ms)
        return dropped

    def flush_step(self, now_ms: int) -> int:
        """Start flushes, beside the event loop, of logs that rolled or reached `flush.ms`.

        Returns how many were started.
        """
        started = 0
        for log in self.all_logs():
            if not log.is_offline and log.flusher.is_due(now_ms):
                flush = asyncio.ensure_future(self._flush(log))
                self._flushes.add(flush)
                flush.add_done_callback(self._flushes.discard)
                started += 1
        return started

    async def _flush(self, log: PartitionLog) -> None:
        try:
            await log.flush()
        except LogDirFailure as failure:
            telemetry.error("%s was not flushed: %s", log.topic_partition, failure)

    def checkpoint_step(self) -> None:
        """Write the offset checkpoints of every directory."""
        self._checkpoint_all(sync=False)

    def _checkpoint_all(self, *, sync: bool) -> None:
        for directory in self._directories.values():
            if not directory.is_offline:
                try:
                    self._write_checkpoints(directory, sync=sync)
                except OSError as error:
                    telemetry.error("%s", directory.fail(error))

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every directory: where replicas begin after a restart."""
        marks: dict[LogDirectory, dict[TopicPartition, int]] = {}
        for log in self.all_logs():
            marks.setdefault(log.log_directory, {})[log.topic_partition] = log.high_watermark
        for directory, offsets in marks.items():
            if not directory.is_offline and self._marks_written.get(directory.path) != offsets:
                path = f"{directory.path}/{HIGH_WATERMARK_FILE}"
                try:
                    write_offsets(self._disk, path, offsets, sync=False)
                except OSError as error:
                    telemetry.error("%s", directory.fail(error))
                else:
                    self._marks_written[directory.path] = offsets

    def _sync_checkpoints(self, directory: LogDirectory) -> None:
        self._write_checkpoints(directory, sync=True)

    def _write_checkpoints(self, directory: LogDirectory, *, sync: bool) -> None:
        self._marks_written.pop(directory.path, None)
        logs = [log for log in self.all_logs() if log.log_directory is directory]
        write_directory_offsets(self._disk, directory.path, logs, sync=sync)
        if sync:
            write_cleaned(self._disk, directory.path, logs)

    async def save_cleaned(self, log: PartitionLog) -> None:
        """Put on the medium how far the logs in the directory of `log` have been compacted.

        Raises OSError.
        """
        directory = log.log_directory
        await save_cleaned(
            directory,
            lambda: [other for other in self.all_logs() if other.log_directory is directory],
        )

    def delete_step(self, now_ms: int) -> int:
        """Remove what `file.delete.delay.ms` has passed for; returns how many went."""
        removed = 0
        for directory in self._directories.values():
            try:
                removed += directory.delete_step(now_ms)
            except LogDirFailure as failure:
                telemetry.error("removing stopped: %s", failure)
        return removed

    async def complete(self) -> None:
        """Force what the logs hold to the medium, many at a time, before `shutdown`.

        That closes them one after the other, and has nothing left to wait for then.
        """
        logs = self.all_logs()
        for first in range(0, len(logs), COMPLETED_AT_ONCE):
            await asyncio.gather(*map(self._complete, logs[first : first + COMPLETED_AT_ONCE]))

    async def _complete(self, log: PartitionLog) -> None:
        try:
            if not log.is_offline:
                log.complete()
                if not log.flusher.is_blank:
                    await log.flush()
        except LogDirFailure as failure:
            telemetry.error("%s was not flushed: %s", log.topic_partition, failure)

    def shutdown(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Flush and close every log, and mark the directories as shut down cleanly."""
        for log in self.all_logs():
            try:
                log.close(clean=True)
            except LogDirFailure as failure:
                telemetry.error("%s was not closed: %s", log.topic_partition, failure)
        self._checkpoint_all(sync=True)
        for path, directory in self._directories.items():
            if not directory.is_offline:
                try:
                    write_clean_shutdown(self._disk, path, broker_epoch)
                except OSError as error:
                    telemetry.error("%s", directory.fail(error))
        self._logs.clear()

    def abandon(self) -> None:
        """Let go of every file and mark nothing as clean: not all that is there may be loaded.

        The next start recovers.
        """
        for log in self.all_logs():
            log.close(clean=False)
        self._logs.clear()


def _is_log(directory_name: str) -> bool:
    """Return whether a directory is a log that is loaded here; the metadata's log is not."""
    topic_partition = parse_directory_name(directory_name)
    return topic_partition is not None and topic_partition.topic != CLUSTER_METADATA
