"""A directory with live groups of the consumer protocol moves to Apache Kafka and back.

The consumer keeps running: it is a member of the same group, with the same partitions, with either
program that serves the directory.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas, ClusterProcesses
from support.node_process import wait_until

TIMEOUT_S = 90
QUICK = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "log.retention.check.interval.ms": "86400000",
}


@needs_apache_kafka
def test_groups_move_with_their_directory(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, 1, QUICK) as cluster:
        cluster.create_topic("t", 4)
        (node,) = cluster.nodes.values()
        member = Member(cluster.bootstrap_servers)
        member.read(20)
        wait_until(lambda: member.described()[0] == "STABLE", "a group at rest")
        before = member.described()
        for program in (ApacheKafka(), Barnabas()):
            cluster.stop(node.node_id)
            node._program = program
            cluster.start(node.node_id)
            member.read(20)
            # A program that has just started looks at the group's topics first.
            wait_until(
                lambda: member.described() == before,
                f"the group as before: {before}",
                shown=member.described,
            )
        member.consumer.close()


class Member:
    """One consumer, which reads what it produces."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe(["^t.*"])
        self.sent = 0
        self.seen: set[str] = set()

    def read(self, count: int) -> None:
        """Produce records, and read until they are there; commit."""
        producer = Producer({"bootstrap.servers": self._bootstrap_servers})
        for _ in range(count):
            producer.produce("t", str(self.sent), partition=self.sent % 4)
            self.sent += 1
        assert producer.flush(TIMEOUT_S) == 0
        end_s = time.monotonic() + TIMEOUT_S
        while len(self.seen) < self.sent:
            assert time.monotonic() < end_s, f"{len(self.seen)} of {self.sent}"
            message = self.consumer.poll(0.2)
            if message is not None and message.error() is None:
                assert (message.value() or b"").decode() not in self.seen
                self.seen.add((message.value() or b"").decode())
        self.consumer.commit(asynchronous=False)

    def described(self) -> tuple[Any, ...]:
        """Return the parts of the group's description that must not change.

        A new client asks: librdkafka's may hold a request for a minute if the
        coordinator was down when it was sent.
        """
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        group = admin.describe_consumer_groups(["g"])["g"].result(TIMEOUT_S)
        (member,) = group.members
        partitions = sorted(str(part) for part in member.assignment.topic_partitions)
        return group.state.name, group.type.name, member.member_id, partitions
