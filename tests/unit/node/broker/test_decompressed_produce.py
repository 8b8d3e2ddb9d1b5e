"""Produce requests with compressed batches, small ones and those that decompress to megabytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.produce import decompressed
from barnabas.node.broker.produce.decompression import (
    AT_ONCE_MAX_BYTES,
    Decompression,
    request_limit,
)
from barnabas.node.broker.schemas import checks
from barnabas.node.log.config import LogConfig
from barnabas.node.log.stepped_check import CheckedBatch, Steps
from barnabas.node.log.turns import ACTIVE_MAX, STEPS_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, read_header, set_crc
from barnabas.protocol.records.decompressing import PIECE_SIZE_BYTES
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import NOW_MS
from support.produce_world import CHECKED, PLAIN, VALIDATES, ProduceWorld
from support.schema_world import id_of

MEBIBYTE = 2**20
NONE = ErrorCode.NONE
TURNS_MAX = 2_000_000
COMPRESSED = [codec for codec in Codec if codec]
LARGE = b"large".ljust(MEBIBYTE, b".")


def batch(
    *values: bytes,
    codec: Codec = Codec.ZSTD,
    producer: tuple[int, int, int] = (-1, -1, -1),
    timestamp: int = NOW_MS,
) -> bytearray:
    return encode_batch(
        [Record(timestamp=timestamp, value=value) for value in values],
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )


async def until(is_done: Callable[[], bool]) -> int:
    """Turns of the loop that it took."""
    loop = asyncio.get_running_loop()
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1
        if not over.done():
            loop.call_soon(count)

    over: asyncio.Future[None] = loop.create_future()
    count()
    while not is_done():
        assert turns < TURNS_MAX, "it is not done"
        await asyncio.sleep(0.001)  # for threads, too
    over.set_result(None)
    return turns


async def answered(world: ProduceWorld, count: int) -> int:
    return await until(lambda: len(world.answers()) >= count)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("acks", [1, -1])
async def test_a_small_batch_is_answered_at_once(codec: Codec, acks: int) -> None:
    world = ProduceWorld()
    numbers = [
        world.send((PLAIN, batch(b"%d" % number, codec=codec)), acks=acks) for number in range(3)
    ]
    assert world.errors() == [(number, [NONE]) for number in numbers]
    assert world.values(PLAIN) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("codec", COMPRESSED)
async def test_later_requests_wait_behind_a_large_batch(codec: Codec) -> None:
    """All kinds wait: the first of a partition, like an earlier one, compressed or not."""
    world = ProduceWorld()
    world.send((PLAIN, batch(b"first", codec=Codec.NONE)))
    world.send((PLAIN, batch(LARGE, codec=codec, producer=(7, 0, 0))))
    world.send((PLAIN, batch(b"next", codec=Codec.NONE, producer=(7, 0, 1))))
    world.send((PLAIN, batch(b"small", codec=codec, producer=(7, 0, 2))))
    world.send((PLAIN, batch(LARGE, codec=codec, producer=(7, 0, 3))))
    world.send((PLAIN, batch(b"last", codec=Codec.NONE, producer=(7, 0, 4))))
    assert world.errors() == [(0, [NONE])]
    await answered(world, 6)
    assert world.errors() == [(number, [NONE]) for number in range(6)]
    assert world.values(PLAIN) == [b"first", LARGE, b"next", b"small", LARGE, b"last"]


async def test_a_large_batch_is_decompressed_in_many_turns() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(bytes(32 * MEBIBYTE))))
    turns = await answered(world, 1)
    assert world.errors() == [(0, [NONE])]
    assert turns >= 32 * MEBIBYTE // (PIECE_SIZE_BYTES * STEPS_MAX)


async def test_small_batches_are_many_only_in_many_turns() -> None:
    """A hundred that decompress to 200 KB each arrive together."""
    world = ProduceWorld()
    for number in range(100):
        world.send((PLAIN, batch(b"%d" % number, bytes(200_000))))
    at_once = len(world.answers())
    assert at_once <= AT_ONCE_MAX_BYTES // 200_000 + 1
    await answered(world, 100)
    assert world.errors() == [(number, [NONE]) for number in range(100)]
    assert world.values(PLAIN)[::2] == [b"%d" % number for number in range(100)]


async def test_a_request_may_decompress_to_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is refused with an error after which Java's producer splits batches."""
    monkeypatch.setattr(decompressed, "request_limit", lambda size_bytes: 5 * MEBIBYTE)
    world = ProduceWorld()
    partition = world.partitions[PLAIN]
    for index in range(40):
        world.partitions[f"t{index}"] = partition
    world.send(*((f"t{index}", batch(bytes(2 * MEBIBYTE))) for index in range(40)))
    await answered(world, 1)
    ((_, errors),) = world.errors()
    assert errors == [NONE] * 2 + [ErrorCode.MESSAGE_TOO_LARGE] * 38


