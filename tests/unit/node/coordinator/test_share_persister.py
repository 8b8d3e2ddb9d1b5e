"""The persister: whom it asks, what it asks again, what it gathers, and in which order."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.operations import (
    DELETE,
    INITIALIZE,
    READ,
    SUMMARY,
    WRITE,
    Operation,
    serve,
)
from barnabas.node.coordinator.share.persister_client import ATTEMPTS_MAX, CoordinatorPersister
from barnabas.node.coordinator.share.state import (
    ShareState,
    ShareStateError,
    ShareSummary,
    StateBatch,
)
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.image import (
    BrokerImage,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import SHARE_GROUP_STATE
from support.patience import PATIENCE_S
from support.share_world import TOPIC, ShareWorld, key

HERE, THERE = 1, 2
OPERATIONS: list[Operation] = [INITIALIZE, READ, WRITE, DELETE, SUMMARY]


class Far:
    """Another node, seen through a connection that a test may hold or break."""

    def __init__(self, world: ShareWorld) -> None:
        self.world = world
        self.requests: list[Any] = []
        self.failures: list[Exception | ErrorCode] = []
        self.held: list[Promise[None]] | None = None

    def reaches(self, broker_id: int) -> bool:
        return broker_id == THERE

    async def ask(self, _broker_id: int, request: Any) -> Any:
        self.requests.append(request)
        if self.held is not None:
            promise: Promise[None] = Promise()
            self.held.append(promise)
            await promise
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, Exception):
            raise failure
        operation = next(entry for entry in OPERATIONS if type(request) is entry.request)
        outcome: Any = serve(operation, self.world.coordinator, request)
        if failure is not None:
            for topic in outcome.results:
                for result in topic.partitions:
                    result.error_code = failure
        return outcome

    def release(self) -> None:
        assert self.held is not None
        held, self.held = self.held, None
        for promise in held:
            promise.settle(None)

    def close(self) -> None:
        pass


class Setting:
    """A persister on node 1, and share coordinators on both nodes."""

    node_id = HERE

    def __init__(self) -> None:
        self.near = ShareWorld()
        self.clock = self.near.clock
        self.far = Far(ShareWorld())
        self.leader: int | None = HERE
        self.creations = 0
        self.persister = CoordinatorPersister(
            self.clock,
            self,  # type: ignore[arg-type]  # stands for the ways to other nodes
            lambda: self.image,
            self.near.coordinator,
            source=random.Random(1),
            create_topic=self.create,
        )

    def channel(self, _purpose: str) -> Far:
        return self.far

    @property
    def image(self) -> MetadataImage:
        """Node 2 is there; the state topic is led by `leader`, or is not there."""
        endpoint = Endpoint("there", 9092, 0)
        brokers = {
            THERE: BrokerImage(
                THERE, 1, Uuid(bytes(16)), {"PLAINTEXT": endpoint}, None, False, False, ()
            )
        }
        if self.leader is None:
            return MetadataImage(brokers=brokers)
        partition = PartitionImage((1, 2), (1, 2), self.leader, 0, 0)
        topic = TopicImage(SHARE_GROUP_STATE, Uuid(bytes(15) + b"\x01"), {0: partition})
        return MetadataImage(
            topics=TopicsImage({topic.name: topic}, {topic.id: topic}), brokers=brokers
        )

    async def create(self) -> None:
        self.creations += 1
        await turn()
        self.leader = HERE

    async def over_time(self, work: Awaitable[Any]) -> Any:
        """The outcome of work that may wait on the clock."""
        task = asyncio.ensure_future(work)
        for _ in range(ATTEMPTS_MAX + 1):
            await turn()
            if task.done():
                break
            self.clock.advance(20_000)
        return await task


async def turn() -> None:
    """Let everything run that can."""
    for _ in range(30):
        await asyncio.sleep(0)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def initialize(setting: Setting, partition: int = 0) -> Awaitable[None]:
    return setting.persister.initialize("g", TOPIC, partition, 1, 10)


def read(setting: Setting, partition: int = 0) -> Awaitable[ShareState]:
    return setting.persister.read("g", TOPIC, partition, 3)


def write(setting: Setting, offset: int, *batches: StateBatch, epoch: int = 1) -> Awaitable[None]:
    return setting.persister.write("g", TOPIC, 0, epoch, 3, offset, len(batches), batches)


@pytest.mark.parametrize("leader", [HERE, THERE])
async def test_all_that_can_be_asked(setting: Setting, leader: int) -> None:
    setting.leader = leader
    await initialize(setting)
    assert await read(setting) == ShareState(1, 10)
    batch = StateBatch(12, 14, 2, 1)
    await write(setting, 11, batch)
    assert await read(setting) == ShareState(1, 11, (batch,))
    assert await setting.persister.read_summary("g", TOPIC, 0) == ShareSummary(1, 3, 11, 1)
    await setting.persister.delete("g", TOPIC, 0)
    with pytest.raises(ShareStateError) as caught:
        await read(setting)
    assert caught.value.error is ErrorCode.INVALID_REQUEST
    assert bool(setting.far.requests) == (leader == THERE)


async def test_a_refusal_is_not_asked_again(setting: Setting) -> None:
    setting.leader = THERE
    await initialize(setting)
    await read(setting)
    with pytest.raises(ShareStateError) as caught:
        await setting.persister.read("g", TOPIC, 0, 2)
    assert caught.value.error is ErrorCode.FENCED_LEADER_EPOCH
    assert len(setting.far.requests) == 3


@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ConnectionError("gone"),
        TimeoutError("late"),
    ],
    ids=str,
)
async def test_what_passes_is_asked_again(setting: Setting, failure: Any) -> None:
    setting.leader = THERE
    setting.far.failures = [failure] * 3
    await setting.over_time(initialize(setting))
    assert len(setting.far.requests) == 4
    assert key() in setting.far.world.shard.entries


async def test_pauses_grow_and_end(setting: Setting) -> None:
    setting.leader = THERE
    setting.far.failures = [ErrorCode.NOT_COORDINATOR] * 99
    task = asyncio.ensure_future(initialize(setting))
    pauses = []
    while True:
        await turn()
        if task.done():
            break
        started_ms, asked = setting.clock.monotonic_ms(), len(setting.far.requests)
        while len(setting.far.requests) == asked:
            setting.clock.advance(10)
            await turn()
        pauses.append(setting.clock.monotonic_ms() - started_ms)
    with pytest.raises(ShareStateError) as caught:
        await task
    assert caught.value.error is ErrorCode.NOT_COORDINATOR
    assert len(setting.far.requests) == ATTEMPTS_MAX
    assert all(1.3 < after / before < 3.2 for before, after in itertools.pairwise(pauses))


async def test_a_coordinator_that_moves_is_followed(setting: Setting) -> None:
    setting.leader = THERE
    setting.far.failures = [ConnectionError("gone")]
    task = asyncio.ensure_future(initialize(setting))
    await turn()
    setting.leader = HERE
    await setting.over_time(task)
    assert key() in setting.near.shard.entries


async def test_the_topic_is_created_once(setting: Setting) -> None:
    setting.leader = None
    await asyncio.gather(*(initialize(setting, partition) for partition in range(3)))
    assert setting.creations == 1
    assert len(setting.near.shard.entries) == 3


async def test_what_comes_while_a_request_is_under_way_goes_together(setting: Setting) -> None:
    setting.leader = THERE
    setting.far.held = []
    tasks = [asyncio.ensure_future(initialize(setting, partition)) for partition in range(3)]
    await turn()
    assert len(setting.far.requests) == 1
    setting.far.release()
    await asyncio.gather(*tasks)
    sizes = [len(request.topics[0].partitions) for request in setting.far.requests]
    assert sum(sizes) == 3
    assert len(sizes) <= 2


async def test_writes_stay_in_order_and_those_that_wait_are_joined(setting: Setting) -> None:
    setting.leader = THERE
    await initialize(setting)
    setting.far.requests.clear()
    setting.far.held = []
    setting.far.failures = [ErrorCode.NOT_COORDINATOR]
    first = asyncio.ensure_future(write(setting, 11, StateBatch(12, 12, 0, 1)))
    await turn()
    later = [
        asyncio.ensure_future(write(setting, 12, StateBatch(12, 13, 2, 1))),
        asyncio.ensure_future(write(setting, -1, StateBatch(14, 14, 2, 1))),
        asyncio.ensure_future(write(setting, 13, StateBatch(12, 15, 2, 1), epoch=2)),
    ]
    await turn()
    assert len(setting.far.requests) == 1
    setting.far.release()
    await setting.over_time(first)
    await setting.over_time(asyncio.gather(*later))
    starts = [request.topics[0].partitions[0].start_offset for request in setting.far.requests]
    assert starts == [11, 11, 12, 13], "the first was asked again before the others were asked"
    joined = setting.far.requests[2].topics[0].partitions[0]
    assert [(b.first_offset, b.last_offset) for b in joined.state_batches] == [(12, 14)]
    assert await read(setting) == ShareState(1, 13, (StateBatch(13, 15, 2, 1),))


async def test_a_read_waits_for_the_writes_before_it(setting: Setting) -> None:
    setting.leader = THERE
    await initialize(setting)
    setting.far.failures = [ErrorCode.NOT_COORDINATOR]
    writes = [
        asyncio.ensure_future(write(setting, 11, StateBatch(12, 12, 2, 1))),
        asyncio.ensure_future(write(setting, 12, StateBatch(13, 13, 2, 1))),
    ]
    await turn()
    reading = asyncio.ensure_future(read(setting))
    await turn()
    assert not reading.done()
    await setting.over_time(asyncio.gather(*writes))
    state = await setting.over_time(reading)
    assert state == ShareState(1, 12, (StateBatch(12, 13, 2, 1),))


async def test_closing_does_not_wait_for_the_topic(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.leader = None
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(setting.persister, "_create_topic", lambda: _wait_for(never))
    tasks = [asyncio.ensure_future(write(setting, 1)), asyncio.ensure_future(read(setting))]
    await turn()
    async with asyncio.timeout(PATIENCE_S):
        await setting.persister.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, ShareStateError) for outcome in outcomes), outcomes
    assert never.cancelled()


async def _wait_for(future: asyncio.Future[None]) -> None:
    await future


@pytest.mark.parametrize("leader", [THERE, -1])
async def test_closing_ends_what_waits(setting: Setting, leader: int) -> None:
    setting.leader = leader
    setting.far.failures = [ConnectionError("gone")] * 99
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: initialize(setting),
        lambda: write(setting, 1),
        lambda: write(setting, 2),
    ]
    tasks = [asyncio.ensure_future(call()) for call in calls]
    await turn()
    await setting.persister.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, ShareStateError) for outcome in outcomes), outcomes
    with pytest.raises(ShareStateError):
        await read(setting)
