"""Fetch: aborted transactions in answers, the wait for enough bytes, and unexpected failures."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.fetch.handler import Fetch
from barnabas.node.broker.fetch.sessions import FetchSession, FetchTarget
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import PartitionImage
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.well_known import NO_SESSION, READ_COMMITTED
from support.logs import LOG_DIR, TOPIC_ID, TOPIC_PARTITION, LogBench

NODE_ID = 1
ALONE = PartitionImage(
    replicas=(NODE_ID,), isr=(NODE_ID,), leader=NODE_ID, leader_epoch=0, partition_epoch=0
)


class FakeConnection:
    """Remembers whether it was closed."""

    peer_host = "client"
    listener_name = "PLAINTEXT"

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def reply_ready(self) -> None:
        pass


def make_fetch(bench: LogBench, request: FetchRequest, fetch_max_bytes: int = 1 << 20) -> Fetch:
    partition = Partition(
        TOPIC_PARTITION, TOPIC_ID, bench.log, ReplicaContext(NODE_ID, bench.clock)
    )
    partition.become_leader(ALONE)
    replicas = SimpleNamespace(find=lambda topic, index: partition)
    services = SimpleNamespace(
        authorizer=ALLOW_ALL,
        throttling=None,
        replicas=replicas,
        fetch_max_bytes=fetch_max_bytes,
        clock=bench.clock,
    )
    connection = cast("Any", FakeConnection())
    context = RequestContext(ApiKey.FETCH, 12, 1, None, connection, ANONYMOUS)
    session = FetchSession(NO_SESSION, False, 0)
    session.update([FetchTarget("topic", 0, 0, 1 << 20)], [])
    fetch = Fetch(cast("Any", services), context, request, session, True)
    fetch.look(is_first=True)
    return fetch


def test_an_index_of_aborted_transactions_that_cannot_be_read_is_a_storage_error() -> None:
    bench = LogBench()
    bench.fill("a")
    bench.disk.fail("read", below=LOG_DIR)
    fetch = make_fetch(bench, FetchRequest(isolation_level=READ_COMMITTED))
    (answer,) = fetch._answers.values()
    assert (answer.error, answer.size_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert bench.offline == [LOG_DIR]


def test_what_was_aborted_is_not_guessed_from_a_damaged_index(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = LogBench()
    bench.fill("a")
    bench.disk.write_atomic(bench.log.active.files.txn_index_path, b"ragged")
    fetch = make_fetch(bench, FetchRequest(isolation_level=READ_COMMITTED))
    (answer,) = fetch._answers.values()
    assert (answer.error, answer.size_bytes) == (ErrorCode.CORRUPT_MESSAGE, 0)
    assert "txnindex has 6 bytes" in caplog.text
    fetch = make_fetch(bench, FetchRequest())
    (answer,) = fetch._answers.values()
    assert (answer.error, answer.size_bytes) == (ErrorCode.NONE, bench.log.size_bytes)


@pytest.mark.parametrize(("max_bytes", "fetch_max_bytes"), [(10, 1 << 20), (1 << 20, 10)])
def test_no_fetch_waits_for_more_than_it_may_get(max_bytes: int, fetch_max_bytes: int) -> None:
    bench = LogBench()
    bench.fill("a", "b")
    request = FetchRequest(max_wait_ms=500, min_bytes=1 << 20, max_bytes=max_bytes)
    fetch = make_fetch(bench, request, fetch_max_bytes)
    assert fetch.is_satisfied()


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_waiting_fetch_that_fails_unforeseen_closes_its_connection_only(
    is_woken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = LogBench()
    fetch = make_fetch(bench, FetchRequest(isolation_level=READ_COMMITTED, max_wait_ms=500))
    connection = FakeConnection()
    fetch.wait().bind(cast("Any", connection))
    bench.fill("a")
    monkeypatch.setattr(PartitionLog, "aborted_transactions", None)
    partition = fetch._services.replicas.find("topic", 0)
    assert isinstance(partition, Partition)
    partition._advance(1)
    assert partition.read_waiters
    if is_woken:
        fetch._session.partitions_advanced([partition])  # others still get their turn
    else:
        bench.clock.advance(500)
    assert connection.is_closed
    assert not partition.read_waiters
