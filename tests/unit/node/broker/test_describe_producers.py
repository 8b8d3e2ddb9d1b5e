"""Any replica describes the producers that its own log knows, as in Kafka."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.node.broker.apis.transaction_listing import handle_describe_producers
from barnabas.node.metadata.image import PartitionImage
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import DescribeProducersRequest, TopicRequest
from support.logs import TOPIC_ID, TOPIC_PARTITION, LogBench, make_batch

REQUEST = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])


def describe(found: Partition | ErrorCode) -> Any:
    services: Any = SimpleNamespace(
        authorizer=ALLOW_ALL, replicas=SimpleNamespace(find=lambda topic, index: found)
    )
    context: Any = None
    response = handle_describe_producers(services, context, REQUEST)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("leader_id", [1, 2])
def test_leader_and_follower_answer(leader_id: int) -> None:
    bench = LogBench()
    image = PartitionImage((1, 2), (1, 2), leader_id, leader_epoch=0, partition_epoch=0)
    partition = Partition(TOPIC_PARTITION, TOPIC_ID, bench.log, ReplicaContext(1, bench.clock))
    if leader_id == 1:
        partition.become_leader(image)
    batch = make_batch("a", "b", producer=(7, 3, 0), transactional=True)
    bench.append(batch)
    answer = describe(partition)
    assert answer.error_code == ErrorCode.NONE
    (producer,) = answer.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 1)
    assert producer.current_txn_start_offset == 0


def test_without_a_replica_there_is_none_to_describe() -> None:
    answer = describe(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not answer.active_producers
