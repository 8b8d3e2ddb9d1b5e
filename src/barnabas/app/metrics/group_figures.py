"""Groups that a node coordinates: their states, offsets and lag; and its transactions.

Only the coordinator of a group shows its lag, so that it is there once in the cluster. It needs the
ends of the partitions. Of those with a replica here it takes the high watermark; the leaders of
others are asked from time to time, never by a scrape (`RemoteEnds`).

Lag in seconds is how long ago the first record was appended that the group has not committed, by
its timestamp in the log. Of partitions without a replica here it follows from the ends that
were seen before, to some ten seconds.
"""

import asyncio
import time
from collections import Counter, deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.transaction.states import TransactionState
from barnabas.node.log.errors import CorruptIndexError, LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.web.metrics import Exposition, labels_text

if TYPE_CHECKING:
    from barnabas.app.broker_role import BrokerRole

SLICE_S: Final = 0.001
"""The loop goes on with other work after this."""
LAGS_MAX: Final = 50_000
"""Partitions of groups whose lag a node shows; how many more there are is shown."""
LOOKUPS_MAX: Final = 2000
"""Look-ups of times of records by one scrape, which keeps the times."""
TIMES_MAX: Final = 100_000
REFRESH_MS: Final = 10_000
"""The interval at which leaders of other partitions are asked for their ends."""
FORGOTTEN_MS: Final = 120_000
"""Ends that no scrape has wanted for so long are asked for no more."""
REMOTE_MAX: Final = 20_000
ASKED_AT_ONCE: Final = 1000
ENDS_KEPT_MAX: Final = 360
"""Of a partition: those of the last hour."""


