"""Repeated OffsetCommits do and answer what the general way does and answers."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.base.network import ListenerOptions
from barnabas.node.broker.apis.offsets import handle_offset_commit
from barnabas.node.broker.client_state import ClientState
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.route import raw_route
from barnabas.node.net.connection import Reply
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol import apis
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.group_world import GroupWorld

PARTITIONS = range(4)


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


class Broker:
    """What stands behind one connection: a dispatcher, and a coordinator without a disk."""

    def __init__(self, *, remembers: bool) -> None:
        self.world = GroupWorld()
        self.services = SimpleNamespace(
            authorizer=ALLOW_ALL,
            image=SimpleNamespace(topics=self.topics()),
            groups=self.world.coordinator,
            served_apis=set(),
        )
        services: Any = self.services
        self.dispatcher = Dispatcher(
            services, [raw_route(apis.OFFSET_COMMIT, handle_offset_commit)]
        )
        self.connection: Any = SimpleNamespace(
            state=None,
            times=None,
            peer_host="localhost",
            listener_name="PLAINTEXT",
            listener=ListenerOptions(),
            frames=[],
        )
        self.remembers = remembers

    @staticmethod
    def topics(*gone: str) -> Any:
        images = [
            SimpleNamespace(name=name, id=topic_id(name), partitions=set(PARTITIONS))
            for name in ("one", "two")
            if name not in gone
        ]
        return SimpleNamespace(
            by_name={image.name: image for image in images},
            by_id={image.id: image for image in images},
        )

    @property
    def knows_a_shape(self) -> bool:
        state = self.connection.state
        return isinstance(state, ClientState) and state.repeated is not None

    async def answer(self, frame: bytes) -> bytes:
        if not self.remembers:
            self.connection.state = None
        answer = self.dispatcher(self.connection, bytearray(frame))
        if isinstance(answer, Reply):
            assert not answer.is_done
            self.world.log.commit()
            await asyncio.sleep(0)
            answer = answer.take()
        return b"".join(map(bytes, answer))  # type: ignore[arg-type]  # no parts of files here


def request_of(
    *offsets: tuple[int, int], group: str = "g", topic: str = "one", metadata: str | None = ""
) -> OffsetCommitRequest:
    """A commit of (partition, offset)s."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=offset % 7 - 1,
            committed_metadata=metadata,
        )
        for index, offset in offsets
    ]
    stored = OffsetCommitRequestTopic(name=topic, topic_id=topic_id(topic), partitions=partitions)
    return OffsetCommitRequest(group_id=group, topics=[stored])


def frame_of(request: OffsetCommitRequest, version: int, correlation_id: int = 1) -> bytes:
    return bytes(encode_request(8, version, correlation_id, "client", request))


def some_request(chance: random.Random) -> OffsetCommitRequest:
    indexes = chance.choice(((0,), (0, 1, 2), (0, 1, 2), (1, 0, 2)))
    request = request_of(
        *((index, chance.randrange(2**40)) for index in indexes),
        group=chance.choice(("g", "g", "h", "")),
        topic=chance.choice(("one", "one", "one", "two")),
        metadata=chance.choice(("", "", "", None, "text")),
    )
    if chance.random() < 0.1:
        request.generation_id_or_member_epoch = 3
    if chance.random() < 0.1:
        request.topics[0].partitions[-1].partition_index = 99
    return request


@pytest.mark.parametrize("version", range(2, 11))
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_come_to_the_same(version: int, seed: int) -> None:
    chance = random.Random(seed)
    again, general = Broker(remembers=True), Broker(remembers=False)

    async def run() -> None:
        request = some_request(chance)
        for number in range(150):
            if chance.random() < 0.2:
                request = some_request(chance)
            for partition in request.topics[0].partitions:
                partition.committed_offset += chance.randrange(3)
            frame = frame_of(request, version, chance.randrange(-(2**31), 2**31))
            holds = chance.random() < 0.3
            happens = chance.random()
            for broker in (again, general):
                broker.world.clock.advance(10)
                broker.world.log.holds_commits = holds
                if happens < 0.03:
                    broker.services.image.topics = broker.topics("one")
                elif happens < 0.1:
                    broker.services.image.topics = broker.topics()
                elif happens < 0.13:
                    broker.world.coordinator.unload(0)
                elif happens < 0.2:
                    broker.world.coordinator.load(0, number)
            assert await again.answer(frame) == await general.answer(frame)
            assert again.world.log[0].batches == general.world.log[0].batches

    asyncio.run(run())
    assert again.world.log[0].end_offset > 100
    assert again.knows_a_shape == (version >= 8)


def canonical(*offsets: tuple[int, int], **options: Any) -> bytes:
    return frame_of(request_of(*offsets, **options), 9)


@pytest.mark.parametrize(
    ("other", "is_taken"),
    [
        (canonical((0, 7), (1, 8)), True),
        (canonical((0, 7), (2, 8)), False),
        (canonical((1, 7), (0, 8)), False),
        (canonical((0, 7)), False),
        (canonical((0, 7), (1, 8), group="x"), False),
        (canonical((0, 7), (1, 8), topic="two"), False),
        (canonical((0, 7), (1, 8), metadata=None), False),
        (canonical((0, 7), (1, 8), metadata="m"), False),
        (canonical((0, 7), (1, 8))[:-1], False),
        (canonical((0, 7), (1, 8)) + b"\0", False),
        (canonical((0, 7), (1, 8))[:-1] + b"\1", False),
        (frame_of(request_of((0, 7), (1, 8)), 8), False),
    ],
)
def test_what_differs_takes_the_general_way(other: bytes, is_taken: bool) -> None:
    async def run() -> None:
        broker = Broker(remembers=True)
        await broker.answer(canonical((0, 1), (1, 2)))
        shape = broker.connection.state.repeated
        assert (shape.take(bytearray(other)) is not None) is is_taken

    asyncio.run(run())


@pytest.mark.parametrize(
    "frame",
    [
        canonical((0, 1)) + b"\0",
        canonical((0, 1)) + encode(request_of((0, 1)), 9),
        canonical((0, 1))[:-1] + b"\1\0\0",
        canonical((0, 1), metadata="m"),
        canonical(*((0, offset) for offset in range(65))),
        canonical(),
    ],
)
def test_what_is_out_of_the_ordinary_is_not_remembered(frame: bytes) -> None:
    async def run() -> None:
        broker = Broker(remembers=True)
        assert await broker.answer(frame)
        assert not broker.knows_a_shape

    asyncio.run(run())


def test_a_malformed_request_closes_the_connection() -> None:
    with pytest.raises(DecodeError):
        asyncio.run(Broker(remembers=True).answer(canonical((0, 1))[:-3]))
