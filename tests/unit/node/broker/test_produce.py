"""When a produce request is answered."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.codec import Checks
from barnabas.node.broker.produce.outcome import Outcome
from barnabas.node.log.config import LogConfig
from barnabas.node.log.stepped_check import CheckedBatch
from barnabas.node.metadata.image import PartitionImage
from barnabas.node.net.connection import Reply
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.records.batch import Codec
from support.logs import NOW_MS, TOPIC_ID, TOPIC_PARTITION, LogBench, make_batch


@pytest.mark.parametrize("acks", [1, -1])
async def test_where_each_append_is_flushed_the_answer_waits_for_it(acks: int) -> None:
    bench = LogBench(config=LogConfig(flush_messages=1))
    partition = Partition(TOPIC_PARTITION, TOPIC_ID, bench.log, ReplicaContext(1, bench.clock))
    partition.become_leader(PartitionImage((1,), (1,), 1, leader_epoch=0, partition_epoch=0))
    services = cast("Any", SimpleNamespace(clock=bench.clock))
    connection = cast(
        "Any", SimpleNamespace(times=None, peer_host="client", listener_name="PLAINTEXT")
    )
    outcome = Outcome(
        services, RequestContext(ApiKey.PRODUCE, 12, 1, None, connection, ANONYMOUS), acks
    )
    outcome.begin("topic")
    outcome.append(partition, 0, memoryview(make_batch("a")), NOW_MS)
    reply = outcome.finish(5000)
    assert isinstance(reply, Reply)
    assert not reply.is_done
    await partition.close()
    assert reply.is_done
    assert bench.log.flushed_offset == 1


@pytest.mark.parametrize("version", range(3, 14))
def test_zstd_is_for_clients_of_version_7_on(version: int) -> None:
    bench = LogBench()
    partition = Partition(TOPIC_PARTITION, TOPIC_ID, bench.log, ReplicaContext(1, bench.clock))
    partition.become_leader(PartitionImage((1,), (1,), 1, leader_epoch=0, partition_epoch=0))
    services = cast("Any", SimpleNamespace(clock=bench.clock))
    connection = cast(
        "Any", SimpleNamespace(times=None, peer_host="client", listener_name="PLAINTEXT")
    )
    context = RequestContext(ApiKey.PRODUCE, version, 1, None, connection, ANONYMOUS)
    checks: Checks = {("topic", 0): CheckedBatch(bench.log.config)}
    outcome = Outcome(services, context, 1, checks=checks)
    outcome.begin("topic")
    outcome.append(partition, 0, memoryview(make_batch("a", codec=Codec.ZSTD)), NOW_MS)
    assert outcome.has_errors is (version < 7)
    assert bench.log.log_end_offset == (version >= 7)
