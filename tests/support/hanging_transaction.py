"""A transaction that hangs: a record of one that no coordinator knows."""

from __future__ import annotations

import time
from typing import Final

from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.logs import make_batch
from support.raw_client import RawClient

STRANGER: Final = 777_000_777
"""A producer id that no coordinator has given."""
HOUR_MS: Final = 3_600_000
VERIFICATION: Final = "transaction.partition.verification.enable"
"""The setting without which brokers take such a record."""


def write_hanging(address: str, topic: str, transactional_id: str) -> int:
    """Write a record, an hour old, to partition 0 at its leader; returns the error code."""
    old_ms = time.time_ns() // 1_000_000 - HOUR_MS
    batch = make_batch("lost", timestamp=old_ms, producer=(STRANGER, 0, 0), transactional=True)
    partition = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
    )
    with RawClient(address) as raw:
        answer = raw.call(request, ProduceResponse, 11)
    return int(answer.responses[0].partition_responses[0].error_code)
