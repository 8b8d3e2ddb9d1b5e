"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, and everything given up between."""

import struct

from barnabas.base.ids import TopicPartition
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from sim.clients import REQUEST_TIMEOUT_MS
from sim.members import HEARTBEAT_S, Member, by_topic

PROTOCOL_TYPE = "consumer"
PROTOCOL_NAME = "by turns"
_VERSION = struct.Struct(">h")


class ClassicMember(Member):
    """See the module."""

    async def join(self) -> None:
        """One round of JoinGroup and SyncGroup."""
        joined = await self._join()
        if joined is None:
            return
        assignments = self._assign(joined) if joined.leader == joined.member_id else {}
        request = SyncGroupRequest(
            group_id=self.plan.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL_NAME,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=_encode(partitions))
                for member_id, partitions in assignments.items()
            ],
        )
        response = await self.ask(request, timeout_ms=self._patience_ms)
        if response is None:
            return
        error = ErrorCode.of(response.error_code)
        if error:
            await self._refused(error)
            return
        self.epoch = joined.generation_id
        self.is_joined = True
        self.gain(_decode(response.assignment))
        self.heartbeat_due_s = self.client.loop.time() + HEARTBEAT_S

    @property
    def _patience_ms(self) -> int:
        return self.plan.rebalance_timeout_ms + REQUEST_TIMEOUT_MS

    async def _join(self) -> JoinGroupResponse | None:
        subscription = ConsumerProtocolSubscription(topics=self.plan.topics)
        request = JoinGroupRequest(
            group_id=self.plan.group_id,
            session_timeout_ms=self.plan.session_timeout_ms,
            rebalance_timeout_ms=self.plan.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=PROTOCOL_NAME, metadata=_VERSION.pack(0) + encode(subscription, 0)
                )
            ],
        )
        response: JoinGroupResponse | None = await self.ask(request, timeout_ms=self._patience_ms)
        if response is None:
            return None
        error = ErrorCode.of(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return None
        if error:
            await self._refused(error)
            return None
        self.member_id = response.member_id
        return response

    async def _refused(self, error: ErrorCode) -> None:
        """A request to the coordinator was refused: react to the error."""
        if await self.is_elsewhere(error):
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        elif error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.client.history.saw(
                "unexpected-error", f"{self.client.name} was answered {error.name} in its group"
            )
            await self.client.back_off()

    def _assign(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        members = sorted(member.member_id for member in joined.members)
        assignments: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        shift = self.client.random.randrange(len(members))  # so that partitions move
        for number, partition in enumerate(self.plan.partitions):
            assignments[members[(number + shift) % len(members)]].append(partition)
        return assignments

    async def heartbeat(self) -> None:
        """Stay, or give up everything and join again."""
        sent_s = self.client.loop.time()
        self.heartbeat_due_s = sent_s + HEARTBEAT_S
        request = HeartbeatRequest(
            group_id=self.plan.group_id, generation_id=self.epoch, member_id=self.member_id
        )
        response = await self.ask(request)
        if response is None:
            self.heartbeat_due_s = sent_s
            return
        error = ErrorCode.of(response.error_code)
        if not error:
            self.confirm(sent_s)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            await self.revoke(list(self.tenures))
            self.is_joined = False
        elif await self.is_elsewhere(error):
            self.heartbeat_due_s = sent_s
        else:
            self.lose_all()
            await self._refused(error)

    async def leave(self) -> None:
        """Part of Member."""
        request = LeaveGroupRequest(
            group_id=self.plan.group_id, members=[MemberIdentity(member_id=self.member_id)]
        )
        await self.ask(request)


def _encode(partitions: list[TopicPartition]) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )
    return _VERSION.pack(0) + encode(assignment, 0)


def _decode(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    assignment, _ = decode_at(ConsumerProtocolAssignment, 0, data, _VERSION.size)
    return [
        TopicPartition(topic.topic, index)
        for topic in assignment.assigned_partitions
        for index in topic.partitions
    ]
