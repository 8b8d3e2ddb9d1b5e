"""A group coordinator on a clock that stands still, over partitions in memory.

`MemoryPartitions` is a log without a disk: commits can be held back, appends made to fail, and
`crash` forgets what was not committed. `GroupWorld` sends requests as clients would and keeps
the answers, also those that come later.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from barnabas.base.disk import Buffer
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.coordinator.partition_writer import CoordinatorWriteError
from barnabas.node.coordinator.record_codec import decode_record
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.loop.promise import Promise
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.records.batch import iterate_headers, patch
from barnabas.protocol.records.records import decode_records
from sim.manual_clock import ManualClock

R = TypeVar("R")

BASE_CONFIG = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "offsets.topic.num.partitions": "1",
}
LATEST_VERSIONS = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9}


@dataclass
class MemoryPartition:
    """Batches, the offset after them, and how much of them is committed."""

    batches: list[bytearray] = field(default_factory=list)
    end_offset: int = 0
    committed_offset: int = 0
    waiters: list[tuple[int, Callable[[ErrorCode], None]]] = field(default_factory=list)


class MemoryPartitions:
    """A `PartitionWriter` without a disk."""

    def __init__(self) -> None:
        self.partitions: dict[int, MemoryPartition] = {}
        self.holds_commits = False
        """While true nothing is committed until `commit`."""
        self.append_error: ErrorCode | None = None
        self.batch_size_max = 1 << 20
        self.on_append: Callable[[bytearray], None] = lambda _: None

    def __getitem__(self, partition: int) -> MemoryPartition:
        return self.partitions.setdefault(partition, MemoryPartition())

    def append(self, partition: int, batch: bytearray, terms: AppendTerms | None = None) -> int:
        if self.append_error is not None:
            raise CoordinatorWriteError(self.append_error)
        log = self[partition]
        patch(batch, 0, log.end_offset, 0)
        log.batches.append(batch)
        log.end_offset += sum(header.record_count for _, header in iterate_headers(batch))
        if not self.holds_commits:
            log.committed_offset = log.end_offset
        self.on_append(batch)
        return log.end_offset

    def append_plain(
        self, partition: int, batch: bytearray, size_bytes_bound: int
    ) -> tuple[int, bool]:
        if size_bytes_bound > self.batch_size_max:
            raise CoordinatorWriteError(ErrorCode.RECORD_LIST_TOO_LARGE)
        end_offset = self.append(partition, batch)
        return end_offset, self.is_committed(partition, end_offset)

    def is_committed(self, partition: int, end_offset: int) -> bool:
        return end_offset <= self[partition].committed_offset

    def when_committed(
        self, partition: int, end_offset: int, callback: Callable[[ErrorCode], None]
    ) -> None:
        log = self[partition]
        if end_offset <= log.committed_offset:
            callback(ErrorCode.NONE)
        else:
            log.waiters.append((end_offset, callback))

    def read_all(self, partition: int) -> Iterator[Buffer]:
        yield from list(self[partition].batches)

    def batch_size_bytes_max(self, partition: int) -> int:
        return self.batch_size_max

    def commit(self, partition: int = 0) -> None:
        """Commit all that was appended, and tell who waits."""
        log = self[partition]
        log.committed_offset = log.end_offset
        waiters, log.waiters = log.waiters, []
        for _, callback in waiters:
            callback(ErrorCode.NONE)

    def fail_waiters(self, error: ErrorCode, partition: int = 0) -> None:
        """Tell who waits that it will never be known."""
        waiters, self[partition].waiters = self[partition].waiters, []
        for _, callback in waiters:
            callback(error)

    def crash(self) -> None:
        """Lose what was not committed, and everyone who waits."""
        for log in self.partitions.values():
            log.waiters = []
            while log.end_offset > log.committed_offset:
                batch = log.batches.pop()
                log.end_offset -= sum(h.record_count for _, h in iterate_headers(batch))

    def records(self, partition: int = 0) -> list[CoordinatorRecord]:
        """Everything that was written."""
        return [record for batch in self[partition].batches for record in records_of(batch)]


def records_of(batch: Buffer) -> list[CoordinatorRecord]:
    """The records of a batch."""
    found = []
    for raw in decode_records(batch):
        record = decode_record(raw, RECORD_TYPES)
        assert record is not None
        found.append(record)
    return found


class Call(Generic[R]):
    """A request under way; `response` raises before there is one."""

    def __init__(self, outcome: R | Promise[R]) -> None:
        self._answers: list[R] = []
        if isinstance(outcome, Promise):
            outcome.then(self._answers.append)
        else:
            self._answers.append(outcome)

    @property
    def is_done(self) -> bool:
        return bool(self._answers)

    @property
    def response(self) -> R:
        assert self._answers, "not answered yet"
        assert len(self._answers) == 1, "answered twice"
        return self._answers[0]

    @property
    def error(self) -> ErrorCode:
        response: Any = self.response
        return ErrorCode(response.error_code)


def subscription(*topics: str) -> bytes:
    """Return what a consumer says when it joins."""
    return (0).to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


class GroupWorld:
    """One coordinator of one partition, its clock and its log."""

    def __init__(self, seed: int = 1, **settings: object) -> None:
        self.clock = ManualClock()
        self.log = MemoryPartitions()
        self._random = random.Random(seed)
        values = {key.replace("_", "."): str(value) for key, value in settings.items()}
        self.config = NodeConfig.from_properties({**BASE_CONFIG, **values})
        self.leader_epoch = 0
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.config, self.clock, self._random, self.log)
        for partition in range(coordinator.partition_count):
            coordinator.load(partition, self.leader_epoch)
        return coordinator

    def reload(self) -> None:
        """Move leadership away and back."""
        self.leader_epoch += 1
        for partition in range(self.coordinator.partition_count):
            self.coordinator.unload(partition, self.leader_epoch)
        self.leader_epoch += 1
        for partition in range(self.coordinator.partition_count):
            self.coordinator.load(partition, self.leader_epoch)

    def crash(self) -> None:
        """Kill the node: what waits is never answered, and what was not committed is lost."""
        self.coordinator.runtime._timer = None
        self.clock.timers.clear()
        self.log.crash()
        self.leader_epoch += 1
        self.coordinator = self._new_coordinator()

    @property
    def shard(self) -> GroupShard:
        """The shard of partition 0."""
        shard = self.coordinator.runtime.shard(0)
        assert shard is not None
        return shard

    def group(self, group_id: str = "g") -> ClassicGroup:
        """A classic group."""
        group = self.shard.groups.get_of(ClassicGroup, group_id)
        assert group is not None
        return group

    def client(self, name: str, version: int) -> ClientInfo:
        """A client by name."""
        return ClientInfo(name, "10.0.0.1", ANONYMOUS, version)

    def join(
        self,
        name: str,
        member_id: str = "",
        *,
        group_id: str = "g",
        version: int = LATEST_VERSIONS["join"],
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        topics: tuple[str, ...] = ("t",),
        metadata: bytes | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 30_000,
        reason: str | None = None,
    ) -> Call[JoinGroupResponse]:
        """Send a JoinGroup."""
        data = subscription(*topics) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=protocol, metadata=data) for protocol in protocols
            ],
            reason=reason,
        )
        return Call(self.coordinator.classics.join(request, self.client(name, version)))

    def join_fully(self, name: str, **options: Any) -> tuple[str, Call[JoinGroupResponse]]:
        """Join without an id and then with the id that was given."""
        first = self.join(name, **options)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.response.member_id
        return member_id, self.join(name, member_id, **options)

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "g",
        version: int = LATEST_VERSIONS["sync"],
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
    ) -> Call[SyncGroupResponse]:
        """Send a SyncGroup."""
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in (assignments or {}).items()
            ],
        )
        return Call(self.coordinator.classics.sync(request, self.client("", version)))

    def heartbeat(
        self,
        member_id: str,
        generation_id: int,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
    ) -> Call[HeartbeatResponse]:
        """Send a Heartbeat."""
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return Call(self.coordinator.classics.heartbeat(request, self.client("", 4)))

    def leave(
        self, *members: tuple[str, str | None], group_id: str = "g", version: int = 5
    ) -> Call[LeaveGroupResponse]:
        """Send a LeaveGroup for (member id, instance id) pairs."""
        request = LeaveGroupRequest(
            group_id=group_id,
            member_id=members[0][0] if version < 3 else "",
            members=[
                MemberIdentity(member_id=member, group_instance_id=instance)
                for member, instance in members
            ]
            if version >= 3
            else [],
        )
        return Call(self.coordinator.classics.leave(request, self.client("", version)))

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        member_id: str = "",
        generation_id: int = -1,
        *,
        group_id: str = "g",
        version: int = LATEST_VERSIONS["commit"],
        metadata: str | None = "",
        instance_id: str | None = None,
        retention_ms: int = -1,
        leader_epoch: int = -1,
    ) -> Call[OffsetCommitResponse]:
        """Send an OffsetCommit."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, OffsetCommitRequestTopic(name=topic)).partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=retention_ms,
            topics=list(topics.values()),
        )
        return Call(self.coordinator.offset_commit(request, self.client("", version)))

    def commit_error(self, *args: Any, **options: Any) -> ErrorCode:
        """The one error of a commit of one partition."""
        response = self.commit(*args, **options).response
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def transactional_commit_error(
        self, partition: tuple[str, int], member_id: str = "", generation_id: int = -1
    ) -> ErrorCode:
        """Send a TxnOffsetCommit of one partition; returns its error."""
        topic, index = partition
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            generation_id=generation_id,
            member_id=member_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic, partitions=[TxnOffsetCommitRequestPartition(partition_index=index)]
                )
            ],
        )
        call: Call[Any] = Call(self.coordinator.txn_offset_commit(request, None))
        return ErrorCode(call.response.topics[0].partitions[0].error_code)

    def fetch(
        self,
        *partitions: tuple[str, int],
        group_id: str = "g",
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> Call[OffsetFetchResponseGroup]:
        """Send an OffsetFetch for these partitions, or for all if none are named."""
        topics: dict[str, OffsetFetchRequestTopics] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, OffsetFetchRequestTopics(name=topic)).partition_indexes.append(
                partition
            )
        request = OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=member_id,
            member_epoch=member_epoch,
            topics=list(topics.values()) if partitions else None,
        )
        return Call(self.coordinator.offset_fetch(request, require_stable=require_stable))

    def offsets(self, group_id: str = "g") -> dict[tuple[str, int], int]:
        """Everything that a group has committed."""
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in self.fetch(group_id=group_id).response.topics
            for partition in topic.partitions
        }

    def stable_group(self, *names: str, **options: Any) -> list[str]:
        """A group of dynamic members in generation 1; the first one leads. Returns their ids."""
        joined = [self.join_fully(name, **options) for name in names]
        # Every new member may prolong the first rebalance by one more delay.
        self.clock.advance(3 * 3_000)
        member_ids = [member_id for member_id, _ in joined]
        generation = joined[0][1].response.generation_id
        group_id = options.get("group_id", "g")
        calls = [
            self.sync(
                member_id,
                generation,
                {m: m.encode() for m in member_ids} if member_id == member_ids[0] else None,
                group_id=group_id,
                protocol_type=options.get("protocol_type", "consumer"),
            )
            for member_id in reversed(member_ids)
        ]
        assert all(call.error is ErrorCode.NONE for call in calls)
        return member_ids