class RemoteEnds:
    """Ends of partitions that have no replica here, as their leaders said lately."""

    def __init__(self, broker: "BrokerRole", clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._wanted: dict[TopicPartition, int] = {}
        """When each was last wanted."""
        self._seen: dict[TopicPartition, deque[tuple[int, int]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    def start(self) -> None:
        """Begin to ask for what is wanted."""
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def end(self, place: TopicPartition) -> int | None:
        """The last end that is known; None: it will be asked for."""
        if place in self._wanted or len(self._wanted) < REMOTE_MAX:
            if place not in self._wanted:
                self._news.set()
            self._wanted[place] = self._clock.monotonic_ms()
        seen = self._seen.get(place)
        return seen[-1][1] if seen else None

    def age_s(self, place: TopicPartition, offset: int) -> float | None:
        """For how long there has been a record at `offset`, as far as ends were seen."""
        for seen_ms, end in self._seen.get(place, ()):
            if end > offset:
                return max(0, self._clock.monotonic_ms() - seen_ms) / 1000
        return None

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_MS / 1000):
                    await self._news.wait()
            self._news.clear()
            await self.refresh()

    async def refresh(self) -> None:
        """Ask for the ends of what is wanted."""
        now_ms = self._clock.monotonic_ms()
        old = [place for place, ms in self._wanted.items() if now_ms - ms > FORGOTTEN_MS]
        for place in old:
            del self._wanted[place]
            self._seen.pop(place, None)
        wanted = iter(list(self._wanted))
        while places := list(islice(wanted, ASKED_AT_ONCE)):
            for place, end in (await self._broker.ends.find(places)).items():
                if not isinstance(end, ErrorCode) and place in self._wanted:
                    seen = self._seen.setdefault(place, deque(maxlen=ENDS_KEPT_MAX))
                    seen.append((self._clock.monotonic_ms(), end))


class RecordTimes:
    """When records were appended, as their batches say. The record of an offset never changes."""

    def __init__(self) -> None:
        self._known: dict[tuple[TopicPartition, int], int] = {}
        self._left = 0

    def begin(self) -> None:
        """A scrape begins: it may look up some more."""
        self._left = LOOKUPS_MAX
        if len(self._known) > TIMES_MAX:
            self._known.clear()

    def of(self, log: PartitionLog, offset: int) -> int | None:
        """The timestamp of the first record at or after `offset`; None if it is not known now."""
        offset = max(offset, log.log_start_offset)
        key = (log.topic_partition, offset)
        found = self._known.get(key)
        if found is None and self._left > 0 and not log.is_offline:
            self._left -= 1
            found = _timestamp(log, offset)
            if found is not None:
                self._known[key] = found
        return found


def _timestamp(log: PartitionLog, offset: int) -> int | None:
    try:
        located = log.segments[log.segment_index(offset)].locate(offset)
    except (OSError, CorruptBatchError, CorruptIndexError, LogDirFailure):
        return None
    if located is None:
        return None
    header = located[1]
    return header.base_timestamp if header.base_offset >= offset else header.max_timestamp


class GroupFigures:
    """The figures of one scrape."""

    def __init__(
        self, broker: "BrokerRole", clock: Clock, remote: RemoteEnds, times: RecordTimes
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._remote = remote
        self._times = times
        self._states: Counter[tuple[str, str]] = Counter()
        self._members: list[tuple[str, int, int]] = []
        self._lags: list[tuple[str, TopicPartition, int, int, float | None]] = []
        self._committed: list[tuple[str, TopicPartition, int]] = []
        self._dropped = self._offsets = 0
        self._transactions: Counter[str] = Counter()
        self._oldest_open_s = 0.0
        self._shares: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._slice_end = 0.0

    async def collect(self) -> None:
        """Look at all groups and transactions, in turns with other work."""
        self._times.begin()
        self._slice_end = time.perf_counter() + SLICE_S
        runtime = self._broker.services.groups.runtime
        for partition in runtime.partitions():
            shard = runtime.shard(partition)
            if shard is None:
                continue
            for group in shard.groups:
                self._look(group)
                for topic, offsets in list(shard.offsets.group(group.group_id).items()):
                    for index, committed in list(offsets.items()):
                        self._look_at_lag(
                            group.group_id, TopicPartition(topic, index), committed.offset
                        )
                        await self._turn()
                await self._turn()
        await self._look_at_transactions()
        for hosted in self._broker.services.share_partitions.hosted():
            group_id = hosted.key.group_id
            self._shares[group_id] += 1
            if hosted.machine is not None:
                self._in_flight[group_id] += hosted.machine.in_flight_count
            await self._turn()

    async def _turn(self) -> None:
        if time.perf_counter() >= self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = time.perf_counter() + SLICE_S

    def _look(self, group: Group) -> None:
        self._states[str(group.group_type), group.state] += 1
        epoch = 0
        if isinstance(group, ClassicGroup):
            epoch = group.generation_id
        elif isinstance(group, ModernGroup):
            epoch = group.epoch
        if len(self._members) < LAGS_MAX:
            self._members.append((group.group_id, len(group.members), epoch))

    def _look_at_lag(self, group_id: str, place: TopicPartition, offset: int) -> None:
        self._offsets += 1
        if len(self._lags) + len(self._committed) >= LAGS_MAX:
            self._dropped += 1
            return
        partition = self._broker.replicas.find(*place)
        if isinstance(partition, Partition):
            lag = max(0, partition.high_watermark - offset)
            lag_s: float | None = 0.0
            if lag:
                timestamp_ms = self._times.of(partition.log, offset)
                lag_s = (
                    None
                    if timestamp_ms is None
                    else max(0, self._clock.now_ms() - timestamp_ms) / 1000
                )
        else:
            end = self._remote.end(place)
            if end is None:
                self._committed.append((group_id, place, offset))
                return
            lag = max(0, end - offset)
            lag_s = self._remote.age_s(place, offset) if lag else 0.0
        self._lags.append((group_id, place, offset, lag, lag_s))

    async def _look_at_transactions(self) -> None:
        runtime = self._broker.services.transactions.runtime
        now_ms = self._clock.now_ms()
        for partition in runtime.partitions():
            shard = runtime.shard(partition)
            if shard is None:
                continue
            for transaction in list(shard.transactions.values()):
                state = transaction.state
                self._transactions[state.label] += 1
                if (state is TransactionState.ONGOING or state.is_prepared) and (
                    transaction.start_ms >= 0
                ):
                    open_s = max(0, now_ms - transaction.start_ms) / 1000
                    self._oldest_open_s = max(self._oldest_open_s, open_s)
                await self._turn()

    # -- as text, on any thread

    def show(self, text: Exposition) -> None:
        """Add what was found."""
        self._show_states(text)
        members = [
            (labels_text({"consumergroup": group_id}), count, epoch)
            for group_id, count, epoch in self._members
        ]
        if members:
            labels, counts, epochs = zip(*members, strict=True)
            text.column("kafka_consumergroup_members", labels, counts)
            text.column("barnabas_group_epoch", labels, epochs)
        self._show_lags(text)
        text.add("barnabas_group_partitions_not_shown", self._dropped)
        for state in TransactionState:
            if state is not TransactionState.DEAD:
                label = state.label
                text.add("barnabas_transactions", self._transactions[label], state=label)
        text.add("barnabas_transaction_oldest_open_seconds", self._oldest_open_s)
        for group_id, count in self._shares.items():
            text.add("barnabas_share_partitions", count, consumergroup=group_id)
            in_flight = self._in_flight[group_id]
            text.add("barnabas_share_records_in_flight", in_flight, consumergroup=group_id)

    def _show_states(self, text: Exposition) -> None:
        manager = "kafka_coordinator_group_groupmetadatamanager_"
        by_state: Counter[str] = Counter()
        by_type: Counter[str] = Counter()
        for (kind, state), count in self._states.items():
            by_type[kind] += count
            by_state[state] += count
            text.add("barnabas_groups", count, protocol=kind, state=state)
        text.add(f"{manager}numgroups", sum(by_state.values()))
        text.add(f"{manager}numoffsets", self._offsets)
        for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"):
            text.add(f"{manager}numgroups{state.lower()}", by_state[state])
        for kind in ("classic", "consumer", "share", "streams"):
            name = "kafka_server_group_coordinator_metrics_group_count"
            text.add(name, by_type[kind], protocol=kind)

    def _show_lags(self, text: Exposition) -> None:
        labels: list[str] = []
        offsets: list[int] = []
        lags: list[int] = []
        timed: list[str] = []
        seconds: list[float] = []
        sums: Counter[tuple[str, str]] = Counter()
        for group_id, place, offset, lag, lag_s in self._lags:
            label = _labels(group_id, place)
            labels.append(label)
            offsets.append(offset)
            lags.append(lag)
            sums[group_id, place.topic] += lag
            if lag_s is not None:
                timed.append(label)
                seconds.append(lag_s)
        unknown = [_labels(group_id, place) for group_id, place, _ in self._committed]
        current = "kafka_consumergroup_current_offset"
        text.column(current, labels, offsets)
        text.column(current, unknown, [offset for _, _, offset in self._committed])
        text.column("kafka_consumergroup_lag", labels, lags)
        text.column("kafka_consumergroup_lag_seconds", timed, seconds)
        for (group_id, topic), lag in sums.items():
            text.add("kafka_consumergroup_lag_sum", lag, consumergroup=group_id, topic=topic)


def _labels(group_id: str, place: TopicPartition) -> str:
    return labels_text(
        {"consumergroup": group_id, "partition": str(place.partition), "topic": place.topic}
    )
