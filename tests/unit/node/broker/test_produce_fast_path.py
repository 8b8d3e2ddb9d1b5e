"""Repeated produce requests are answered as the general way answers them."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import Uuid
from barnabas.node.broker.produce.codec import (
    TOPIC_ID_FROM,
    PartitionAnswer,
    encode_answers,
    parse_produce,
)
from barnabas.node.broker.produce.fast_path import SHAPES_MAX, ProduceShapes
from barnabas.node.broker.responses import frame_small_response
from barnabas.protocol.codec import decode_at
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.connections import RequestHeader
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

VERSIONS = range(9, 14)


class FakeLog(NamedTuple):
    log_start_offset: int = 5


class FakePartition(NamedTuple):
    log: FakeLog = FakeLog()


def frame_of(
    version: int,
    correlation_id: int,
    records: bytes | None,
    *,
    client_id: str = "client",
    partitions: tuple[int, ...] = (3,),
    acks: int = -1,
    name: str = "topic",
) -> bytearray:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1500,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=Uuid(name.encode().ljust(16)),
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index in partitions
                ],
            )
        ],
    )
    return bytearray(encode_request(0, version, correlation_id, client_id, request))


def learn(shapes: ProduceShapes, version: int, frame: bytearray) -> None:
    _, position = decode_at(RequestHeader, 2, frame, 0)
    request = parse_produce(frame, position, version)
    shapes.learn(frame, version, request, FakePartition())  # type: ignore[arg-type]


@given(
    version=st.sampled_from(VERSIONS),
    first=st.binary(min_size=1, max_size=300),
    again=st.binary(min_size=1, max_size=40_000),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    time_ms=st.integers(-1, 2**62),
    index=st.integers(0, 2**31 - 1),
)
def test_a_repeated_request_gets_the_answer_of_the_general_way(
    version: int,
    first: bytes,
    again: bytes,
    correlation_id: int,
    offset: int,
    time_ms: int,
    index: int,
) -> None:
    shapes = ProduceShapes()
    learn(shapes, version, frame_of(version, 1, first, partitions=(index,)))
    frame = frame_of(version, correlation_id, again, partitions=(index,))
    found = shapes.find(frame)
    assert found is not None
    shape, start, end = found
    assert bytes(frame[start:end]) == again
    assert (shape.index, shape.acks, shape.timeout_ms) == (index, -1, 1500)
    topic = Uuid(b"topic".ljust(16)) if version >= TOPIC_ID_FROM else "topic"
    answer = PartitionAnswer(index, 0, offset, time_ms, 5)  # type: ignore[arg-type]
    body = encode_answers(version, [(topic, [answer])])
    (expected,) = frame_small_response(correlation_id, True, body)
    assert shape.respond(frame, offset, time_ms) == expected


@pytest.mark.parametrize(
    "other",
    [
        frame_of(12, 2, b"records", client_id="another"),
        frame_of(12, 2, b"records", partitions=(4,)),
        frame_of(12, 2, b"records", partitions=(3, 4)),
        frame_of(12, 2, b"records", acks=1),
        frame_of(12, 2, b"records", name="topix"),
        frame_of(11, 2, b"records"),
        frame_of(12, 2, b""),
        frame_of(12, 2, None),
        frame_of(12, 2, b"records")[:-1],
        frame_of(12, 2, b"records") + b"\0",
        frame_of(12, 2, b"records")[:-1] + b"\x01",
    ],
)
def test_what_differs_takes_the_general_way(other: bytearray) -> None:
    shapes = ProduceShapes()
    learn(shapes, 12, frame_of(12, 1, b"records"))
    assert shapes.find(frame_of(12, 2, b"others")) is not None
    assert shapes.find(other) is None


@pytest.mark.parametrize(
    ("version", "options"), [(8, {}), (12, {"acks": 0}), (12, {"partitions": (1, 2)})]
)
def test_what_cannot_be_told_by_its_beginning_is_not_learnt(
    version: int, options: dict[str, object]
) -> None:
    shapes = ProduceShapes()
    frame = frame_of(version, 1, b"records", **options)  # type: ignore[arg-type]
    _, position = decode_at(RequestHeader, 1 if version < 9 else 2, frame, 0)
    request = parse_produce(frame, position, version)
    shapes.learn(frame, version, request, FakePartition())  # type: ignore[arg-type]
    assert shapes.find(frame) is None


def test_partitions_in_turn_are_all_remembered_up_to_a_bound() -> None:
    shapes = ProduceShapes()
    for index in range(SHAPES_MAX):
        learn(shapes, 12, frame_of(12, 1, b"records", partitions=(index,)))
    for index in range(SHAPES_MAX):
        found = shapes.find(frame_of(12, 2, b"more", partitions=(index,)))
        assert found is not None
        assert found[0].index == index
    learn(shapes, 12, frame_of(12, 1, b"records", partitions=(SHAPES_MAX,)))
    assert shapes.find(frame_of(12, 2, b"more", partitions=(0,))) is None
