"""Look-ups by time in batches that decompress to megabytes, while others are served."""

from __future__ import annotations

import asyncio
from struct import pack

import pytest

from barnabas.node.log.turns import STEPS_MAX
from barnabas.node.metadata.image import PartitionImage
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.connections import ResponseHeader
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.decompressing import PIECE_SIZE_BYTES
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.well_known import MAX_TIMESTAMP
from support.logs import NOW_MS
from support.produce_world import PLAIN, ProduceWorld

MEBIBYTE = 2**20
TURNS_MAX = 10_000_000
VERSION = 9
LATE_MS = NOW_MS + 1


class LookUpWorld(ProduceWorld):
    """A topic with a batch of which only the last record, after 16 MB, is late: offset 1."""

    def __init__(self, codec: Codec = Codec.ZSTD) -> None:
        super().__init__()
        bomb = encode_batch(
            [Record(timestamp=NOW_MS, value=bytes(16 * MEBIBYTE)), Record(timestamp=LATE_MS)],
            codec=codec,
        )
        log = self.logs[PLAIN].log
        result = self.partitions[PLAIN].append(memoryview(bomb), NOW_MS)
        assert not result.error, result.message
        assert self.partitions[PLAIN].high_watermark == log.log_end_offset == 2

    def look_up(self, *timestamps: int, topic: str = PLAIN) -> int:
        """Deliver a ListOffsets request, with a separate partition for each timestamp."""
        number = len(self._versions)
        self._versions[number] = VERSION
        self.partitions |= {f"{topic}{at}": self.partitions[topic] for at in range(len(timestamps))}
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=f"{topic}{at}",
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)],
                )
                for at, timestamp in enumerate(timestamps)
            ],
        )
        frame = encode_request(ApiKey.LIST_OFFSETS, VERSION, number, "client", request)
        self.receive(pack(">i", len(frame)) + frame)
        return number

    def found(self) -> list[list[tuple[ErrorCode, int]]]:
        """(error, offset) of each partition, by request, in the order of the answers."""
        answers = []
        at = 0
        while at < len(self.sent):
            size = int.from_bytes(self.sent[at : at + 4], "big")
            frame = bytes(self.sent[at + 4 : at + 4 + size])
            _, position = decode_at(ResponseHeader, 1, frame, 0)
            response, _ = decode_at(ListOffsetsResponse, VERSION, frame, position)
            entries = [topic.partitions[0] for topic in response.topics]
            answers.append([(ErrorCode(entry.error_code), entry.offset) for entry in entries])
            at += 4 + size
        return answers

    async def answered(self, count: int) -> int:
        """Turns of the loop until there are `count` answers."""
        loop = asyncio.get_running_loop()
        turns = 0

        def tick() -> None:
            nonlocal turns
            turns += 1
            assert turns < TURNS_MAX, "it is not answered"
            if len(self.found()) < count:
                loop.call_soon(tick)
            else:
                over.set_result(None)

        over: asyncio.Future[None] = loop.create_future()
        tick()
        await over
        return turns


FOUND = (ErrorCode.NONE, 1)


@pytest.mark.parametrize("timestamp", [LATE_MS, MAX_TIMESTAMP])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
async def test_much_is_looked_through_in_many_turns(codec: Codec, timestamp: int) -> None:
    world = LookUpWorld(codec)
    world.look_up(timestamp)
    turns = await world.answered(1)
    assert world.found() == [[FOUND]]
    assert turns >= 16 * MEBIBYTE // (PIECE_SIZE_BYTES * STEPS_MAX) // 2


async def test_little_is_looked_up_at_once() -> None:
    world = LookUpWorld()
    world.look_up(NOW_MS, LATE_MS + 1)
    assert world.found() == [[(ErrorCode.NONE, 0), (ErrorCode.NONE, -1)]]


async def test_later_requests_of_the_connection_wait() -> None:
    """However small they are: it has one long look-up at a time."""
    world = LookUpWorld()
    world.look_up(LATE_MS, NOW_MS, LATE_MS)
    world.look_up(LATE_MS)
    assert world.found() == []
    assert len(asyncio.all_tasks()) == 2  # this one, and one look-up
    await world.answered(2)
    assert world.found() == [[FOUND, (ErrorCode.NONE, 0), FOUND], [FOUND]]


async def test_a_closed_connection_looks_no_further() -> None:
    world = LookUpWorld()
    world.look_up(*[LATE_MS] * 10)
    await asyncio.sleep(0)
    world.connection.close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
    assert world.found() == []


async def test_a_leader_that_is_none_any_more_does_not_answer() -> None:
    world = LookUpWorld()
    world.look_up(LATE_MS)
    world.partitions[PLAIN].leader_id = 2
    await world.answered(1)
    assert world.found() == [[(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]]


async def test_a_leader_of_another_term_does_not_answer() -> None:
    world = LookUpWorld()
    world.look_up(LATE_MS)
    world.partitions[PLAIN].become_leader(
        PartitionImage((1,), (1,), 1, leader_epoch=5, partition_epoch=3)
    )
    await world.answered(1)
    assert world.found() == [[(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]]


async def test_a_closed_log_is_no_longer_looked_through() -> None:
    world = LookUpWorld()
    world.look_up(LATE_MS, NOW_MS)
    world.logs[PLAIN].log.close()
    await world.answered(1)
    error = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert world.found() == [[error, error]]


async def test_a_deleted_topic_is_unknown() -> None:
    world = LookUpWorld()
    world.look_up(LATE_MS)
    world.partitions[f"{PLAIN}0"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[assignment]  # as `find` says
    await world.answered(1)
    assert world.found() == [[(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]]


async def test_connections_take_turns() -> None:
    """One with a small share of the work is not behind all of another's."""
    greedy, modest = LookUpWorld(), LookUpWorld()
    log = greedy.logs[PLAIN].log.log_directory
    modest.logs[PLAIN].log.log_directory.turns = log.turns
    greedy.look_up(*[LATE_MS] * 8)
    modest.look_up(LATE_MS)
    await modest.answered(1)
    assert greedy.found() == []
    await greedy.answered(1)