def test_no_gzip_reaches_the_limit_of_a_request() -> None:
    """Nor does one batch that is as large as any may be."""
    assert request_limit(0) == 128 * MEBIBYTE
    assert request_limit(1000) - request_limit(0) == 1024 * 1000


async def test_a_closed_connection_appends_nothing() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(LARGE)))
    await asyncio.sleep(0)
    world.connection.close()
    for _ in range(200):
        await asyncio.sleep(0)
    assert world.values(PLAIN) == []


async def test_a_leader_that_is_none_any_more_refuses() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(LARGE)))
    world.partitions[PLAIN].leader_id = 2
    await answered(world, 1)
    assert world.errors() == [(0, [ErrorCode.NOT_LEADER_OR_FOLLOWER])]
    assert world.values(PLAIN) == []


async def test_a_topic_that_is_changed_meanwhile_has_the_client_try_again() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(LARGE)))
    log = world.logs[PLAIN].log
    log.config = LogConfig(cleanup_policy=frozenset({"compact"}))
    await answered(world, 1)
    assert world.errors() == [(0, [ErrorCode.NOT_LEADER_OR_FOLLOWER])]
    world.send((PLAIN, batch(LARGE)))
    await answered(world, 2)
    assert world.errors()[1] == (1, [ErrorCode.INVALID_RECORD])
    assert world.values(PLAIN) == []


async def test_a_producer_is_asked_for_its_sequence_at_the_append() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(LARGE, producer=(7, 0, 0))))
    world.send((PLAIN, batch(LARGE, producer=(7, 0, 0))))
    world.send((PLAIN, batch(LARGE, producer=(7, 0, 5))))
    await answered(world, 3)
    assert world.errors() == [
        (0, [NONE]),
        (1, [NONE]),
        (2, [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]),
    ]
    assert world.values(PLAIN) == [LARGE]


async def test_what_is_wrong_with_a_record_is_said() -> None:
    world = ProduceWorld()
    broken = batch(LARGE, b"second")
    header = read_header(broken)
    broken[57:61] = (header.record_count + 1).to_bytes(4, "big")
    broken[23:27] = (header.last_offset_delta + 1).to_bytes(4, "big")
    set_crc(broken, 0)
    world.send((PLAIN, broken))
    await answered(world, 1)
    ((_, [answer]),) = world.answers()
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [2]
    assert answer.error_message


@pytest.mark.parametrize("codec", COMPRESSED)
async def test_a_large_batch_is_compressed_anew_as_its_topic_demands(codec: Codec) -> None:
    world = ProduceWorld()
    log = world.logs[PLAIN].log
    log.config = LogConfig(compression_type="lz4", message_timestamp_before_max_ms=1000)
    values = [b"%d" % number for number in range(3000)] + [LARGE]
    world.send((PLAIN, batch(*values, codec=codec)))
    world.send((PLAIN, batch(*values, codec=codec, timestamp=NOW_MS - 2000)))
    await answered(world, 2)
    assert world.errors() == [(0, [NONE]), (1, [ErrorCode.INVALID_TIMESTAMP])]
    assert world.values(PLAIN) == values
    (part,) = log.read(0, 10 * MEBIBYTE, max_offset=log.log_end_offset).parts  # type: ignore[union-attr]  # all is local
    assert read_header(bytes(part)).codec is Codec.LZ4  # type: ignore[arg-type]  # it is in memory


NAMED = id_of(1)


