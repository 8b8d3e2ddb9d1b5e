"""Kafka's Java producers, one transaction right after the other, while nodes are killed.

librdkafka names the partitions of a transaction before it writes; Java's producers, with
transaction.version 2, just write, and meet the markers of the previous transaction. A kill may end
a transaction by a timeout. Any other error is the brokers' fault.
"""

from __future__ import annotations

import pathlib
from collections import Counter

import pytest
from confluent_kafka import Consumer, TopicPartition

from support.chain_member import Silence
from support.cluster_processes import EAGER, ClusterProcesses
from support.java_host import JavaHost, needs_java
from support.node_process import wait_until

PRODUCERS = 3
TRANSACTIONS = 200
RECORDS = 100
PARTITIONS = 3
END_S = 180.0
EXCUSED = {"TimeoutException"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_java,
]


def test_nothing_but_time_outs_ends_a_transaction(tmp_path: pathlib.Path) -> None:
    with ClusterProcesses(tmp_path, 3, EAGER) as cluster, JavaHost() as java:
        cluster.create_topic("topic", PARTITIONS)
        cluster.create_topic("other", 1)
        servers = cluster.bootstrap_servers
        counts = str(PRODUCERS), str(TRANSACTIONS)
        run = java.start("transaction-steps", servers, "records", "topic", "other", *counts)
        for node_id in cluster.nodes:
            before = run.out.count("\n")
            wanted = min(before + TRANSACTIONS // 4, PRODUCERS * TRANSACTIONS)
            run.wait_until(lambda wanted=wanted: run.out.count("\n") >= wanted, END_S)
            cluster.kill(node_id)
            cluster.start(node_id)
        result = run.wait(END_S)
        assert result.exit_code == 0, str(run)
        written = dict(result.table)
        assert len(written) == PRODUCERS * TRANSACTIONS
        assert set(written.values()) <= EXCUSED | {"committed"}, Counter(written.values())
        committed = {name for name, outcome in written.items() if outcome == "committed"}
        whole = read_transactions(servers)
        assert set(whole.values()) == {RECORDS}
        assert committed <= set(whole)


def read_transactions(servers: str) -> Counter[str]:
    """Return the number of committed records by transaction."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "logger": Silence(),
        }
    )
    places = [TopicPartition("topic", index, 0) for index in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, timeout=END_S)[1] for place in places]
    consumer.assign(places)
    counts: Counter[str] = Counter()

    def is_read() -> bool:
        for message in consumer.consume(500, 0.2):
            assert message.error() is None, message.error()
            counts[message.value().decode().rpartition("/")[0]] += 1
        reached = [place.offset for place in consumer.position(places)]
        return all(at >= end for at, end in zip(reached, ends, strict=True))

    wait_until(is_read, "all that was written", END_S)
    consumer.close()
    return counts
