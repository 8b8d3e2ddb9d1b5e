"""Where partitions end, as their leaders tell: whom it asks, and what it asks again."""

import asyncio
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.coordinator.share import end_offsets
from barnabas.coordinator.share.end_offsets import ATTEMPTS_MAX, RETRIABLE, EndOffsets, Ends
from barnabas.metadata.image import (
    BrokerImage,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from barnabas.net.dialing import PLAIN_DIALING
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
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

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: int | ErrorCode) -> None:
        self.answers = list(answers)
        self.clock = ManualClock()
        monkeypatch.setattr(end_offsets, "Peer", lambda *_, **__: self)
        self.ends = EndOffsets(
            HERE,
            "PLAINTEXT",
            self.clock,
            None,  # type: ignore[arg-type]  # peers are made by the patch above
            image,
            None,  # type: ignore[arg-type]  # nothing is led here
            request_timeout_ms=1_000,
            dialing=PLAIN_DIALING,
        )

    async def send(self, _request: Any) -> ListOffsetsResponse:
        answer = self.answers.pop(0)
        entry = ListOffsetsPartitionResponse(partition_index=0)
        if isinstance(answer, ErrorCode):
            entry.error_code = answer
        else:
            entry.offset = answer
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=PLACE.topic, partitions=[entry])]
        )

    def close(self) -> None:
        pass

    async def find(self) -> Ends:
        task = asyncio.ensure_future(self.ends.find([PLACE]))
        for _ in range(ATTEMPTS_MAX):
            for _ in range(10):
                await asyncio.sleep(0)
            self.clock.advance(10_000)
        return await task


@pytest.mark.parametrize("code", CODES, ids=str)
async def test_an_end_that_is_also_the_number_of_an_error_is_an_end(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    leader = Leader(monkeypatch, int(code), 999)
    assert await leader.find() == {PLACE: int(code)}
    assert leader.answers == [999]


@pytest.mark.parametrize("code", CODES, ids=str)
async def test_what_passes_is_asked_again(monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    leader = Leader(monkeypatch, code, code, 999)
    assert await leader.find() == {PLACE: 999}


async def test_what_does_not_pass_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = Leader(monkeypatch, *[code] * ATTEMPTS_MAX)
    assert await leader.find() == {PLACE: code}
    leader = Leader(monkeypatch, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 999)
    assert await leader.find() == {PLACE: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert leader.answers == [999]
