"""Following one leader: one connection, one fetch under way, any number of partitions.

With `num.replica.fetchers` several fetchers share the partitions of one leader.

Each fetch says where this replica's logs end and, by the epoch of their last batch, what they end
with (KIP-595): a leader whose log parted from ours before that says where, and we truncate.
Fetched bytes are appended unchanged. A partition that the leader cannot serve rests for a while;
one
that the leader knows to be led in a later epoch waits for the image to say so here too.

Source: Kafka's AbstractFetcherThread, ReplicaFetcherThread and RemoteLeaderEndPoint.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from barnabas.base.backoff import ExponentialBackoff, doubled
from barnabas.base.clock import Clock
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.net.client import Peer
from barnabas.node.replication.fetch_session import FetchPosition, FollowerSession, PartitionKey
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.throttle import ReplicationQuota
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.protocol.records.batch import NO_LEADER_EPOCH, NO_OFFSET
from barnabas.protocol.well_known import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """The keys that a follower obeys."""

    max_wait_ms: int
    min_bytes: int
    partition_max_bytes: int
    response_max_bytes: int
    backoff_max_ms: int
    timeout_ms: int

    @classmethod
    def from_config(cls, config: NodeConfig) -> "FetcherSettings":
        """Read them."""
        return cls(
            max_wait_ms=config.get_int("replica.fetch.wait.max.ms"),
            min_bytes=config.get_int("replica.fetch.min.bytes"),
            partition_max_bytes=config.get_int("replica.fetch.max.bytes"),
            response_max_bytes=config.get_int("replica.fetch.response.max.bytes"),
            backoff_max_ms=config.get_int("replica.fetch.backoff.ms"),
            timeout_ms=config.get_int("replica.socket.timeout.ms"),
        )


BACKOFF_MIN_MS = 20
"""The first rest; it doubles up to `replica.fetch.backoff.ms`. Mostly a leader is milliseconds
behind with the image that makes it one."""

telemetry = logging.getLogger(__name__)


class _Followed:
    """A partition that is fetched."""

    __slots__ = ("failures", "is_in_sync", "lag", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.failures = 0
        """The number of failures in a row."""
        self.lag = 0
        """Records of those that the leader had committed when it answered last, and this lacks."""
        self.is_in_sync = False
        """True if it has all that the leader has committed."""


class Fetcher:
    """Fetches from one leader while there is anything to fetch."""

    def __init__(
        self,
        node_id: int,
        leader_id: int,
        make_peer: Callable[[], Peer],
        clock: Clock,
        random: Random,
        settings: FetcherSettings,
        quota: ReplicationQuota,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader_id = leader_id
        self._node_id = node_id
        self._make_peer = make_peer
        self._peer = make_peer()
        self._clock = clock
        self._backoff = ExponentialBackoff(BACKOFF_MIN_MS, settings.backoff_max_ms, random)
        self._settings = settings
        self._quota = quota
        self._broker_epoch = broker_epoch
        self._session = FollowerSession()
        self._followed: dict[PartitionKey, _Followed] = {}
        self._ids: dict[str, Uuid] = {}
        self._changed: dict[PartitionKey, None] = {}
        """Whose position the leader does not know."""
        self._resting: dict[PartitionKey, int] = {}
        """Until when (monotonic ms)."""
        self._throttled: dict[PartitionKey, None] = {}
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def session_id(self) -> int:
        """The fetch session that the leader keeps for it, 0 for none."""
        return self._session.session_id

    def lags(self) -> Iterator[tuple[Partition, int]]:
        """Each followed partition, and how many committed records it lacks."""
        for followed in list(self._followed.values()):
            yield followed.partition, followed.lag

    @property
    def failing_count(self) -> int:
        """Number of partitions that back off after a failure."""
        return len(self._resting)

    # -- what is followed

    def add(self, partition: Partition) -> None:
        """Fetch `partition`, in its leader epoch, from the end of its log on."""
        key = (partition.topic_id, partition.topic_partition.partition)
        self._forget(key)
        try:
            log = partition.log
            if log.epochs.latest_epoch == NO_LEADER_EPOCH and (
                log.log_end_offset > partition.high_watermark
            ):
                partition.truncate_to(partition.high_watermark)  # nothing else can be compared
        except LogDirFailure as failure:
            telemetry.error("%s is not followed: %s", partition.topic_partition, failure)
            return
        self.take_over(partition)

    def take_over(self, partition: Partition) -> None:
        """Fetch on what another fetcher of this leader has fetched so far."""
        key = (partition.topic_id, partition.topic_partition.partition)
        self._forget(key)
        self._followed[key] = _Followed(partition)
        self._ids[partition.topic_partition.topic] = partition.topic_id
        self._changed[key] = None
        if self._task is None:
            self._start()
        elif self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def remove(self, partition: Partition) -> None:
        """Fetch it no more. Without any partition the connection is closed."""
        self._forget((partition.topic_id, partition.topic_partition.partition))
        if not self._followed:
            self._stop()

    def _forget(self, key: PartitionKey) -> None:
        self._followed.pop(key, None)
        self._pause_key(key)

    def _pause_key(self, key: PartitionKey) -> None:
        """Leave a partition out of fetches until it is marked as changed."""
        self._changed.pop(key, None)
        self._resting.pop(key, None)
        self._throttled.pop(key, None)
        self._session.forget(key)

    def endpoint_changed(self) -> None:
        """The leader answers elsewhere, or is another incarnation: reconnect."""
        self._peer.close()
        self._peer = self._make_peer()
        self._session.lost()

    def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self._peer.close()
        self._peer = self._make_peer()
        self._session = FollowerSession()

    async def close(self) -> None:
        """Stop, and wait until nothing is written any more."""
        task = self._task
        self._followed.clear()
        self._stop()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        is_current = self._task is task
        if is_current:
            self._stop()
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("following broker %d failed", self.leader_id, exc_info=task.exception())
        elif is_current and self._followed:
            self._start()  # added after the task had nothing left, before this was called

    # -- the loop

    async def _run(self) -> None:
        while self._followed:
            request = self._next_request()
            if request is None:
                await self._rest(self._rest_ms())
                continue
            peer = self._peer
            try:
                response = await peer.send(
                    request, timeout_ms=self._settings.timeout_ms + request.max_wait_ms
                )
            except OSError as error:
                if peer is self._peer:
                    self._session.lost()
                    await self._back_off(str(error))
                continue
            if peer is not self._peer:
                continue
            if self._session.answered(response):
                self._failures = 0
                await self._take(response.responses)
            elif response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                await self._back_off(ErrorCode.of(response.error_code).name)

    async def _back_off(self, reason: str) -> None:
        if not self._failures:
            telemetry.warning("fetching from broker %d failed: %s", self.leader_id, reason)
        self._failures += 1
        await self._rest(self._backoff.after(self._failures - 1))

    async def _rest(self, delay_ms: int) -> None:
        """Wait, or until a partition is added."""
        wake = self._wake = asyncio.get_running_loop().create_future()

        def ring() -> None:
            if not wake.done():
                wake.set_result(None)

        timer = self._clock.call_later(delay_ms, ring)
        try:
            await wake
        finally:
            timer.cancel()
            self._wake = None

    def _rest_ms(self) -> int:
        """The time during which nothing can be fetched."""
        backoff_ms = self._settings.backoff_max_ms
        if not self._resting:
            return backoff_ms
        now_ms = self._clock.monotonic_ms()
        return max(1, min(backoff_ms, min(self._resting.values()) - now_ms))

    def _next_request(self) -> FetchRequest | None:
        """A fetch of everything that is not at rest; None if that is nothing."""
        if self._resting:
            now_ms = self._clock.monotonic_ms()
            for key in [key for key, due_ms in self._resting.items() if due_ms <= now_ms]:
                del self._resting[key]
                self._changed[key] = None
        self._apply_throttle()
        session = self._session
        later: list[PartitionKey] = []
        if session.is_full:
            keys = [key for key in self._followed if key in self._changed or key in session.known]
        else:
            later = [key for key in self._changed if key in session.unheard]
            keys = [key for key in self._changed if key not in session.unheard]
        if not keys and not later and not (session.known and not session.is_full):
            return None
        positions = {key: self._position(self._followed[key].partition) for key in keys}
        settings = self._settings
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._node_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
        )
        session.fill(request, positions, settings.partition_max_bytes)
        self._changed = dict.fromkeys(later)
        if later:
            request.max_wait_ms = 0
        elif self._resting:
            # Do not sleep at the leader beyond what is to be asked next.
            request.max_wait_ms = min(request.max_wait_ms, self._rest_ms())
        return request

    def _position(self, partition: Partition) -> FetchPosition:
        log = partition.log
        return FetchPosition(
            partition.topic_partition.topic,
            log.log_end_offset,
            log.epochs.latest_epoch,
            partition.leader_epoch,
            log.log_start_offset,
        )

    def _apply_throttle(self) -> None:
        """Leave out, while the quota is exceeded, what is throttled and not in sync (KIP-73)."""
        quota = self._quota
        is_exceeded = quota.is_active and quota.is_exceeded()
        for key in list(self._throttled):
            if not is_exceeded:
                del self._throttled[key]
                self._changed[key] = None
        if is_exceeded:
            for key, followed in self._followed.items():
                if (
                    not followed.is_in_sync
                    and key not in self._resting
                    and quota.is_throttled(followed.partition.topic_partition)
                ):
                    self._pause_key(key)
                    self._throttled[key] = None

    # -- what comes

    async def _take(self, topics: list[Any]) -> None:
        flushes: list[Partition] = []
        out_of_range: list[PartitionKey] = []
        for topic in topics:
            topic_id = topic.topic_id
            if topic_id == ZERO_UUID:
                topic_id = self._ids.get(topic.topic, ZERO_UUID)
            for data in topic.partitions:
                key = (topic_id, data.partition_index)
                followed = self._followed.get(key)
                position = self._session.known.get(key)
                if followed is None:
                    continue
                partition = followed.partition
                if position is None:  # removed and added again while the answer was under way
                    self._session.drop(key, partition.leader_epoch)
                    continue
                if (
                    position.current_leader_epoch != partition.leader_epoch
                    or position.fetch_offset != partition.log.log_end_offset
                ):
                    self._changed[key] = None
                    continue
                error = data.error_code
                if error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(key)
                elif error:
                    self._partition_failed(key, followed, ErrorCode.of(error))
                else:
                    self._guard(key, followed, self._take_one, followed, position, data)
                    if partition.log.needs_flush:
                        flushes.append(partition)
        for key in out_of_range:
            await self._resolve_out_of_range(key)
        if flushes:
            await asyncio.gather(*map(self._flush, flushes))

    def _guard(
        self, key: PartitionKey, followed: _Followed, action: Callable[..., None], *args: Any
    ) -> None:
        """Do what touches the disk; a partition whose directory failed is followed no more."""
        try:
            action(*args)
        except LogDirFailure as failure:
            telemetry.error(
                "%s is no longer followed: %s", followed.partition.topic_partition, failure
            )
            self._forget(key)

    def _take_one(self, followed: _Followed, position: FetchPosition, data: PartitionData) -> None:
        partition = followed.partition
        key = (partition.topic_id, partition.topic_partition.partition)
        diverging = data.diverging_epoch
        if diverging.epoch >= 0:
            self._truncate(key, followed, diverging.epoch, diverging.end_offset)
            return
        records = data.records
        result = partition.append_fetched(records, data.high_watermark, data.log_start_offset)
        if result.error:
            telemetry.error(
                "%s: cannot append what broker %d sent for offset %d: %s",
                partition.topic_partition,
                self.leader_id,
                position.fetch_offset,
                result.message,
            )
            self._let_rest(key, followed)
            return
        if records is not None and self._quota.is_active:
            self._quota.record_if_throttled(partition.topic_partition, len(records))
        followed.failures = 0
        followed.lag = max(0, data.high_watermark - partition.log.log_end_offset)
        followed.is_in_sync = not followed.lag
        if self._position(partition) != position:
            self._changed[key] = None

    def _truncate(
        self, key: PartitionKey, followed: _Followed, leader_epoch: int, end_offset: int
    ) -> None:
        partition = followed.partition
        before = self._position(partition)
        offset = truncation_offset(
            partition.log, partition.high_watermark, leader_epoch, end_offset
        )
        telemetry.info(
            "%s: the leader's epoch %d ends at %d; truncating to %d",
            partition.topic_partition,
            leader_epoch,
            end_offset,
            offset,
        )
        partition.truncate_to(offset)
        if self._position(partition) == before:
            self._let_rest(key, followed)
        else:
            self._changed[key] = None

    async def _flush(self, partition: Partition) -> None:
        """Flush the log if `flush.messages` requires it, before the records are acknowledged."""
        try:
            await partition.log.flush()
        except LogDirFailure as failure:
            telemetry.error("%s cannot be flushed: %s", partition.topic_partition, failure)

    def _partition_failed(self, key: PartitionKey, followed: _Followed, error: ErrorCode) -> None:
        is_news = error == ErrorCode.CORRUPT_MESSAGE and not followed.failures
        (telemetry.error if is_news else telemetry.debug)(
            "broker %d answers %s for %s",
            self.leader_id,
            error.name,
            followed.partition.topic_partition,
        )
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            self._pause_key(key)  # the image will bring the new epoch
        else:
            self._let_rest(key, followed)

    def _let_rest(self, key: PartitionKey, followed: _Followed) -> None:
        backoff_ms = doubled(BACKOFF_MIN_MS, self._settings.backoff_max_ms, followed.failures)
        followed.failures += 1
        self._pause_key(key)
        self._resting[key] = self._clock.monotonic_ms() + backoff_ms

    # -- a log that ends outside the leader's

    async def _resolve_out_of_range(self, key: PartitionKey) -> None:
        """Truncate to the leader's end, or restart at its log start offset."""
        followed = self._followed.get(key)
        if followed is None:
            return
        partition = followed.partition
        before = self._position(partition)
        try:
            leader_end = await self._ask(partition, LATEST)
            leader_start = leader_end
            if leader_end >= partition.log.log_end_offset:
                leader_start = await self._ask(partition, EARLIEST)
        except LeaderError as error:
            self._partition_failed(key, followed, error.code)
            return
        except OSError as error:
            telemetry.info("broker %d did not return its offsets: %s", self.leader_id, error)
            self._let_rest(key, followed)
            return
        if self._followed.get(key) is not followed or self._position(partition) != before:
            return  # the image has changed
        log_end_offset = partition.log.log_end_offset
        telemetry.warning(
            "%s ends at %d, outside the leader's log, which is %d to %d",
            partition.topic_partition,
            log_end_offset,
            leader_start,
            leader_end,
        )
        if leader_end < log_end_offset:
            self._guard(key, followed, partition.truncate_to, leader_end)
        elif leader_start > log_end_offset:
            self._guard(key, followed, partition.start_anew_at, leader_start)
        if key not in self._followed:
            return
        if self._position(partition) == before:
            self._let_rest(key, followed)
        else:
            self._changed[key] = None

    async def _ask(self, partition: Partition, timestamp: int) -> int:
        timeout_ms = self._settings.timeout_ms
        return await ask_offset(self._peer, self._node_id, partition, timestamp, timeout_ms)


