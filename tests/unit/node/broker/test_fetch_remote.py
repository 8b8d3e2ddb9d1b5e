"""Fetches of what lies in a bucket: they wait for it, as long as there is time."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.disk import Buffer
from barnabas.node.broker.apis.log_offsets import handle_list_offsets
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.fetch.handler import handle_fetch
from barnabas.node.broker.fetch.reading import WAIT_MIN_MS
from barnabas.node.broker.fetch.sessions import FetchSessionCache
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.image import MetadataImage, PartitionImage
from barnabas.node.net.connection import Reply
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_response_header
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.fetch import PartitionData as Told
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.records import decode_records
from sim.manual_clock import ManualClock
from support.logs import TOPIC_ID, LogBench
from support.remote_log import fill_partly_remote

NODE_ID = 1
FOLLOWER = 2
VERSION = 12
ALONE = PartitionImage(
    replicas=(NODE_ID, FOLLOWER), isr=(NODE_ID,), leader=NODE_ID, leader_epoch=0, partition_epoch=0
)


class Broker:
    """A node with two partitions: a b c | d e of which a b c is remote, and one all local: x."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        context = ReplicaContext(NODE_ID, self.clock)
        self.benches = [LogBench(clock=self.clock) for _ in range(2)]
        self.bucket = fill_partly_remote(self.benches[0], ["a", "b", "c"], ["d", "e"])
        self.benches[1].fill("x")
        self.partitions = []
        for index, bench in enumerate(self.benches):
            key = bench.log.topic_partition._replace(partition=index)
            partition = Partition(key, TOPIC_ID, bench.log, context)
            partition.become_leader(ALONE)
            partition._advance(bench.log.log_end_offset)
            self.partitions.append(partition)
        replicas = SimpleNamespace(
            find=lambda topic, index: self.partitions[index],
            fetchers=SimpleNamespace(leader_quota=SimpleNamespace(is_active=False)),
        )
        self.services: Any = SimpleNamespace(
            authorizer=ALLOW_ALL,
            replicas=replicas,
            throttling=None,
            fetch_max_bytes=1 << 20,
            clock=self.clock,
            image=MetadataImage(),
            fetch_sessions=FetchSessionCache(0, lambda: 1),
        )
        self.closed = False

    def fetch(self, *offsets: int, replica: int = -1, **request: Any) -> Any:
        """Fetch the partitions from `offsets` on: what the handler gives."""
        asked = FetchRequest(
            replica_id=replica,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic="topic",
                    partitions=[
                        FetchPartition(partition=n, fetch_offset=at, partition_max_bytes=1 << 20)
                        for n, at in enumerate(offsets)
                    ],
                )
            ],
            **{"min_bytes": 1, "max_wait_ms": 100, **request},
        )
        frame = bytearray(encode(asked, VERSION))
        context = RequestContext(ApiKey.FETCH, VERSION, 1, None, self._connection(), ANONYMOUS)
        return handle_fetch(self.services, context, frame, 0)

    def _connection(self) -> Any:
        return SimpleNamespace(
            times=None,
            peer_host="client",
            listener_name="PLAINTEXT",
            is_closed=False,
        )


def told(answer: Any) -> dict[int, Told]:
    """Return an answer's content by partition."""
    parts: Any = answer.take() if isinstance(answer, Reply) else answer
    frame = b"".join(bytes(part) for part in parts)[4:]
    _, position = decode_response_header(APIS[ApiKey.FETCH], VERSION, frame)
    response, _ = decode_at(FetchResponse, VERSION, frame, position)
    return {
        entry.partition_index: entry for topic in response.responses for entry in topic.partitions
    }


def values(answer: Any) -> dict[int, str]:
    """The records of each partition."""
    return {index: _values(entry.records or b"") for index, entry in told(answer).items()}


def _values(records: Buffer) -> str:
    view = memoryview(records)
    return "".join(
        (record.value or b"").decode()
        for position, header in iterate_headers(view)
        for record in decode_records(view[position : position + header.size_bytes])
    )


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.mark.parametrize("max_wait_ms", [0, 100, 10_000])
def test_a_fetch_waits_for_what_is_remote(broker: Broker, max_wait_ms: int) -> None:
    reply = broker.fetch(1, max_wait_ms=max_wait_ms)
    broker.clock.advance(min(max_wait_ms, 20))
    assert not reply.is_done
    broker.bucket.arrive()
    assert values(reply) == {0: "b"}
    assert (broker.bucket.asked, broker.bucket.abandoned) == (0, 0)


