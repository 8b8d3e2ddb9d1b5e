"""A member of a share group (KIP-932): it acquires records, and says of each what became of it.

Some records it accepts at once, some late, some it gives back, refuses, renews, or forgets until
their locks run out. It has a session with each leader of its partitions; what it holds it drops
when the session is gone, as nobody knows then who has it.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition, Uuid, uuid_to_text
from barnabas.node.coordinator.share.shard import NOT_INITIALIZED
from barnabas.node.net.client import Peer
from barnabas.node.share.core.states import AcknowledgeType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_fetch
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.records import decode_records
from barnabas.protocol.well_known import FINAL_EPOCH
from sim.clients import Client
from sim.coordinated import Coordinated
from sim.members import HEARTBEAT_S, GroupPlan
from sim.share_history import Hold, SessionSeen, ShareHistory
from sim.sim_history import Outcome, Poll

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
FIRST_EPOCH = 0
FETCH_WAIT_MS = 300
REJOIN = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
NO_SESSION = {
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
}
NOT_TAKEN = {
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
"""Answers that say for certain that nothing was acknowledged."""
FETCH_ERRORS = {
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
}
"""Errors that faults may cause for a partition."""
HABITS = {"accept": 12, "late": 4, "release": 3, "renew": 2, "forget": 1, "reject": 1}
"""The ways in which a member treats records of one answer, with their relative weights."""


@dataclass(slots=True, eq=False)
class Held:
    """A record that the member has, and what it is going to do with it."""

    hold: Hold
    kind: AcknowledgeType
    due_s: float
    renews_s: float | None = None
    """When it renews its lock before that."""


@dataclass(slots=True)
class NodeSession:
    """The member's session with one node."""

    seen: SessionSeen
    epoch: int = FIRST_EPOCH
    partitions: set[TopicPartition] = field(default_factory=set)
    held: dict[tuple[TopicPartition, int], Held] = field(default_factory=dict)


