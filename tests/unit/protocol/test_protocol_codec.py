"""Codecs of messages: golden bytes, malformed input, unknown tags, and views into the frame."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.protocol.codec import decode, decode_at, encode, encode_parts
from barnabas.protocol.errors import DecodeError, EncodeError
from barnabas.protocol.fields import array_of, int32, nested, string
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.groups import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import CreateTopicsResponse
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class Nothing(Struct):
    """A struct of no bytes, such as no message of Kafka holds."""


@message(versions="0-1", flexible="1+")
class Crowd(Message):
    members: list[Nothing] = array_of(Nothing, "0+")


@struct
class Leaf(Struct):
    size: int = int32("0+", default=7)


@message(versions="0-1", flexible="1+")
class Branch(Message):
    leaf: Leaf | None = nested(Leaf, "0+", nullable="0+", default=None)
    late: Leaf | None = nested(Leaf, "1+", nullable="1+", default=None, tagged="1+", tag=3)
    name: str | None = string("1+", nullable="1+", default=None, tagged="1+", tag=1)


GOLDEN: list[tuple[str, Message, int, str]] = [
    (
        "a classic string has two bytes of length",
        FindCoordinatorRequest(key="grp"),
        0,
        "0003 677270",
    ),
    (
        "a compact string has length + 1 in a varint, and the struct its count of tags",
        ApiVersionsRequest(client_software_name="lib", client_software_version="1"),
        3,
        "04 6c6962 02 31 00",
    ),
    ("a classic null array is -1", MetadataRequest(topics=None), 1, "ffffffff"),
    (
        "a compact array has count + 1",
        MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=Uuid(bytes(range(16))), name=None)],
            allow_auto_topic_creation=False,
        ),
        12,
        "02 000102030405060708090a0b0c0d0e0f 00 00 00 00 00",
    ),
    (
        "tagged fields go by tag, each with its size",
        ApiVersionsResponse(finalized_features_epoch=5, zk_migration_ready=True),
        3,
        "0000 01 00000000 02 01 08 0000000000000005 03 01 01",
    ),
    ("a nullable struct has a marker", Branch(leaf=Leaf(size=1)), 0, "01 00000001"),
    ("a null struct is -1", Branch(), 1, "ff 00"),
    (
        "a tagged nullable struct has a marker as well",
        Branch(late=Leaf(size=2), name="n"),
        1,
        "ff 02 01 02 02 6e 03 06 01 00000002 00",
    ),
]


@pytest.mark.parametrize(
    ("value", "version", "expected"),
    [row[1:] for row in GOLDEN],
    ids=[row[0] for row in GOLDEN],
)
def test_golden_bytes(value: Message, version: int, expected: str) -> None:
    data = bytes.fromhex(expected)
    assert encode(value, version) == data
    assert decode(type(value), version, data) == value


REFUSED: list[tuple[str, type[Message], int, str, str]] = [
    ("null where none may be", FindCoordinatorRequest, 0, "ffff", "must not be null"),
    ("compact null where none may be", ApiVersionsRequest, 3, "00 02 31 00", "not be null"),
    ("a string longer than the rest", FindCoordinatorRequest, 0, "0004 677270", "4 bytes wanted"),
    ("a string of 32768 bytes", ApiVersionsRequest, 3, "818002" + "61" * 32768, "longer than"),
    ("invalid UTF-8", FindCoordinatorRequest, 0, "0001 ff", "invalid start byte"),
    ("more elements than bytes", MetadataRequest, 1, "7fffffff", "cannot fit"),
    ("a varint of six bytes", ApiVersionsRequest, 3, "ffffffffff01", "32 bits"),
    ("a varint beyond 32 bits", ApiVersionsRequest, 3, "ffffffff7f", "32 bits"),
    ("bytes left over", FindCoordinatorRequest, 0, "0001 61 00", "left over"),
    ("no bytes", FindCoordinatorRequest, 0, "", "end early"),
    ("a tag longer than the rest", ApiVersionsRequest, 3, "02 61 02 61 01 00 05 00", "5 bytes"),
    ("a tag beyond 31 bits", ApiVersionsRequest, 3, "02 61 02 61 01 ffffffff0f 00", "not a tag"),
    ("a tagged field with bytes to spare", Branch, 1, "ff 01 01 03 02 6e 00", "3 bytes given"),
    ("a tagged field that takes too much", Branch, 1, "ff 01 01 01 02 6e", "1 bytes given"),
    ("a crowd of nothing", Crowd, 0, "7fffffff", "cannot fit"),
    ("a version that does not exist", FindCoordinatorRequest, 99, "0001 61", "no version 99"),
]


@pytest.mark.parametrize(
    ("cls", "version", "data", "reason"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_refused(cls: type[Message], version: int, data: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode(cls, version, bytes.fromhex(data))


UNFIT: list[tuple[str, Message, int, str]] = [
    (
        "a field the version lacks",
        FindCoordinatorRequest(coordinator_keys=["a"]),
        0,
        "cannot carry",
    ),
    ("a number too large", FetchRequest(max_wait_ms=2**31), 12, "FetchRequest version 12"),
    ("a number that is a text", FetchRequest(max_wait_ms="1"), 12, "version 12"),  # type: ignore[arg-type]  # the point
    ("None where none may be", FindCoordinatorRequest(key=None), 0, "must not be None"),  # type: ignore[arg-type]  # the point
    ("a string too long", FindCoordinatorRequest(key="a" * 32768), 0, "version 0"),
    ("a compact string too long", FindCoordinatorRequest(key="a" * 32768), 3, "longer than"),
    ("half a surrogate pair", FindCoordinatorRequest(key="\ud800"), 0, "surrogates"),
    (
        "a uuid of fifteen bytes",
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=Uuid(bytes(15)))]),
        12,
        "16 bytes",
    ),
    ("a version that does not exist", FetchRequest(), 3, "no version 3"),
]


@pytest.mark.parametrize(
    ("value", "version", "reason"),
    [row[1:] for row in UNFIT],
    ids=[row[0] for row in UNFIT],
)
def test_unfit(value: Message, version: int, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        encode(value, version)


def test_an_ignorable_field_is_left_out() -> None:
    response = CreateTopicsResponse(throttle_time_ms=5)
    assert decode(CreateTopicsResponse, 2, encode(response, 2)) == response
    request = FetchRequest(rack_id="rack")
    assert decode(FetchRequest, 10, encode(request, 10)).rack_id == ""


def test_unknown_tags_are_kept_in_order() -> None:
    response = ApiVersionsResponse(finalized_features_epoch=5)
    response.unknown_tags = [(9, b"nine"), (0x4000, b"")]
    data = encode(response, 3)
    read = decode(ApiVersionsResponse, 3, data)
    assert read == response
    assert read.finalized_features_epoch == 5
    assert encode(read, 3) == data


def test_unknown_tags_need_a_flexible_version() -> None:
    request = FindCoordinatorRequest(key="a")
    request.unknown_tags = [(9, b"nine")]
    with pytest.raises(EncodeError, match="unknown_tags"):
        encode(request, 2)


def test_a_tag_given_twice_is_refused() -> None:
    response = ApiVersionsResponse(finalized_features_epoch=5)
    response.unknown_tags = [(1, b"again")]
    with pytest.raises(EncodeError, match="twice"):
        encode(response, 3)


def test_records_are_views_into_the_frame() -> None:
    partition = PartitionProduceData(index=1, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    frame = bytearray(encode(request, 9))
    read = decode(ProduceRequest, 9, frame)
    records = read.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    records[0] = ord("B")
    assert b"Batch" in frame


class Elsewhere:
    """Records that lie in a file: they have a length, and no bytes here."""

    def __len__(self) -> int:
        return 1000


def test_records_are_parts_of_their_own() -> None:
    far, near = Elsewhere(), memoryview(b"near")
    partitions = [
        PartitionData(records=far),  # type: ignore[arg-type]  # anything with a length is accepted
        PartitionData(records=near),
        PartitionData(records=None),
        PartitionData(records=b""),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 12):
        parts = encode_parts(response, version)
        assert len(parts) == 5
        assert parts[1] is far  # type: ignore[comparison-overlap]  # as above
        assert parts[3] is near
        data = b"".join([parts[0], bytes(1000), *parts[2:]])
        read = decode(FetchResponse, version, data).responses[0].partitions
        assert [partition.records for partition in read] == [bytes(1000), b"near", None, b""]


def test_decode_at_tells_where_the_message_ends() -> None:
    data = b"head" + encode(FindCoordinatorRequest(key="a"), 0) + b"tail"
    read, end = decode_at(FindCoordinatorRequest, 0, memoryview(data), 4)
    assert read.key == "a"
    assert data[end:] == b"tail"


def test_messages_are_slotted_and_compare_by_value() -> None:
    one, other = FetchRequest(max_wait_ms=1), FetchRequest(max_wait_ms=1)
    assert one == other
    assert one != FetchRequest()
    assert one != PartitionData()
    assert repr(Leaf(size=3)) == "Leaf(size=3)"
    assert FetchRequest().topics is not FetchRequest().topics
    with pytest.raises(AttributeError):
        one.max_wait = 2  # type: ignore[attr-defined]  # the point
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(TypeError, match="max_wait"):
        FetchRequest(max_wait=2)  # type: ignore[call-arg]  # the point
