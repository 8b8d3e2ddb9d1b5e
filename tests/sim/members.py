"""A member of a group, as far as both protocols agree: it has partitions, reads and commits.

The processing of its records is its *work*: plain members commit offsets now and then, others
write to another topic and commit in the same transaction (`chains.py`). A member does one thing
at a time, like a consumer that one thread polls; when it is slow, others take over.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.base.ids import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from sim.clients import Client
from sim.consumers import Consumer, Position
from sim.coordinated import ELSEWHERE, Coordinated
from sim.sim_history import OffsetCommit, OffsetFetch, Outcome, Tenure

HEARTBEAT_S = 0.5
COMMIT_VERSION = 9
FETCH_VERSION = 9
NOT_COMMITTED = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
"""Answers that say for certain that nothing was committed."""
Got = dict[TopicPartition, list[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group."""

    group_id: str
    protocol: str
    """`classic` or `consumer`."""
    partitions: tuple[TopicPartition, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int

    @property
    def topics(self) -> list[str]:
        return list(dict.fromkeys(partition.topic for partition in self.partitions))


class Work(Protocol):
    """The processing of a member's records."""

    async def process(self, member: "Member", got: Got) -> None:
        """Process records; positions are already after them."""

    async def at_rest(self, member: "Member") -> None:
        """Nothing is there to read, or partitions are about to be given up in order."""


class Member(Coordinated):
    """See the module. `join` and what follows is up to the protocol."""

    def __init__(self, client: Client, plan: GroupPlan, work: Work) -> None:
        super().__init__(client, plan.group_id)
        self.plan = plan
        self.member_id = ""
        self.epoch = -1
        self.is_joined = False
        self.reader = Consumer(client, [], restarts=False)
        self.reader.on_records = self._take
        self.tenures: dict[TopicPartition, Tenure] = {}
        self.committed: dict[TopicPartition, int] = {}
        """The known committed offsets of its partitions."""
        self.heartbeat_due_s = 0.0
        self._work = work
        self._got: Got = {}
        self._run = 0
        client.history.group_of[client.name] = plan.group_id

    async def run(self) -> None:
        """Take part until the client is stopping."""
        client = self.client
        while not client.is_stopping:
            await client.refresh(self.plan.topics)
            if not self.is_joined:
                await self.join()
            elif client.loop.time() >= self.heartbeat_due_s:
                await self.heartbeat()
            elif not self.tenures:
                await client.pause(0.05, 0.3)
            elif any(partition not in self.reader.positions for partition in self.tenures):
                await self._find_positions()
            else:
                await self._consume()
        if self.is_joined:
            await self._work.at_rest(self)
            await self.leave()
            self.lose(list(self.tenures))

    async def join(self) -> None:
        """One attempt to become a member and learn what it has."""
        raise NotImplementedError

    async def heartbeat(self) -> None:
        """Show to be alive, and follow what the coordinator says."""
        raise NotImplementedError

    async def leave(self) -> None:
        """Say good-bye, once."""
        raise NotImplementedError

    # What it has

    def gain(self, partitions: Iterable[TopicPartition]) -> None:
        """The coordinator has just given `partitions`."""
        now_s = self.client.loop.time()
        for partition in partitions:
            tenure = Tenure(
                self.plan.group_id,
                self.member_id,
                partition,
                self.epoch,
                self.answered_by,
                now_s,
            )
            self.tenures[partition] = tenure
            self.client.history.tenures.append(tenure)

    def confirm(self, sent_s: float) -> None:
        """The answer to a heartbeat that left at `sent_s` took nothing away."""
        for tenure in self.tenures.values():
            if tenure.began_s <= sent_s:
                tenure.confirmed_s[self.answered_by] = sent_s

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Have `partitions` no more."""
        for partition in partitions:
            self.tenures.pop(partition, None)
            self.reader.positions.pop(partition, None)
            self.committed.pop(partition, None)

    def lose_all(self) -> None:
        """Be no member any more, against its will."""
        self.is_joined = False
        self.lose(list(self.tenures))

    def rewind(self) -> None:
        """Go on from what is committed."""
        self.reader.positions.clear()
        self.committed.clear()

    async def revoke(self, partitions: list[TopicPartition]) -> None:
        """Give `partitions` up in order."""
        if partitions:
            await self._work.at_rest(self)
            self.lose(partitions)

    async def _find_positions(self) -> None:
        """Begin where the group has committed."""
        wanted = [each for each in self.tenures if each not in self.reader.positions]
        offsets = await self._fetch_offsets(wanted)
        if offsets is None:
            await self.client.back_off()
            self.heartbeat_due_s = min(self.heartbeat_due_s, self.client.loop.time())
            return
        for partition, offset in offsets.items():
            if partition in self.tenures:
                self._run += 1
                self.reader.positions[partition] = Position(next_offset=offset, run=self._run)
                self.committed[partition] = offset

    async def _fetch_offsets(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int] | None:
        invoked_s = self.client.loop.time()
        is_consumer = self.plan.protocol == "consumer"
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=self.plan.group_id,
                    member_id=self.member_id if is_consumer else None,
                    member_epoch=self.epoch if is_consumer else -1,
                    topics=[
                        OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                        for topic, indexes in by_topic(partitions).items()
                    ],
                )
            ],
            require_stable=True,
        )
        response = await self.ask(request, version=FETCH_VERSION)
        if response is None:
            return None
        if ErrorCode.of(response.groups[0].error_code) in ELSEWHERE:
            self._coordinator = None
        return read_offsets(self.client, response, invoked_s)

    # What it does

    def _take(self, partition: TopicPartition, records: list[tuple[int, str]]) -> None:
        self._got.setdefault(partition, []).extend(records)

    async def _consume(self) -> None:
        self._got = {}
        await self.reader.poll()
        got = {each: records for each, records in self._got.items() if each in self.tenures}
        if got:
            await self._work.process(self, got)
        elif self.uncommitted():
            await self._work.at_rest(self)
        await self.client.pause(0.0, 0.3)

    def uncommitted(self) -> dict[TopicPartition, int]:
        """Return its positions that are not committed."""
        return {
            partition: position.next_offset
            for partition, position in self.reader.positions.items()
            if position.next_offset > self.committed.get(partition, 0)
        }

    async def commit(self) -> None:
        """Commit what has been read."""
        offsets = self.uncommitted()
        if not offsets:
            return
        history, loop = self.client.history, self.client.loop
        attempts = {
            partition: OffsetCommit(
                self.plan.group_id,
                self.member_id,
                partition,
                offset,
                loop.time(),
                epoch=self.epoch,
            )
            for partition, offset in offsets.items()
        }
        history.commits += attempts.values()
        request = OffsetCommitRequest(
            group_id=self.plan.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self.client.topic_ids[topic],
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[TopicPartition(topic, index)],
                            committed_metadata="",
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        response = await self.ask(request, version=COMMIT_VERSION)
        errors = {
            TopicPartition(topic.name, one.partition_index): ErrorCode.of(one.error_code)
            for topic in (response.topics if response is not None else ())
            for one in topic.partitions
        }
        for partition, attempt in attempts.items():
            attempt.completed_s = loop.time()
            error = errors.get(partition)
            if error is ErrorCode.NONE:
                attempt.outcome = Outcome.OK
                if partition in self.tenures:
                    self.committed[partition] = attempt.offset
            else:
                attempt.outcome = Outcome.FAILED if error in NOT_COMMITTED else Outcome.UNKNOWN
        if any(errors.values()):
            self.heartbeat_due_s = loop.time()  # which says what is wrong
            for error in errors.values():
                if await self.is_elsewhere(error):
                    break


class CommitNowAndThen:
    """The work of plain members: nothing is done but to commit, sometimes."""

    async def process(self, member: Member, got: Got) -> None:
        """Part of Work."""
        if member.client.random.random() < 0.5:
            await member.commit()

    async def at_rest(self, member: Member) -> None:
        """Part of Work."""
        await member.commit()


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Indexes by topic."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def read_offsets(
    client: Client, response: Any, invoked_s: float, *, is_final: bool = False
) -> dict[TopicPartition, int] | None:
    """What an OffsetFetch of one group says, noted in the history; None after an error."""
    (group,) = response.groups
    answers = [(topic.name, one) for topic in group.topics for one in topic.partitions]
    if group.error_code or any(one.error_code for _, one in answers):
        return None
    offsets = {
        TopicPartition(name, one.partition_index): max(0, one.committed_offset)
        for name, one in answers
    }
    now_s = client.loop.time()
    client.history.offset_fetches += [
        OffsetFetch(
            group.group_id, client.name, partition, offset, invoked_s, now_s, is_final=is_final
        )
        for partition, offset in offsets.items()
    ]
    return offsets