class ShareMember(Coordinated):
    """See the module."""

    def __init__(
        self,
        client: Client,
        plan: GroupPlan,
        shares: ShareHistory,
        is_draining: Callable[[], bool],
    ) -> None:
        super().__init__(client, plan.group_id)
        self.plan = plan
        self.member_id = uuid_to_text(Uuid(client.random.randbytes(16)))
        self.epoch = JOINING_EPOCH
        self._shares = shares
        self._is_draining = is_draining
        self._assigned: set[TopicPartition] = set()
        self._sessions: dict[int, NodeSession] = {}
        self._heartbeat_due_s = 0.0
        self._is_known = False
        """True if the last heartbeat was answered; else everything is said and asked again."""
        self._run = 0
        self._lock_s = shares.lock_duration_ms / 1000

    async def run(self) -> None:
        """Take part until the client is stopping."""
        client = self.client
        while not client.is_stopping:
            await client.refresh(self.plan.topics)
            if self.epoch == JOINING_EPOCH or client.loop.time() >= self._heartbeat_due_s:
                await self._heartbeat()
            elif not self._assigned and not self._sessions:
                await client.pause(0.05, 0.3)
            else:
                await self._poll()
                await client.pause(0.0, 0.2)
        for node_id in list(self._sessions):
            await self._end_session(node_id)
        if self.epoch != JOINING_EPOCH:
            await self.ask(self._heartbeat_request(LEAVING_EPOCH))

    # The group

    def _heartbeat_request(self, epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.plan.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=None if self._is_known else self.plan.topics,
        )

    async def _heartbeat(self) -> None:
        client = self.client
        if not all(topic in client.topic_ids for topic in self.plan.topics):
            await client.back_off()
            return
        sent_s = client.loop.time()
        self._heartbeat_due_s = sent_s + HEARTBEAT_S
        request = self._heartbeat_request(self.epoch)
        self._is_known = False
        response = await self.ask(request)
        if response is None:
            self._heartbeat_due_s = sent_s
            return
        error = ErrorCode.of(response.error_code)
        if not error:
            self._follow(response)
            return
        self._heartbeat_due_s = sent_s
        if await self.is_elsewhere(error):
            return
        if error not in REJOIN:
            self._unexpected(f"its heartbeat was answered {error.name}: {response.error_message}")
        self.epoch = JOINING_EPOCH
        self._assigned = set()
        await client.back_off()

    def _follow(self, response: ShareGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        self._is_known = True
        if response.assignment is not None:
            self._assigned = {
                TopicPartition(self.client.topic_names[topic.topic_id], index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            }

    def _unexpected(self, text: str) -> None:
        now_s = self.client.loop.time()
        self.client.history.saw("unexpected-error", f"{now_s:.3f} s {self.client.name}: {text}")

    # Leaders

    async def _poll(self) -> None:
        """Acknowledge what is due, and fetch, at each leader at once."""
        wanted: dict[int, set[TopicPartition]] = {node_id: set() for node_id in self._sessions}
        for partition in self._assigned:
            leader_id, _ = self.client.leaders.get(partition, (-1, -1))
            if leader_id >= 0:
                wanted.setdefault(leader_id, set()).add(partition)
        for node_id, session in list(self._sessions.items()):
            if not wanted[node_id] and not session.held:
                await self._end_session(node_id)
                del wanted[node_id]
        if not wanted:
            self.client.mistrust_metadata()
            await self.client.back_off()
            return
        good = await asyncio.gather(
            *(self._visit(node_id, wanted[node_id]) for node_id in sorted(wanted))
        )
        if not all(good):
            self.client.mistrust_metadata()
            await self.client.back_off()

    def _session(self, node_id: int) -> NodeSession:
        session = self._sessions.get(node_id)
        if session is None:
            seen = SessionSeen(self.member_id, f"node{node_id}")
            session = self._sessions[node_id] = NodeSession(seen)
        return session

    async def _visit(self, node_id: int, wanted: set[TopicPartition]) -> bool:
        """One turn at one node; False if something was not as expected."""
        peer = self.client.broker(node_id)
        if peer is None:
            self._sessions.pop(node_id, None)
            return False
        session = self._session(node_id)
        random, now_s = self.client.random, self.client.loop.time()
        renewing = [
            each
            for each in session.held.values()
            if each.renews_s is not None and each.renews_s <= now_s
        ]
        if renewing and not await self._acknowledge(node_id, peer, renewing, is_renewal=True):
            return False
        due = [each for each in session.held.values() if each.due_s <= now_s]
        alone = [
            each for each in due if random.random() < 0.1 or each.hold.topic_partition not in wanted
        ]
        if random.random() < 0.5:
            alone = due
        if alone and not await self._acknowledge(node_id, peer, alone):
            return False
        return not wanted or await self._fetch(
            node_id, peer, wanted, [each for each in due if each not in alone]
        )

    async def _send(self, node_id: int, peer: Peer, request: Any) -> Any | None:
        """The answer, where the session goes on with it."""
        session = self._sessions[node_id]
        sent_s = self.client.loop.time()
        try:
            response = await peer.send(request)
        except OSError:
            self._sessions.pop(node_id, None)
            return None
        error = ErrorCode.of(response.error_code)
        if not error:
            session.seen.confirmed_s = sent_s
            session.epoch += 1
            return response
        if error not in NO_SESSION:
            self._unexpected(f"node {node_id} answered {error.name}")
        self._sessions.pop(node_id, None)
        return None

    # Acknowledging

    async def _acknowledge(
        self,
        node_id: int,
        peer: Peer,
        told: list[Held],
        *,
        is_renewal: bool = False,
        epoch: int | None = None,
    ) -> bool:
        """Acknowledge in a separate request."""
        session = self._sessions[node_id]
        request = share_fetch.ShareAcknowledgeRequest(
            group_id=self.plan.group_id,
            member_id=self.member_id,
            share_session_epoch=session.epoch if epoch is None else epoch,
            is_renew_ack=is_renewal,
            topics=[
                share_fetch.AcknowledgeTopic(
                    topic_id=self.client.topic_ids[partition.topic],
                    partitions=[
                        share_fetch.AcknowledgePartition(
                            partition_index=partition.partition,
                            acknowledgement_batches=[
                                share_fetch.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=types
                                )
                                for first, last, types in runs(offsets)
                            ],
                        )
                    ],
                )
                for partition, offsets in kinds_of(told, is_renewal=is_renewal).items()
            ],
        )
        sent_s = self.client.loop.time()
        if not is_renewal:
            self._saying(session, told)
        response = await self._send(node_id, peer, request)
        errors = {} if response is None else self._errors(response, "error_code")
        if is_renewal:
            self._renewed(session, told, errors, sent_s)
        else:
            self._said(told, errors)
        return response is not None

    def _saying(self, session: NodeSession, told: Iterable[Held]) -> None:
        for each in told:
            each.hold.kind = each.kind
            each.hold.said_s = self.client.loop.time()
            del session.held[each.hold.topic_partition, each.hold.offset]

    def _errors(self, response: Any, name: str) -> dict[TopicPartition, ErrorCode]:
        return {
            TopicPartition(
                self.client.topic_names[topic.topic_id], entry.partition_index
            ): ErrorCode.of(getattr(entry, name))
            for topic in response.responses
            for entry in topic.partitions
        }

    def _said(self, told: Iterable[Held], errors: dict[TopicPartition, ErrorCode]) -> None:
        """Remember what became of acknowledgements."""
        now_s = self.client.loop.time()
        for each in told:
            error = errors.get(each.hold.topic_partition)
            each.hold.answered_s = now_s
            if error is ErrorCode.NONE:
                each.hold.outcome = Outcome.OK
            elif error in NOT_TAKEN:
                each.hold.outcome = Outcome.FAILED
            else:
                each.hold.outcome = Outcome.UNKNOWN

    def _renewed(
        self,
        session: NodeSession,
        told: Iterable[Held],
        errors: dict[TopicPartition, ErrorCode],
        sent_s: float,
    ) -> None:
        now_s = self.client.loop.time()
        for each in told:
            each.renews_s = None
            if errors.get(each.hold.topic_partition) is ErrorCode.NONE:
                each.hold.renewals.append((sent_s, now_s))
            elif errors:
                session.held.pop((each.hold.topic_partition, each.hold.offset), None)

    async def _end_session(self, node_id: int) -> None:
        """Say the last words to a node; what is not said of records gives them back."""
        session, peer = self._sessions[node_id], self.client.broker(node_id)
        if peer is not None and session.epoch != FIRST_EPOCH:
            told = [each for each in session.held.values() if self.client.random.random() < 0.5]
            for each in session.held.values():
                each.hold.said_s = self.client.loop.time()
            await self._acknowledge(node_id, peer, told, epoch=FINAL_EPOCH)
        self._sessions.pop(node_id, None)

    # Fetching

    async def _fetch(
        self, node_id: int, peer: Peer, wanted: set[TopicPartition], told: list[Held]
    ) -> bool:
        session, random = self._sessions[node_id], self.client.random
        kinds = kinds_of(told)
        forgotten = sorted(session.partitions - wanted)
        topics = [
            share_fetch.FetchTopic(
                topic_id=self.client.topic_ids[partition.topic],
                partitions=[
                    share_fetch.FetchPartition(
                        partition_index=partition.partition,
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, types in runs(kinds.get(partition, {}))
                        ],
                    )
                ],
            )
            for partition in sorted((wanted - session.partitions) | set(kinds))
        ]
        request = share_fetch.ShareFetchRequest(
            group_id=self.plan.group_id,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=random.choice((200, 1 << 20)),
            max_records=random.choice((1, 5, 100)),
            batch_size=random.choice((1, 5, 100)),
            share_acquire_mode=random.randint(0, 1),
            topics=topics,
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(
                    topic_id=self.client.topic_ids[partition.topic],
                    partitions=[partition.partition],
                )
                for partition in forgotten
            ],
        )
        self._saying(session, told)
        response = await self._send(node_id, peer, request)
        if response is None:
            self._said(told, {})
            return False
        self._said(told, self._errors(response, "acknowledge_error_code"))
        session.partitions = set(wanted)
        is_good = True
        for topic in response.responses:
            name = self.client.topic_names[topic.topic_id]
            for answer in topic.partitions:
                partition = TopicPartition(name, answer.partition_index)
                is_good = self._take(session, partition, answer) and is_good
        return is_good

    def _take(
        self,
        session: NodeSession,
        partition: TopicPartition,
        answer: share_fetch.ShareFetchPartitionData,
    ) -> bool:
        """Hold what was acquired, and decide what to do with it."""
        error = ErrorCode.of(answer.error_code)
        if error not in FETCH_ERRORS and not is_out_of_date(answer):
            self._unexpected(f"a share fetch of {partition} was answered {error.name}")
        if not answer.acquired_records:
            return not error
        client = self.client
        now_s = client.loop.time()
        values, is_whole = read_values(answer.records or b"")
        for acquired in answer.acquired_records:
            habit = self._habit()
            polled: list[tuple[int, str]] = []
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                hold = Hold(
                    self.plan.group_id,
                    self.member_id,
                    partition,
                    offset,
                    acquired.delivery_count,
                    session.seen,
                    now_s,
                )
                self._shares.holds.append(hold)
                if habit != "forget":
                    is_read = is_whole or offset in values
                    held = self._intend(
                        hold,
                        habit if is_read else "release",
                        is_there=offset in values or not is_read,
                    )
                    session.held[partition, offset] = held
                if offset in values:
                    polled.append((offset, values[offset]))
            self._run += 1
            client.history.polls.append(Poll(client.name, partition, self._run, polled, now_s))
        return not error

    def _habit(self) -> str:
        if self._is_draining():
            return "accept"
        return self.client.random.choices(list(HABITS), list(HABITS.values()))[0]

    def _intend(self, hold: Hold, habit: str, *, is_there: bool) -> Held:
        now_s, random = hold.received_s, self.client.random
        if not is_there:
            return Held(hold, AcknowledgeType.GAP, now_s)
        if habit == "release":
            return Held(hold, AcknowledgeType.RELEASE, now_s + random.random() * self._lock_s)
        if habit == "reject":
            return Held(hold, AcknowledgeType.REJECT, now_s)
        if habit == "late":
            late_s = random.choice((0.3, 0.9, 1.0, 1.3, 3.0)) * self._lock_s
            return Held(hold, AcknowledgeType.ACCEPT, now_s + late_s)
        if habit == "renew":
            renews_s = now_s + 0.6 * self._lock_s
            return Held(hold, AcknowledgeType.ACCEPT, now_s + 1.2 * self._lock_s, renews_s)
        return Held(hold, AcknowledgeType.ACCEPT, now_s)