# Truncation point: where a follower's log diverges from its leader's.
#
# The leader says the greatest epoch it knows that is not after the follower's last, and where that
# epoch ends in its log. Both logs agree up to the smaller end of that epoch, if the follower knows
# it too; if not, the follower goes back to the end of its epoch before and asks again.
#
# Source: Kafka's AbstractFetcherThread.getOffsetTruncationState; KIP-101, 279, 595.


def truncation_offset(
    log: PartitionLog, high_watermark: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """The offset to truncate `log` to, given what the leader said of an epoch and its end.

    A leader that knows nothing (-1) leaves the follower with what is committed for sure.
    """
    log_end_offset = log.log_end_offset
    if leader_end_offset == NO_OFFSET:
        return min(high_watermark, log_end_offset)
    if leader_epoch == NO_LEADER_EPOCH:
        return min(leader_end_offset, log_end_offset)
    epoch, end_offset = log.end_offset_for_epoch(leader_epoch)
    if epoch == NO_LEADER_EPOCH:
        # Nothing here is as old as that epoch, so all that the leader has counts.
        return min(leader_end_offset, log_end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log_end_offset)
    return min(end_offset, leader_end_offset, log_end_offset)


# Asking a leader where its log starts and ends. Source: Kafka's RemoteLeaderEndPoint.


class LeaderError(Exception):
    """The leader answered a question about a partition with an error."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


async def ask_offset(
    peer: Peer, replica_id: int, partition: Partition, timestamp: int, timeout_ms: int
) -> int:
    """The end (LATEST) or start (EARLIEST) of the leader's log. Raises LeaderError, OSError."""
    topic, index = partition.topic_partition
    request = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=partition.leader_epoch,
                        timestamp=timestamp,
                    )
                ],
            )
        ],
    )
    response = await peer.send(request, timeout_ms=timeout_ms)
    answers = [answer for topic in response.topics for answer in topic.partitions]
    if len(answers) != 1:
        raise ConnectionError(f"{len(answers)} answers to one question")
    if answers[0].error_code:
        raise LeaderError(ErrorCode.of(answers[0].error_code))
    offset: int = answers[0].offset
    return offset
