"""What a fetch reads, and when it has enough."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.context import RequestContext
from barnabas.broker.fetch import READ_COMMITTED, Fetch
from barnabas.broker.fetch_sessions import FetchTarget
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.replication.partition import Partition
from support.logs import LOG_DIR, TOPIC_ID, TOPIC_PARTITION, LogBench

NODE_ID = 1


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
    partition = Partition(TOPIC_PARTITION, TOPIC_ID, bench.log, NODE_ID, lambda partition: None)
    partition.become_leader(0, 0)
    replicas = SimpleNamespace(find=lambda topic, index: partition)
    services = SimpleNamespace(
        replicas=replicas, fetch_max_bytes=fetch_max_bytes, clock=bench.clock
    )
    connection = cast("Any", FakeConnection())
    context = RequestContext(ApiKey.FETCH, 12, 1, None, connection)
    target = FetchTarget("topic", 0, 0, 1 << 20)
    return Fetch(cast("Any", services), context, request, None, [target], True)


def test_an_index_of_aborted_transactions_that_cannot_be_read_is_a_storage_error() -> None:
    bench = LogBench()
    bench.fill("a")
    fetch = make_fetch(bench, FetchRequest(isolation_level=READ_COMMITTED))
    bench.disk.fail("read", below=LOG_DIR)
    (answer,) = fetch.read()
    assert (answer.error, answer.size_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert bench.offline == [LOG_DIR]


@pytest.mark.parametrize(("max_bytes", "fetch_max_bytes"), [(10, 1 << 20), (1 << 20, 10)])
def test_no_fetch_waits_for_more_than_it_may_get(max_bytes: int, fetch_max_bytes: int) -> None:
    bench = LogBench()
    bench.fill("a", "b")
    request = FetchRequest(max_wait_ms=500, min_bytes=1 << 20, max_bytes=max_bytes)
    fetch = make_fetch(bench, request, fetch_max_bytes)
    assert fetch.is_satisfied(fetch.read())


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_waiting_fetch_that_fails_unforeseen_closes_its_connection_only(is_woken: bool) -> None:
    bench = LogBench()
    fetch = make_fetch(bench, FetchRequest(isolation_level=READ_COMMITTED, max_wait_ms=500))
    connection = FakeConnection()
    fetch.wait().bind(cast("Any", connection))
    bench.fill("a")
    bench.disk.write_atomic(bench.log.active.txn_index_path, b"ragged")
    partition = fetch._services.replicas.find("topic", 0)
    assert isinstance(partition, Partition)
    partition._advance(1)
    if is_woken:
        fetch.partition_advanced()  # the others that are woken still get their turn
    else:
        bench.clock.advance(500)
    assert connection.is_closed
    assert not partition.read_waiters