@pytest.mark.parametrize(
    ("max_wait_ms", "waits_ms"), [(0, WAIT_MIN_MS), (100, WAIT_MIN_MS), (900, 900)]
)
def test_it_waits_no_longer_than_it_may(broker: Broker, max_wait_ms: int, waits_ms: int) -> None:
    reply = broker.fetch(1, 0, max_wait_ms=max_wait_ms)
    broker.clock.advance(waits_ms - 1)
    assert not reply.is_done
    broker.clock.advance(1)
    assert values(reply) == {0: "", 1: "x"}
    assert (broker.bucket.asked, broker.bucket.abandoned) == (0, 1)


def test_local_records_do_not_keep_remote_ones_from_their_turn(broker: Broker) -> None:
    reply = broker.fetch(0, 0)
    assert not reply.is_done
    broker.benches[1].fill("y")
    broker.partitions[1]._advance(2)
    assert not reply.is_done
    broker.bucket.arrive()
    assert values(reply) == {0: "a", 1: "xy"}


def test_too_few_bytes_are_answered_once_the_fetch_s_own_time_is_over(broker: Broker) -> None:
    reply = broker.fetch(0, min_bytes=1 << 19, max_wait_ms=100)
    broker.clock.advance(150)
    assert not reply.is_done
    broker.bucket.arrive()
    assert values(reply) == {0: "a"}


def test_what_cannot_be_had_is_told(broker: Broker) -> None:
    reply = broker.fetch(0)
    broker.bucket.error = ErrorCode.UNKNOWN_SERVER_ERROR
    broker.bucket.arrive()
    assert told(reply)[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_nobody_fetches_for_who_has_gone(broker: Broker) -> None:
    reply = broker.fetch(0)
    reply.abandon()
    assert (broker.bucket.asked, broker.bucket.abandoned) == (0, 1)


def test_an_error_elsewhere_is_told_at_once(broker: Broker) -> None:
    answer = broker.fetch(0, 7)
    assert told(answer)[1].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (broker.bucket.asked, broker.bucket.abandoned) == (0, 1)


def test_the_bucket_says_what_was_aborted(broker: Broker) -> None:
    broker.bucket.aborted = [AbortedTransaction(9, 0, 0, 1)]
    reply = broker.fetch(0, isolation_level=1)
    broker.bucket.arrive()
    (aborted,) = told(reply)[0].aborted_transactions or []
    assert (aborted.producer_id, aborted.first_offset) == (9, 0)


def test_what_is_local_is_answered_at_once(broker: Broker) -> None:
    assert values(broker.fetch(3)) == {0: "d"}
    assert broker.bucket.asked == 0


def test_a_follower_is_sent_to_the_bucket(broker: Broker) -> None:
    answer = broker.fetch(0, replica=FOLLOWER)
    assert told(answer)[0].error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    assert broker.bucket.asked == 0


@pytest.mark.parametrize(("timestamp", "offset"), [(-1, 5), (-2, 0), (-4, 3), (-5, -1)], ids=str)
def test_offsets_that_need_no_bucket(broker: Broker, timestamp: int, offset: int) -> None:
    response = _list_offsets(broker, timestamp)
    assert isinstance(response, ListOffsetsResponse)
    assert _offsets(response) == [(ErrorCode.NONE, offset)]


@pytest.mark.parametrize(
    ("age_ms", "error", "expected"),
    [
        (50, ErrorCode.NONE, (ErrorCode.NONE, 0)),
        (30, ErrorCode.NONE, (ErrorCode.NONE, 2)),
        (10, ErrorCode.NONE, (ErrorCode.NONE, 4)),
        (0, ErrorCode.NONE, (ErrorCode.NONE, -1)),
        (50, ErrorCode.UNKNOWN_SERVER_ERROR, (ErrorCode.UNKNOWN_SERVER_ERROR, -1)),
    ],
)
def test_a_time_is_looked_up_later(
    broker: Broker, age_ms: int, error: ErrorCode, expected: tuple[ErrorCode, int]
) -> None:
    response = _list_offsets(broker, broker.clock.time_ms - age_ms + 1)
    assert isinstance(response, Promise)
    assert not response.is_settled
    broker.bucket.error = error
    broker.bucket.arrive()
    assert _offsets(response.value) == [expected]


def _list_offsets(broker: Broker, timestamp: int) -> Any:
    context = RequestContext(ApiKey.LIST_OFFSETS, 9, 1, None, broker._connection(), ANONYMOUS)
    entries = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="topic", partitions=entries)]
    )
    return handle_list_offsets(broker.services, context, request)


def _offsets(response: ListOffsetsResponse) -> list[tuple[int, int]]:
    return [
        (entry.error_code, entry.offset) for topic in response.topics for entry in topic.partitions
    ]
