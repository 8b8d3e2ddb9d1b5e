"""Requests that declare more than they hold are refused, and nothing is made room for."""

import tracemalloc
from collections.abc import Callable
from struct import pack

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.node.broker.produce.codec import parse_produce
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.codec.runtime import REQUEST_ELEMENTS_MAX, REQUEST_NAMES_MAX
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offsets import OffsetFetchRequest
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.varint import write_unsigned_varint

BODIES = {
    "arrays of two billion": b"\x7f\xff\xff\xff" * 8,
    "arrays of two billion behind a field": bytes(4) + b"\x7f\xff\xff\xff" * 8,
    "compact arrays of two billion": b"\xff\xff\xff\xff\x07" * 8,
    "compact arrays of four billion": b"\xff\xff\xff\xff\x0f" * 8,
    "compact ones behind a field": b"\x01" + b"\xff\xff\xff\xff\x07" * 6,
    "strings of 32 KB": b"\x7f\xff" * 16,
}
ROOM_BYTES = 1 << 20


@pytest.mark.parametrize("case", BODIES)
def test_declared_sizes_are_not_believed(case: str) -> None:
    body = bytearray(BODIES[case])
    places = [(api, version) for api in APIS.values() for version in _versions(api.key)]
    for api, version in places:  # compiles the codecs, which does take memory
        _decode(api.key, version, bytearray())
    tracemalloc.start()
    try:
        for api, version in places:
            _decode(api.key, version, body)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < ROOM_BYTES


def _groups(count: int) -> bytes:
    """DescribeGroups version 0, which names so many groups."""
    return pack(">i", count) + bytes(2 * count)


def _resources(count: int) -> bytes:
    """DescribeConfigs version 1 of so many resources: a type, then the name, then the keys."""
    return pack(">i", count) + bytes(7 * count + 1)


def _ids(count: int) -> bytes:
    """DeleteTopics version 6 of so many ids."""
    topics = [DeleteTopicState(name=None, topic_id=ZERO_UUID)] * count
    return encode(DeleteTopicsRequest(topics=topics), 6)


def _partitions(count: int) -> bytes:
    """OffsetFetch version 1: of one topic so many partitions, each four bytes."""
    return pack(">hihi", 0, 1, 0, count) + bytes(4 * count)


def _topics(count: int) -> bytes:
    """Metadata version 9, so many topics without a name or anything else."""
    return encode(MetadataRequest(topics=[MetadataRequestTopic(name="")] * count), 9)


@pytest.mark.parametrize(
    ("key", "version", "make"),
    [
        (ApiKey.DESCRIBE_GROUPS, 0, _groups),
        (ApiKey.METADATA, 9, _topics),
        (ApiKey.DESCRIBE_CONFIGS, 1, _resources),
        (ApiKey.DELETE_TOPICS, 6, _ids),
    ],
)
def test_a_request_names_so_many_things_and_no_more(
    key: ApiKey, version: int, make: Callable[[int], bytes]
) -> None:
    decode_at(APIS[key].request, version, make(REQUEST_NAMES_MAX), 0)
    with pytest.raises(DecodeError, match="names 100000 things at most"):
        decode_at(APIS[key].request, version, make(REQUEST_NAMES_MAX + 1), 0)


def test_a_request_has_so_many_elements_and_no_more() -> None:
    most = REQUEST_ELEMENTS_MAX - 1
    request, _ = decode_at(OffsetFetchRequest, 1, _partitions(most), 0)
    assert [len(topic.partition_indexes) for topic in request.topics or ()] == [most]
    with pytest.raises(DecodeError, match="elements at most"):
        decode_at(OffsetFetchRequest, 1, _partitions(most + 1), 0)


def test_a_hundred_thousand_partitions_are_moved_at_once() -> None:
    moved = ReassignablePartition(partition_index=0, replicas=[1, 2, 3])
    topics = [ReassignableTopic(name="t", partitions=[moved])] * REQUEST_NAMES_MAX
    request = AlterPartitionReassignmentsRequest(topics=topics)
    body = encode(request, 0)
    decoded, end = decode_at(AlterPartitionReassignmentsRequest, 0, body, 0)
    assert (len(decoded.topics), end) == (REQUEST_NAMES_MAX, len(body))


def test_a_struct_has_so_many_unknown_tags_and_no_more() -> None:
    body = bytearray(b"\x01\x00\x00\x00")
    write_unsigned_varint(body, 2000)
    for tag in range(100, 2100):
        write_unsigned_varint(body, tag)
        body += b"\x00"
    with pytest.raises(DecodeError, match="2000 tagged fields"):
        decode_at(MetadataRequest, 9, body, 0)


@pytest.mark.parametrize("version", [3, 12])
def test_so_does_a_produce_request(version: int) -> None:
    partitions = [PartitionProduceData(index=0, records=None)] * (REQUEST_ELEMENTS_MAX // 2)
    topics = [TopicProduceData(name="t", partition_data=partitions)] * 2
    frame = bytearray(encode(ProduceRequest(topic_data=topics), version))
    with pytest.raises(DecodeError, match="elements at most"):
        parse_produce(frame, 0, version)
    topics = [TopicProduceData(name="t", partition_data=[])] * (REQUEST_NAMES_MAX + 1)
    frame = bytearray(encode(ProduceRequest(topic_data=topics), version))
    with pytest.raises(DecodeError, match="things at most"):
        parse_produce(frame, 0, version)


def _versions(key: ApiKey) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


def _decode(key: ApiKey, version: int, body: bytearray) -> None:
    """A few bodies are requests by chance; anything but a DecodeError is a fault."""
    try:
        decode_at(APIS[key].request, version, body, 0)
    except DecodeError:
        return