@pytest.mark.parametrize("codec", list(Codec))
async def test_schemas_are_noted_in_the_same_steps(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is decompressed or decoded once more, of broken batches neither."""
    monkeypatch.setattr(checks, "check_batch", None)
    monkeypatch.setattr(checks, "decompress", None)
    monkeypatch.setattr(checks, "decode_records", None)
    world = ProduceWorld()
    world.logs[CHECKED].log.config = replace(VALIDATES, max_message_bytes=64 * MEBIBYTE)
    world.schemas.register(1, f"{CHECKED}-value")
    good = [NAMED + LARGE, NAMED, NAMED + LARGE]
    world.send((CHECKED, batch(*good, codec=codec)))
    world.send((CHECKED, batch(NAMED, LARGE, b"", codec=codec)))
    broken = batch(*good, codec=codec)
    broken[-1] ^= 1
    world.send((CHECKED, broken))
    turns = await answered(world, 3)
    assert turns >= MEBIBYTE // (PIECE_SIZE_BYTES * STEPS_MAX)  # some codecs' blocks are large
    assert world.errors() == [
        (0, [NONE]),
        (1, [ErrorCode.INVALID_RECORD]),
        (2, [ErrorCode.CORRUPT_MESSAGE]),
    ]
    refused = [error.batch_index for error in world.answers()[1][1][0].record_errors]
    assert refused == [1, 2]
    assert world.values(CHECKED) == good


async def test_a_request_whose_schemas_are_asked_for_waits_with_what_was_noted() -> None:
    world = ProduceWorld()
    world.schemas.register(1, f"{CHECKED}-value")
    world.schemas.is_slow = True
    world.send((CHECKED, batch(NAMED + LARGE)))
    await until(lambda: world.schemas.asked != [])
    assert world.answers() == []
    world.schemas.answer_now()
    await answered(world, 1)
    assert world.errors() == [(0, [NONE])]


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(),
        LogConfig(compression_type="zstd"),
        LogConfig(message_timestamp_before_max_ms=1000),
        LogConfig(message_timestamp_type="LogAppendTime", compression_type="gzip"),
    ],
)
async def test_long_batches_without_a_codec_are_checked_in_many_turns(config: LogConfig) -> None:
    """Both if the topic has another format, and if there are very many records."""
    world = ProduceWorld()
    world.logs[PLAIN].log.config = config
    values = [b"%d" % number for number in range(20_000)]
    world.send((PLAIN, batch(b"first", codec=Codec.NONE)))
    for _ in range(2):
        world.send((PLAIN, batch(*values, codec=Codec.NONE)))
    assert len(world.answers()) == 1
    turns = await answered(world, 3)
    assert turns >= 2 * len(values) // (512 * STEPS_MAX)
    assert world.errors() == [(number, [NONE]) for number in range(3)]
    assert world.values(PLAIN) == [b"first", *values, *values]


async def test_large_batches_that_stay_as_they_are_are_appended_at_once() -> None:
    world = ProduceWorld()
    for _ in range(2):
        world.send((PLAIN, batch(*[bytes(100_000)] * 9, codec=Codec.NONE)))
    assert world.errors() == [(0, [NONE]), (1, [NONE])]


async def test_acks_0_is_appended_unanswered() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(LARGE)), acks=0)
    await until(lambda: world.values(PLAIN) != [])
    world.send((PLAIN, batch(b"next")))
    assert world.errors() == [(1, [NONE])]


async def test_of_a_partition_that_is_named_twice_the_last_counts() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(b"first")), (PLAIN, batch(b"second", codec=Codec.NONE)))
    assert world.errors() == [(0, [NONE])]
    assert world.values(PLAIN) == [b"second"]


class Fake:
    """A check of so many steps, which notes when it is over."""

    def __init__(self, name: str, steps: int, over: list[str]) -> None:
        self.name = name
        self.steps = steps
        self.over = over

    def run(self) -> Steps:
        for _ in range(self.steps):
            yield None
        self.over.append(self.name)
        return CheckedBatch(LogConfig())


async def test_connections_take_turns() -> None:
    """One that sends many batches delays another by those under way only."""
    decompression = Decompression()
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 0)
    over: list[str] = []

    async def request(name: str, batches: int) -> None:
        for number in range(batches):
            steps = Fake(f"{name}{number}", 100, over).run()
            await decompression.check(steps, clock, lambda: True)

    greedy = [asyncio.ensure_future(request(f"greedy {one} ", 10)) for one in range(4)]
    await asyncio.sleep(0)
    modest = asyncio.ensure_future(request("modest ", 1))
    await asyncio.wait([modest])
    assert over.index("modest 0") <= ACTIVE_MAX + 4
    await asyncio.gather(*greedy)
    assert len(over) == 41


async def test_a_request_that_repeats_one_before_does_not_overtake_a_large_one() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(b"first")))
    assert client_state(world.connection).repeated is not None
    world.send((PLAIN, batch(LARGE)))
    world.send((PLAIN, batch(b"third")))
    await answered(world, 3)
    assert world.values(PLAIN) == [b"first", LARGE, b"third"]