def is_out_of_date(answer: share_fetch.ShareFetchPartitionData) -> bool:
    """Return whether a partition was refused because its state was never initialised.

    Only initialised partitions are assigned. But a node that is cut off believes that it is still
    the leader of a partition, and the coordinator of its state; it does not know of a later
    initialisation, and says so at once. Kafka's ShareCoordinatorShard and SharePartition do the
    same. If that did not end, the group would be stuck.
    """
    return (
        answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        and answer.error_message == NOT_INITIALIZED.format("Read")
    )


def read_values(data: Buffer) -> tuple[dict[int, str], bool]:
    """The values by offset up to the first batch that is damaged, and whether that is all."""
    values: dict[int, str] = {}
    try:
        for position, header in iterate_headers(data, allow_partial_tail=True):
            if not check_crc(data, position, header):
                return values, False
            for record in decode_records(data, position):
                value = bytes(record.value or b"").decode("utf-8", "replace")
                values[record.offset] = value.partition(" ")[0]
    except CorruptBatchError:
        return values, False
    return values, True


def kinds_of(
    told: Iterable[Held], *, is_renewal: bool = False
) -> dict[TopicPartition, dict[int, int]]:
    """The acknowledgements by partition and offset."""
    kinds: dict[TopicPartition, dict[int, int]] = {}
    for each in told:
        hold = each.hold
        kind = AcknowledgeType.RENEW if is_renewal else each.kind
        kinds.setdefault(hold.topic_partition, {})[hold.offset] = int(kind)
    return kinds


def runs(kinds: dict[int, int]) -> list[tuple[int, int, list[int]]]:
    """(first, last, types) of offsets that follow each other."""
    found: list[tuple[int, int, list[int]]] = []
    for offset in sorted(kinds):
        if found and found[-1][1] + 1 == offset:
            first, _, types = found[-1]
            found[-1] = (first, offset, [*types, kinds[offset]])
        else:
            found.append((offset, offset, [kinds[offset]]))
    return [
        (first, last, types[:1] if len(set(types)) == 1 else types) for first, last, types in found
    ]
