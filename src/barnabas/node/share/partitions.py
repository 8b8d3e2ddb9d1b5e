"""The share partitions of a node: one for each group and partition that members fetch here.

One timer of the clock serves the locks of all of them. Source: Kafka's SharePartitionManager.
"""

from collections.abc import Iterable

from barnabas.base.clock import Clock, Timer
from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.state import Persister, SharePartitionKey
from barnabas.node.coordinator.timers import TimerQueue
from barnabas.node.loop.promise import Promise, gather
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.node.share.sessions import PartitionId, SessionKey, ShareSession, ShareSessions
from barnabas.node.share.settings import ShareSettings
from barnabas.node.share.share_partition_host import HostedSharePartition
from barnabas.protocol.errors import ErrorCode


class SharePartitions:
    """Opens share partitions when they are first asked for, and closes them in time."""

    def __init__(
        self, clock: Clock, replicas: ReplicaManager, persister: Persister, settings: ShareSettings
    ) -> None:
        self.settings = settings
        self.sessions = ShareSessions(settings.sessions_max)
        self._clock = clock
        self._replicas = replicas
        self._persister = persister
        self._hosted: dict[SharePartitionKey, HostedSharePartition] = {}
        self._by_partition: dict[PartitionId, dict[SharePartitionKey, None]] = {}
        self._ending: dict[HostedSharePartition, None] = {}
        """Closed, with writes under way."""
        self._deadlines: TimerQueue[SharePartitionKey] = TimerQueue()
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._is_closed = False

    # -- finding

    def find(self, group_id: str, topic_id: Uuid, index: int) -> HostedSharePartition | None:
        """The share partition, if members have fetched it."""
        return self._hosted.get(SharePartitionKey(group_id, topic_id, index))

    def open(self, group_id: str, topic_id: Uuid, index: int) -> HostedSharePartition | ErrorCode:
        """The share partition, which may still be loading, or the reason why this node has none."""
        key = SharePartitionKey(group_id, topic_id, index)
        hosted = self._hosted.get(key)
        if hosted is not None:
            return hosted
        partition = self._replicas.find_by_id(topic_id, index)
        if not isinstance(partition, Partition):
            return partition
        if not partition.is_leader or self._is_closed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        hosted = HostedSharePartition(
            key,
            partition,
            self._clock,
            self._persister,
            self.settings.of,
            self._deadline_set,
            self._was_closed,
        )
        self._hosted[key] = hosted
        self._by_partition.setdefault((topic_id, index), {})[key] = None
        hosted.load()
        return hosted

    def _was_closed(self, hosted: HostedSharePartition) -> None:
        key = hosted.key
        if self._hosted.get(key) is not hosted:
            return
        del self._hosted[key]
        self._deadlines.cancel(key)
        groups = self._by_partition[(key.topic_id, key.partition)]
        del groups[key]
        if not groups:
            del self._by_partition[(key.topic_id, key.partition)]
        self._ending = {old: None for old in self._ending if old.is_busy}
        if hosted.is_busy:
            self._ending[hosted] = None

    def hosted(self) -> list[HostedSharePartition]:
        """All of them."""
        return list(self._hosted.values())

    # -- what happens to partitions and groups

    def image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Close what this node no longer leads."""
        for topic_id in (*delta.topics, *delta.topics_deleted):
            topic = image.topics.by_id.get(topic_id)
            here = [
                self._hosted[key]
                for (known_id, _), keys in self._by_partition.items()
                if known_id == topic_id
                for key in keys
            ]
            for hosted in here:  # closing one may close others: a waiter is notified and leaves
                placed = None if topic is None else topic.partitions.get(hosted.key.partition)
                if placed is None:
                    hosted.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif placed.leader != self._replicas.node_id:
                    hosted.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def release_session(self, key: SessionKey) -> Promise[None] | None:
        """End a member's session and take back all that it holds."""
        session = self.sessions.remove(key)
        return None if session is None else self._release(session)

    def _release(self, session: ShareSession) -> Promise[None]:
        group_id, member_id = session.key
        promises = [
            hosted.release(member_id)
            for topic_id, index in session.partitions
            if (hosted := self.find(group_id, topic_id, index)) is not None
        ]
        done: Promise[None] = Promise()
        outcome = gather(promises, lambda _: None)
        if isinstance(outcome, Promise):
            outcome.then(done.settle)
        else:
            done.settle(None)
        return done

    def connection_lost(self, connection: object) -> None:
        """A client has gone: its records are free, and so is what a group without members had."""
        for key, session in self.sessions.connection_lost(connection):
            released = None if session is None else self.release_session(key)
            if released is None:
                self._close_if_empty(key.group_id)
            else:
                released.then(lambda _, group_id=key.group_id: self._close_if_empty(group_id))  # type: ignore[misc]  # mypy cannot infer a default

    def _close_if_empty(self, group_id: str) -> None:
        if not self.sessions.has_members(group_id):
            for hosted in list(self._hosted.values()):
                if hosted.key.group_id == group_id:
                    hosted.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def close(self) -> None:
        """Serve nobody any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        every: Iterable[HostedSharePartition] = [*self._hosted.values(), *self._ending]
        for hosted in every:
            hosted.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for hosted in every:
            await hosted.end()

    # -- locks

    def _deadline_set(self, hosted: HostedSharePartition) -> None:
        machine = hosted.machine
        deadline_ms = None if machine is None else machine.next_deadline_ms()
        if deadline_ms is None or hosted.is_closed or self._is_closed:
            return
        self._deadlines.schedule(hosted.key, deadline_ms)
        self._arm()

    def _arm(self) -> None:
        deadline_ms = self._deadlines.next_deadline_ms()
        if deadline_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        self._timer = self._clock.call_later(delay_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        while (key := self._deadlines.pop_due(now_ms)) is not None:
            hosted = self._hosted.get(key)
            if hosted is not None:
                hosted.expire(now_ms)
                self._deadline_set(hosted)
        self._arm()
