"""Consume, transform, produce: members of a group whose offsets commit with what they write.

Each member reads input, writes one record for each to an output topic, and commits its offsets in
the same transaction. In the end the output is exactly what lies before the committed offsets of
the input: nothing twice, nothing missing, nothing ahead; and by then the group has reached the
input's end.
"""

from collections import Counter

from barnabas.base.ids import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sim.clients import Client
from sim.members import Got, Member, by_topic
from sim.sim_history import OffsetCommit, Outcome
from sim.transactional_client import LOST, TIMEOUT_MS, LostError, TransactionalClient

OUTPUT = "output"
ADD_WITHIN_S = 10.0
NO_MEMBER = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class NoMemberError(Exception):
    """The group does not take offsets from this member (any more)."""


class Chain:
    """The work of a member that transforms."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self._client = client
        self._producer = TransactionalClient(client, transactional_id)

    async def process(self, member: Member, got: Got) -> None:
        """One transaction for what was read at once, or two with nothing between them."""
        if self._client.random.random() < 0.5:
            first = {each: records[: len(records) // 2] for each, records in got.items()}
            first = {each: records for each, records in first.items() if records}
            offsets = {each: records[-1][0] + 1 for each, records in first.items()}
            if first and not await self._transaction(member, first, offsets):
                return
            got = {each: records[len(records) // 2 :] for each, records in got.items()}
        await self._transaction(member, got, member.uncommitted())

    async def _transaction(
        self, member: Member, got: Got, offsets: dict[TopicPartition, int]
    ) -> bool:
        """One transaction; whether the next may follow it."""
        client, producer = self._client, self._producer
        is_commit = client.random.random() < 0.85
        attempts: list[OffsetCommit] = []
        was_ended = False
        try:
            if not producer.is_initialized:
                await producer.initialize()
            begins_with_offsets = client.random.random() < 0.5
            if begins_with_offsets:
                is_commit &= await self._may_add_offsets(member, offsets)
            for partition, records in got.items():
                values = [f"{partition.topic}-{partition.partition}@{at}" for at, _ in records]
                await producer.write(TopicPartition(OUTPUT, partition.partition), values)
            if client.random.random() < 0.03:
                await client.pause(1, 2 * TIMEOUT_MS / 1000)  # for longer than it may take
            if not begins_with_offsets:
                is_commit &= await self._may_add_offsets(member, offsets)
            if is_commit:
                now_s = client.loop.time()
                attempts = [
                    OffsetCommit(member.plan.group_id, client.name, partition, offset, now_s)
                    for partition, offset in offsets.items()
                ]
                client.history.commits += attempts
            was_ended = True
            await producer.end(is_commit=is_commit)
            for attempt in attempts:
                attempt.outcome, attempt.completed_s = Outcome.OK, client.loop.time()
            if is_commit:
                member.committed.update(offsets)
            else:
                member.rewind()
            return is_commit
        except LostError:
            for attempt in attempts:
                attempt.outcome = Outcome.UNKNOWN if was_ended else Outcome.FAILED
            producer.abandon()
            member.rewind()
            await client.back_off()
            return False

    async def at_rest(self, member: Member) -> None:
        """Part of Work: between transactions nothing is left to do."""

    async def _may_add_offsets(self, member: Member, offsets: dict[TopicPartition, int]) -> bool:
        """Make offsets part of the transaction, if the group takes them. Raises LostError."""
        try:
            await self._producer.add_group(member.plan.group_id)
            await self._add_offsets(member, offsets)
        except NoMemberError:
            member.heartbeat_due_s = 0.0  # which says what is wrong
            return False
        return True

    async def _add_offsets(self, member: Member, offsets: dict[TopicPartition, int]) -> None:
        """Make offsets part of the transaction. Raises LostError or NoMemberError."""
        client, producer = self._client, self._producer
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=member.plan.group_id,
            producer_id=producer.producer[0],
            producer_epoch=producer.producer[1],
            generation_id=member.epoch,
            member_id=member.member_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
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
        deadline_s = client.loop.time() + ADD_WITHIN_S
        while client.loop.time() < deadline_s:
            response = await member.ask(request, version=5 if producer.has_version_2 else 3)
            if response is None:
                continue
            errors = {
                ErrorCode.of(one.error_code)
                for topic in response.topics
                for one in topic.partitions
            }
            if errors == {ErrorCode.NONE}:
                return
            for error in errors & LOST:
                raise producer.lost(error, request)
            if errors & NO_MEMBER:
                raise NoMemberError
            if not any([await member.is_elsewhere(error) for error in sorted(errors)]):
                await client.back_off()
        raise LostError("no coordinator of the group")


def check_output(
    client: Client,
    inputs: dict[TopicPartition, dict[int, str]],
    committed: dict[TopicPartition, int],
    outputs: list[str],
) -> None:
    """Compare what the chain wrote with what it read, all by (input partition, offset)."""
    saw = client.history.saw
    counts = Counter(outputs)
    for value, count in counts.items():
        if count > 1:
            saw("chain-duplicate", f"{value} was written {count} times")
    for partition, records in inputs.items():
        for offset in records:
            value = f"{partition.topic}-{partition.partition}@{offset}"
            is_before = offset < committed[partition]
            if is_before and value not in counts:
                saw("chain-lost", f"{value} was consumed and not written")
            elif not is_before and value in counts:
                saw("chain-ahead", f"{value} was written and not consumed")
            counts.pop(value, None)
    for value in counts:
        saw("chain-unwritten", f"{value} has no input")
