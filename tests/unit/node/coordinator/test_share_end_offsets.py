"""Where partitions end, as their leaders tell: whom it asks, and what it asks again."""

import asyncio
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.coordinator.share.end_offsets import ATTEMPTS_MAX, RETRIABLE, EndOffsets, Ends
from barnabas.node.metadata.image import (
    BrokerImage,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sim.manual_clock import ManualClock

HERE, THERE = 1, 2
PLACE = TopicPartition("topic", 0)
CODES = sorted(RETRIABLE)


def image() -> MetadataImage:
    """Node 2 leads the only partition."""
    broker = BrokerImage(
        THERE,
        1,
        Uuid(bytes(16)),
        {"PLAINTEXT": Endpoint("there", 9092, 0)},
        None,
        False,
        False,
        (),
    )
    partition = PartitionImage((HERE, THERE), (HERE, THERE), THERE, 0, 0)
    topic = TopicImage(PLACE.topic, Uuid(bytes(15) + b"\x01"), {0: partition})
    return MetadataImage(
        topics=TopicsImage({topic.name: topic}, {topic.id: topic}), brokers={THERE: broker}
    )


class Leader:
    """What node 2 answers, one after the other: an offset, or an error."""

    node_id = HERE

    def __init__(self, *answers: int | ErrorCode) -> None:
        self.answers = list(answers)
        self.clock = ManualClock()
        self.ends = EndOffsets(
            self.clock,
            self,  # type: ignore[arg-type]  # stands for the ways to other nodes
            image,
            None,  # type: ignore[arg-type]  # nothing is led here
        )

    def channel(self, _purpose: str) -> "Leader":
        return self

    def reaches(self, broker_id: int) -> bool:
        return broker_id == THERE

    async def ask(self, _broker_id: int, _request: Any) -> ListOffsetsResponse:
        answer = self.answers.pop(0)
        entry = ListOffsetsPartitionResponse(partition_index=0)
        if isinstance(answer, ErrorCode):
            entry.error_code = answer
        else:
            entry.offset = answer
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=PLACE.topic, partitions=[entry])]
        )

    async def find(self) -> Ends:
        task = asyncio.ensure_future(self.ends.find([PLACE]))
        for _ in range(ATTEMPTS_MAX):
            for _ in range(10):
                await asyncio.sleep(0)
            self.clock.advance(10_000)
        return await task


@pytest.mark.parametrize("code", CODES, ids=str)
async def test_an_end_that_is_also_the_number_of_an_error_is_an_end(code: ErrorCode) -> None:
    leader = Leader(int(code), 999)
    assert await leader.find() == {PLACE: int(code)}
    assert leader.answers == [999]


@pytest.mark.parametrize("code", CODES, ids=str)
async def test_what_passes_is_asked_again(code: ErrorCode) -> None:
    leader = Leader(code, code, 999)
    assert await leader.find() == {PLACE: 999}


async def test_what_does_not_pass_is_told_in_the_end() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = Leader(*[code] * ATTEMPTS_MAX)
    assert await leader.find() == {PLACE: code}
    leader = Leader(ErrorCode.TOPIC_AUTHORIZATION_FAILED, 999)
    assert await leader.find() == {PLACE: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert leader.answers == [999]
