"""What was read for a share group: cut at batches, without aborted ones, and as it is answered."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.fetch.codec import NodeAddress
from barnabas.node.broker.share.fetch_codec import ShareAnswer, encode_share_fetch
from barnabas.node.share.core.states import Acquired
from barnabas.node.share.fetched import FetchedBatches
from barnabas.node.share.settings import OffsetReset, ResetStrategy, parse_reset
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareFetchableTopicResponse,
    ShareFetchPartitionData,
    ShareFetchResponse,
)
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.protocol.records.records import Record, encode_batch

TOPIC_ID = Uuid(bytes(range(16)))


def batch(first: int, count: int) -> bytes:
    records = [Record(first + index, 0, None, b"v") for index in range(count)]
    return bytes(encode_batch(records, base_offset=first))


def whole(parts: list[Part]) -> bytes:
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no file here


@pytest.mark.parametrize("together", [True, False])
def test_only_batches_with_acquired_records_are_sent(together: bool) -> None:
    batches = [batch(0, 5), batch(5, 5), batch(10, 5), batch(20, 1)]
    parts = [b"".join(batches)] if together else batches
    fetched = FetchedBatches(parts, -1, 100)
    assert (fetched.bases, fetched.lasts) == ([0, 5, 10, 20], [4, 9, 14, 20])
    for first, last, sent in ((0, 20, batches), (6, 6, batches[1:2]), (7, 12, batches[1:3])):
        sliced, size_bytes = fetched.slice(first, last)
        assert whole(sliced) == b"".join(sent)
        assert size_bytes == len(whole(sliced))


def test_nobody_looks_further_than_can_be_acquired() -> None:
    fetched = FetchedBatches([batch(index * 5, 5) for index in range(9)], 11, 4)
    assert fetched.lasts[-1] == 19


@pytest.mark.parametrize("cut", [1, 40, 60])
def test_a_batch_that_is_cut_off_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptBatchError):
        FetchedBatches([batch(0, 5)[:cut]], -1, 100)


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("earliest", OffsetReset(ResetStrategy.EARLIEST)),
        ("latest", OffsetReset(ResetStrategy.LATEST)),
        ("by_duration:P1DT2H3M4.5S", OffsetReset(ResetStrategy.BY_DURATION, 93_784_500)),
        ("by_duration:PT0S", OffsetReset(ResetStrategy.BY_DURATION, 0)),
    ],
)
def test_where_a_group_begins(text: str, reset: OffsetReset) -> None:
    assert parse_reset(text) == reset


@pytest.mark.parametrize("version", [1, 2])
def test_the_answer_is_that_of_the_compiled_codec(version: int) -> None:
    answer = ShareAnswer(3, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer.ack_error, answer.ack_message = ErrorCode.INVALID_RECORD_STATE, "not acquired"
    answer.leader = (2, 7)
    refused = ShareAnswer(5, ErrorCode.UNKNOWN_SERVER_ERROR)
    refused.message = "not initialised"
    full = ShareAnswer(4)
    full.parts, full.size_bytes = [b"abc", b"de"], 5
    full.acquired = [Acquired(1, 2, 3), Acquired(4, 5, 6)]
    parts = encode_share_fetch(
        ErrorCode.NONE,
        30_000,
        [(TOPIC_ID, [answer, full, refused])],
        [NodeAddress(2, "host", 9092, None), NodeAddress(3, "other", 9093, "r")],
    )
    unknown = LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=30_000,
        responses=[
            ShareFetchableTopicResponse(
                topic_id=TOPIC_ID,
                partitions=[
                    ShareFetchPartitionData(
                        partition_index=3,
                        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        acknowledge_error_code=ErrorCode.INVALID_RECORD_STATE,
                        acknowledge_error_message="not acquired",
                        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=7),
                        records=b"",
                    ),
                    ShareFetchPartitionData(
                        partition_index=4,
                        current_leader=unknown,
                        records=b"abcde",
                        acquired_records=[
                            AcquiredRecords(first_offset=1, last_offset=2, delivery_count=3),
                            AcquiredRecords(first_offset=4, last_offset=5, delivery_count=6),
                        ],
                    ),
                    ShareFetchPartitionData(
                        partition_index=5,
                        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
                        error_message="not initialised",
                        current_leader=unknown,
                        records=b"",
                    ),
                ],
            )
        ],
        node_endpoints=[
            NodeEndpoint(node_id=2, host="host", port=9092),
            NodeEndpoint(node_id=3, host="other", port=9093, rack="r"),
        ],
    )
    assert whole(parts) == bytes(encode(response, version))
