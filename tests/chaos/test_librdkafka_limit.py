"""A limit of librdkafka: it reports records as delivered that no broker has.

Kafka's protocol allows it: `BARNABAS_CHAOS_PROGRAM=kafka` shows the same with Apache Kafka. If this
fails because nothing is lost, librdkafka has been fixed: then ARCHITECTURE.md need not mention it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from suffering import node_program

from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from support.cluster_load import Token, read_all
from support.cluster_processes import EAGER, ClusterProcesses
from support.raw_client import RawClient
from support.slow_librdkafka import OFFSET_INVALID, SlowProducer

NODES = 3
PATIENT = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}
"""The old leader stays in the cluster, as one that answers slowly does."""
REQUEUE_S = 0.3
"""Between two lines of one function of librdkafka's."""
LAST_TURN_S = 30

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


class Threads:
    """Holds the old leader's thread between its two steps until the new leader's has sent."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.old_port = self.new_port = 0
        self.partition = ""
        self._sent = threading.Event()
        self._requeues = threading.Event()

    def has(self, kind: str, text: str, port: int) -> bool:
        return any(_is(line, kind, text, port) and self.partition in line for line in self.lines)

    def on_line(self, line: str) -> None:
        self.lines.append(line)
        if not self.new_port or self.partition not in line:
            return
        if _is(line, "MSGSET", "encountered error", self.old_port):
            self._sent.wait(LAST_TURN_S)
        elif _is(line, "PRODUCE", "", self.new_port):
            self._sent.set()
        elif _is(line, "DRAIN", "before retrying", self.old_port):
            self._requeues.set()
        elif _is(line, "MSGSET", "delivered", self.new_port):
            self._requeues.wait(LAST_TURN_S)
            time.sleep(REQUEUE_S)  # nothing tells that the records are back in their queue


def _is(line: str, kind: str, text: str, port: int) -> bool:
    return line.startswith(f"{kind} ") and text in line and f":{port}/" in line


def test_the_first_records_of_a_producer(tmp_path: Path) -> None:
    """Unanswered by a leader that does not die, whose partition another leads by now."""
    with ClusterProcesses(tmp_path, NODES, EAGER | PATIENT, program=node_program()) as cluster:
        cluster.create_topic("t", NODES)
        cluster.create_topic("other", NODES)
        controller = cluster.controller()
        leaders = {index: cluster.leader_of("t", index) for index in range(NODES)}
        index, old = next(pair for pair in leaders.items() if pair[1] != controller)
        others = [node for node in cluster.nodes.values() if node.node_id != old]
        threads = Threads()
        threads.partition = f"t [{index}]"
        threads.old_port = cluster.nodes[old].port
        settings = {
            "bootstrap.servers": ",".join(node.bootstrap_servers for node in others),
            "enable.idempotence": "true",
            "linger.ms": "50",
            "socket.max.fails": "1000",
            "debug": "broker,topic,msg,eos",
        }
        with SlowProducer(settings, threads.on_line) as producer:
            for each in range(NODES):  # it has an id and connections then
                producer.produce("other", each, f"other-{each}")
            producer.poll_until(lambda: len(producer.delivered) == NODES, "the first deliveries")
            cluster.pause(old)
            _produce(producer, index, range(10))
            producer.poll_until(lambda: threads.has("PRODUCE", "", threads.old_port), "a request")
            _move(others[0].bootstrap_servers, index, [node.node_id for node in others])
            asking = others[0].node_id
            new = cluster.wait_for_leader("t", index, other_than=old, asking=asking)
            new_port = cluster.nodes[new].port

            def has_moved() -> bool:
                producer.learn_leaders("t")
                return threads.has("TOPBRK", "joining broker", new_port)

            producer.poll_until(has_moved, "the client's move to the new leader")
            threads.new_port = new_port
            cluster.kill(old)
            producer.poll_until(
                lambda: threads.has("MSGSET", "encountered error", threads.old_port), "the failure"
            )
            _produce(producer, index, range(10, 20))
            producer.poll_until(lambda: len(producer.delivered) == NODES + 20, "all deliveries")
            told = [producer.delivered[_value(index, number)] for number in range(20)]
        stored = read_all(others[0].bootstrap_servers, "t", NODES)
    assert [error for error, _ in told] == [0] * 20
    assert [offset for _, offset in told] == [OFFSET_INVALID] * 10 + list(range(10))
    assert [token.number for token in stored.values()] == list(range(10, 20))


def _value(index: int, number: int) -> str:
    return Token("w", index, number).encode().decode()


def _produce(producer: SlowProducer, index: int, numbers: range) -> None:
    for number in numbers:
        producer.produce("t", index, _value(index, number))


def _move(bootstrap_servers: str, index: int, replicas: list[int]) -> None:
    """Take a partition from its leader, which need not agree."""
    moved = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name="t", partitions=[moved])
    with RawClient(bootstrap_servers) as raw:
        request = AlterPartitionReassignmentsRequest(timeout_ms=20_000, topics=[topic])
        answer = raw.call(request, AlterPartitionReassignmentsResponse)
    assert answer.responses[0].partitions[0].error_code == 0, answer
