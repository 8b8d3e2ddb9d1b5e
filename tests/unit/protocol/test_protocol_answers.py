"""Answers that cannot be encoded become error answers of the same API."""

from __future__ import annotations

import logging

import pytest

from barnabas.base.ids import Uuid
from barnabas.protocol.answers import encode_answer, error_answer
from barnabas.protocol.codec import decode, encode_parts
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.messages.groups import DescribedGroup, DescribeGroupsResponse
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


def quorum_with_a_directory_id() -> DescribeQuorumResponse:
    voter = ReplicaState(replica_id=1, replica_directory_id=Uuid(b"d" * 16), log_end_offset=7)
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0, leader_id=1, current_voters=[voter]
    )
    topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumResponse(topics=[topic])


def test_an_answer_that_encodes_is_what_it_is() -> None:
    response = quorum_with_a_directory_id()
    assert encode_answer(response, 2) == encode_parts(response, 2)


@pytest.mark.parametrize("version", [0, 1])
def test_a_field_that_the_version_lacks(version: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        parts = encode_answer(quorum_with_a_directory_id(), version)
    answer = decode(DescribeQuorumResponse, version, b"".join(parts))
    assert answer.error_code == FAILED
    assert answer.topics[0].topic_name == "__cluster_metadata"
    assert answer.topics[0].partitions[0].error_code == FAILED
    assert len(caplog.records) == 1, "logged once"


def offsets(*indexes: int) -> OffsetCommitResponse:
    parts = [OffsetCommitResponsePartition(partition_index=index) for index in indexes]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])


def test_every_part_says_so_where_the_whole_has_no_error() -> None:
    answer = error_answer(offsets(1, 2), 8, FAILED)
    partitions = answer.topics[0].partitions
    assert [(p.partition_index, p.error_code) for p in partitions] == [(1, FAILED), (2, FAILED)]


@pytest.mark.parametrize("index", [1 << 31, None, "1"])
def test_a_number_out_of_its_range_is_left_out(index: object) -> None:
    response = offsets(1)
    response.topics[0].partitions[0].partition_index = index  # type: ignore[assignment]
    parts = encode_answer(response, 8)
    answer = decode(OffsetCommitResponse, 8, b"".join(parts))
    assert answer.topics[0].name == "t"
    assert answer.topics[0].partitions[0].error_code == FAILED


@pytest.mark.parametrize("text", ["x" * 32768, "\ud800", None, 7])
def test_a_string_that_does_not_fit_is_left_out(text: object) -> None:
    group = DescribedGroup(group_id="g", group_state=text)  # type: ignore[arg-type]
    parts = encode_answer(DescribeGroupsResponse(groups=[group]), 5)
    answer = decode(DescribeGroupsResponse, 5, b"".join(parts))
    assert (answer.groups[0].group_id, answer.groups[0].group_state) == ("g", "")
    assert answer.groups[0].error_code == FAILED


def test_what_is_nullable_stays_null() -> None:
    broker = MetadataResponseBroker(node_id=1, host="h", port=1 << 40, rack=None)
    response = MetadataResponse(brokers=[broker], topics=[MetadataResponseTopic(name=None)])
    answer = decode(MetadataResponse, 12, b"".join(encode_answer(response, 12)))
    assert (answer.brokers[0].host, answer.brokers[0].rack) == ("h", None)
    assert (answer.topics[0].name, answer.topics[0].error_code) == (None, FAILED)


def test_without_an_error_code_there_is_no_error_answer() -> None:
    response = MetadataResponse(brokers=[MetadataResponseBroker(port=1 << 40)])
    with pytest.raises(EncodeError, match="MetadataResponse"):
        encode_answer(response, 12)
