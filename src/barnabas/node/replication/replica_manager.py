"""The partitions that this node hosts, kept in step with the metadata image.

Each change of the image says what this node is to each partition: its leader, a follower, or
nothing (any more). Periodic work runs here for all partitions at once:
followers that lag are looked for every half `replica.lag.time.max.ms`, partitions that lack
in-sync replicas every second, and high watermarks go to the checkpoint.
Source: Kafka's ReplicaManager.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from random import Random
from typing import Any

from barnabas.base.clock import Clock, Timer
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import (
    ConfigResourceType,
    ConfigsImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.directory_moves import ReplicaMoves
from barnabas.node.replication.fetcher_manager import FetcherManager
from barnabas.node.replication.isr_proposals import IsrProposals
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.openings import Openings, PartitionKey
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.read_notifier import ReadNotifier
from barnabas.node.replication.throttle import ReplicationQuota
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import CLUSTER_METADATA

LOOK_AGAIN_MS = 1000
GARBLED_BITS_MAX = 8
"""One byte of the text that is garbled in partition.metadata changes six bits of the id at most."""

telemetry = logging.getLogger(__name__)


class ReplicaManager:
    """Finds, creates and removes partitions, and gives them their roles."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        topic_log_config: Callable[[MetadataImage, str], LogConfig],
        *,
        clock: Clock,
        random: Random,
        config: NodeConfig,
        network: Network,
        ask_controller: Callable[[Any], Awaitable[Any]],
        broker_epoch: Callable[[], int],
    ) -> None:
        self.node_id = node_id
        self.logs = logs
        self._log_configs = SharedLogConfigs(topic_log_config)
        self._clock = clock
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[Uuid, dict[int, Partition]] = {}
        self._failed: set[tuple[str | Uuid, int]] = set()
        """Partitions without a log because their disk failed, by topic and by topic id."""
        self._image = MetadataImage()
        self._openings = Openings(clock, self._open_waiting, self._turn_ended)
        self.on_opened: Callable[[Sequence[Partition]], None] | None = None
        """Told which partitions came to be after the image that places them was applied."""
        self._timers: dict[str, Timer] = {}
        self.waking = ReadNotifier(clock)
        self._isr_proposals = IsrProposals(node_id, clock, ask_controller, broker_epoch)
        self.fetchers = FetcherManager(node_id, config, clock, random, network, broker_epoch)
        self.moves = ReplicaMoves(
            logs,
            clock,
            ReplicationQuota(
                clock,
                config.get_int("alter.log.dirs.replication.quota.window.num"),
                config.get_int("alter.log.dirs.replication.quota.window.size.seconds") * 1000,
            ),
        )
        self.context = ReplicaContext(
            node_id=node_id,
            clock=clock,
            lag_max_ms=config.get_int("replica.lag.time.max.ms"),
            broker_epoch=broker_epoch,
            propose_isr=self._isr_proposals.propose,
        )
        self._checkpoint_interval_ms = config.get_int(
            "replica.high.watermark.checkpoint.interval.ms"
        )

    # -- looking up

    def find(self, topic: str, partition: int) -> Partition | ErrorCode:
        """The partition, or the reason why this node has none."""
        partitions = self._by_name.get(topic)
        replica = partitions.get(partition) if partitions is not None else None
        if replica is None:
            if (topic, partition) in self._failed:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if self._image.topics.partition(topic, partition) is not None:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if replica.log.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return replica

    def find_by_id(self, topic_id: Uuid, partition: int) -> Partition | ErrorCode:
        """As `find`, by topic id (KIP-516)."""
        partitions = self._by_id.get(topic_id)
        replica = partitions.get(partition) if partitions is not None else None
        if replica is None:
            if (topic_id, partition) in self._failed:
                return ErrorCode.KAFKA_STORAGE_ERROR
            topic = self._image.topics.by_id.get(topic_id)
            if topic is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            if partition in topic.partitions:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if replica.log.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return replica

    @property
    def failed_count(self) -> int:
        """Partitions placed here that have no log because their disk failed."""
        return len(self._failed) // 2

    def __iter__(self) -> Iterator[Partition]:
        for partitions in list(self._by_name.values()):
            yield from list(partitions.values())

    # -- following the image

    def load(self, image: MetadataImage) -> None:
        """Take over the whole image at start-up; logs of unknown topics are set aside.

        What has a log is there when this returns; `opened` waits for the rest.
        """
        self._image_is(image)
        for topic in image.topics.by_name.values():
            for index, placed in topic.partitions.items():
                self._place(topic, index, placed, image, is_new=False)
            self._throttle(topic.name, image)
        for log in list(self.logs):
            if log.topic_partition.topic == CLUSTER_METADATA:
                continue
            known = self._by_name.get(log.topic_partition.topic, {})
            if log.topic_partition.partition not in known:
                telemetry.warning(
                    "%s: the cluster's metadata does not place it here", log.topic_partition
                )
                self._guard(log.topic_partition, self.logs.set_aside)
        for future in self.logs.futures:
            topic_id, index = future.topic_id, future.topic_partition.partition
            if not (self.is_waiting(topic_id, index) or index in self._by_id.get(topic_id, {})):
                telemetry.warning("removing %s: its replica is not here", future.directory)
                self._guard(future.topic_partition, self.logs.futures.delete)

    def is_waiting(self, topic_id: Uuid, index: int) -> bool:
        """Return whether a partition is placed here and not opened yet."""
        return (topic_id, index) in self._openings

    @property
    def has_waiting(self) -> bool:
        """True if any partition is."""
        return bool(len(self._openings))

    async def opened(self) -> None:
        """Return once every partition is there that was placed here."""
        await self._openings.finished()

    def apply(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Follow one change of the image; logs that it takes are made in turns (`openings`)."""
        self._image_is(image)
        for deleted in delta.topics_deleted.values():
            self._remove_topic(deleted)
        for topic_id, changes in delta.topics.items():
            topic = image.topics.by_id.get(topic_id)
            if topic is None:
                continue
            for index in changes.changed:
                before = changes.base.get(index)
                is_new = before is None or self.node_id not in before.replicas
                self._place(topic, index, topic.partitions[index], image, is_new=is_new)
            if changes.created:
                self._throttle(topic.name, image)
        for kind, name in delta.configs:
            if kind == ConfigResourceType.TOPIC:
                self._configure(name, image)
        if delta.brokers:
            self.fetchers.brokers_changed(delta.brokers)
            self._look_again()

    def _image_is(self, image: MetadataImage) -> None:
        self._image = image
        self.context.brokers = image.brokers
        self.fetchers.brokers = image.brokers

    def configure_logs(self, _config: NodeConfig) -> None:
        """A default of topics has changed: each topic's configuration is rebuilt."""
        for topic in self._by_name:
            self._configure(topic, self._image)

    def _configure(self, topic: str, image: MetadataImage) -> None:
        """Give a topic's logs the configuration that holds now."""
        partitions = self._by_name.get(topic)
        if partitions:
            config = self._log_configs.of(image, topic)
            for partition in partitions.values():
                partition.log.config = config
        self._throttle(topic, image)

    def _throttle(self, topic: str, image: MetadataImage) -> None:
        values = image.configs.for_resource(ConfigResourceType.TOPIC, topic)
        self.fetchers.throttle(topic, values)

    def _place(
        self,
        topic: TopicImage,
        index: int,
        placed: PartitionImage,
        image: MetadataImage,
        *,
        is_new: bool,
    ) -> None:
        """Give one partition the role that the image says."""
        partition = self._by_id.get(topic.id, {}).get(index)
        if self.node_id not in placed.replicas:
            if partition is not None:
                telemetry.info("%s leaves this node", partition.topic_partition)
                self._remove(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._openings.forget((topic.id, index))
            self._failed -= {(topic.name, index), (topic.id, index)}
            return
        topic_partition = TopicPartition(topic.name, index)
        if partition is None:
            if not self._has_log(topic_partition, topic.id) and not self._openings.take_turn():
                is_led = placed.leader == self.node_id
                self._openings.wait((topic.id, index), is_new=is_new, is_led=is_led)
                return
            config = self._log_configs.of(image, topic.name)
            assigned = placed.directory_of(self.node_id)
            partition = self._open(topic_partition, topic.id, config, assigned, is_new=is_new)
            if partition is None:
                return
        if partition.log.is_offline:
            return
        try:
            if placed.leader == self.node_id:
                self.fetchers.stop(partition)
                if partition.become_leader(placed):
                    self.waking.expect_followers(self.node_id, placed)
            elif partition.become_follower(placed):
                self.fetchers.follow(partition)
        except LogDirFailure as failure:
            telemetry.error("%s: %s", topic_partition, failure)

    def is_expected(self, replica: int) -> bool:
        """Return whether a follower may soon have more to ask for."""
        return self.waking.is_expected(replica)

    def _has_log(self, topic_partition: TopicPartition, topic_id: Uuid) -> bool:
        log = self.logs.get(topic_partition)
        return log is not None and is_of_topic(log, topic_id)

    def _open_waiting(self, key: PartitionKey, is_new: bool) -> None:
        """Open a partition whose turn has come, in the role that it has by now."""
        topic_id, index = key
        topic = self._image.topics.by_id.get(topic_id)
        placed = None if topic is None else topic.partitions.get(index)
        if topic is not None and placed is not None:
            self._place(topic, index, placed, self._image, is_new=is_new)

    def _turn_ended(self, keys: list[PartitionKey]) -> None:
        replicas = [self._by_id.get(topic_id, {}).get(index) for topic_id, index in keys]
        partitions = [partition for partition in replicas if partition is not None]
        if self.on_opened is not None and partitions:
            self.on_opened(partitions)

    def _open(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        assigned: Uuid | None,
        *,
        is_new: bool,
    ) -> Partition | None:
        log = self.logs.get(topic_partition)
        if log is not None and log.topic_id != topic_id and is_of_topic(log, topic_id):
            # Its partition.metadata was damaged; the records are this topic's.
            try:
                if not log.is_offline:
                    log.assign_topic_id(topic_id)
            except LogDirFailure as failure:
                telemetry.error("%s: %s", topic_partition, failure)
        if log is not None and not is_of_topic(log, topic_id):
            telemetry.warning(
                "replacing %s: it belongs to a topic that was deleted", topic_partition
            )
            self._guard(topic_partition, self.logs.set_aside)
            log = None
        if log is None:
            try:
                if self._is_abandoned(topic_partition, topic_id, assigned):
                    log = self.logs.futures.adopt(topic_partition)
                    log.config = config
                    log.assign_topic_id(topic_id)
                else:
                    log = self.logs.create(topic_partition, topic_id, config, is_new=is_new)
            except LogDirFailure as failure:
                telemetry.error("%s cannot be created: %s", topic_partition, failure)
                self._failed |= {topic_partition, (topic_id, topic_partition.partition)}
                return None
        else:
            log.config = config
        partition = Partition(topic_partition, topic_id, log, self.context, self.waking)
        self._by_name.setdefault(topic_partition.topic, {})[topic_partition.partition] = partition
        self._by_id.setdefault(topic_id, {})[topic_partition.partition] = partition
        if len(self.logs.futures):
            self.moves.resume(partition)
        return partition

    def _is_abandoned(
        self, topic_partition: TopicPartition, topic_id: Uuid, assigned: Uuid | None
    ) -> bool:
        """Whether there is a future log of a log that is gone: the node ended as they changed.

        It may also be in a directory that is offline; the controller knows if it is not.
        """
        future = self.logs.futures.get(topic_partition)
        return (
            future is not None
            and is_of_topic(future, topic_id)
            and (
                not self.logs.offline_dirs
                or self.logs.directory_ids.get(future.log_dir) == assigned
            )
        )

    def _remove_topic(self, topic: TopicImage) -> None:
        for partition in list(self._by_id.get(topic.id, {}).values()):
            self._remove(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for index in topic.partitions:
            self._openings.forget((topic.id, index))
            self._failed -= {(topic.name, index), (topic.id, index)}
        if topic.name not in self._image.topics.by_name:
            self.fetchers.throttle(topic.name, {})

    def _remove(self, partition: Partition, error: ErrorCode) -> None:
        """Take a partition and its log away from this node."""
        topic, index = partition.topic_partition
        self.fetchers.stop(partition)
        by_id = self._by_id[partition.topic_id]
        del by_id[index]
        if not by_id:
            del self._by_id[partition.topic_id]
        by_name = self._by_name.get(topic, {})
        if by_name.get(index) is partition:
            del by_name[index]
            if not by_name:
                del self._by_name[topic]
                self.context.traffic.forget(topic)
        partition.leave(error)
        if len(self.moves):
            self._guard(
                partition.topic_partition, lambda _: self.moves.cancel(partition, is_leaving=True)
            )
        self._guard(partition.topic_partition, self.logs.delete)

    def _guard(
        self, topic_partition: TopicPartition, action: Callable[[TopicPartition], None]
    ) -> None:
        try:
            action(topic_partition)
        except LogDirFailure as failure:
            telemetry.error("%s: %s", topic_partition, failure)

    # -- from time to time

    def start(self) -> None:
        """Begin to fetch, to look for followers that lag, and to write checkpoints."""
        self.fetchers.start()
        self._every("lag", max(1, self.context.lag_max_ms // 2), self._shrink)
        self._every("look again", LOOK_AGAIN_MS, self._look_again)
        self._every("checkpoint", self._checkpoint_interval_ms, self._checkpoint)

    def _every(self, name: str, interval_ms: int, action: Callable[[], None]) -> None:
        def run() -> None:
            self._timers[name] = self._clock.call_later(interval_ms, run)
            try:
                action()
            except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
                telemetry.exception("%s failed", name)

        self._timers[name] = self._clock.call_later(interval_ms, run)

    def _shrink(self) -> None:
        """Propose to drop followers that lag; every partition is looked at."""
        now_ms = self._clock.monotonic_ms()
        for partition in self:
            leading = partition.leading
            if leading is not None:
                leading.shrink(now_ms)
                partition.tell_log_start()

    def _look_again(self) -> None:
        """Let followers in that could not join when they last fetched; commit without others."""
        now_ms = self._clock.monotonic_ms()
        for leading in list(self.context.incomplete):
            if leading in self.context.incomplete:  # else it has resigned
                leading.look_again(now_ms)

    def _checkpoint(self) -> None:
        self.logs.checkpoint_high_watermarks()

    def directory_failed(self, directory: str) -> None:
        """A log directory went offline: waiters of its partitions are notified."""
        self.moves.directory_failed(directory)
        for partition in self:
            if partition.log.log_dir == directory:
                self.fetchers.stop(partition)
                partition.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)

    async def close(self) -> None:
        """End all work; what was appended is stored as `flush.messages` asks."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._openings.close()
        await self.moves.close()
        await self.fetchers.close()
        await self._isr_proposals.close()
        for partition in self:
            await partition.close()


def is_of_topic(log: PartitionLog, topic_id: Uuid) -> bool:
    """Return whether a log is that of the topic, and not of another that had its name before.

    An id that was lost in a power cut says nothing. Ids are random: one that differs from the
    topic's in a few bits only has been garbled on the medium.
    """
    difference = int.from_bytes(log.topic_id, "big") ^ int.from_bytes(topic_id, "big")
    return log.topic_id == ZERO_UUID or difference.bit_count() <= GARBLED_BITS_MAX


# Log configurations, one object for all partitions with the same settings.


KEPT_MAX = 1000
"""Different ones; beyond that, all are forgotten, and those in use live on with their logs."""


class SharedLogConfigs:
    """Thousands of partitions have a handful of configurations between them."""

    __slots__ = ("_known", "_last", "_make")

    def __init__(self, make: Callable[[MetadataImage, str], LogConfig]) -> None:
        self._make = make
        self._known: dict[LogConfig, LogConfig] = {}
        self._last: tuple[ConfigsImage, str, LogConfig] | None = None

    def of(self, image: MetadataImage, topic: str) -> LogConfig:
        """A topic's configuration; the partitions of a topic mostly ask one after the other."""
        last = self._last
        if last is not None and last[0] is image.configs and last[1] == topic:
            return last[2]
        made = self._make(image, topic)
        if len(self._known) >= KEPT_MAX:
            self._known.clear()
        config = self._known.setdefault(made, made)
        self._last = (image.configs, topic, config)
        return config
