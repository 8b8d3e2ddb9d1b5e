"""Consume, transform, produce, exactly once, while nodes are killed and instances vanish."""

from __future__ import annotations

import pathlib
import threading
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.group.calls import MOVING_CODES
from support.chain_member import REFUSALS
from support.cluster_processes import ClusterProcesses
from support.node_process import wait_until

RECORDS = 6_000
PARTITIONS = 3
CALL_TIMEOUT_S = 15.0
STALL_S = 120.0

pytestmark = pytest.mark.timeout(300)


class Chain:
    """Reads the source and writes to the target in transactions, despite failures."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._done = 0
        self._moved = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.instances = 0
        self.refusals: list[KafkaException] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def await_more(self) -> None:
        """Wait until more was committed, as far as this side was told, or nearly all."""
        with self._moved:
            count = min(self._done + RECORDS // 10, RECORDS * 9 // 10)
            assert self._moved.wait_for(lambda: self._done >= count, STALL_S), self._done

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.instances += 1
            try:
                self._instance()
            except KafkaException as error:
                if error.args[0].code() in REFUSALS:
                    self.refusals.append(error)
                continue  # the next instance takes the transactional id, and goes on

    def _instance(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": "chain",
                "transaction.timeout.ms": 20_000,
                "linger.ms": 2,
                "logger": _SILENT,
            }
        )
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "chain",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "logger": _SILENT,
            }
        )
        try:
            producer.init_transactions(CALL_TIMEOUT_S)
            consumer.subscribe(["source"])
            while not self._stopping.is_set():
                messages = [one for one in consumer.consume(50, 0.5) if not one.error()]
                if not messages:
                    continue
                producer.begin_transaction()
                for message in messages:
                    producer.produce("target", message.value())
                producer.send_offsets_to_transaction(
                    consumer.position(consumer.assignment()),
                    consumer.consumer_group_metadata(),
                    CALL_TIMEOUT_S,
                )
                producer.commit_transaction(CALL_TIMEOUT_S)
                with self._moved:
                    self._done += len(messages)
                    self._moved.notify_all()
        finally:
            consumer.close()
            producer.purge()


class _Silence:
    """Takes what librdkafka says of lost connections; they are lost on purpose."""

    def log(self, *_: object) -> None:
        """Nothing."""


_SILENT = _Silence()


def test_a_chain_is_exact_while_nodes_are_killed(tmp_path: pathlib.Path) -> None:
    with ClusterProcesses(tmp_path, 3, {"transaction.state.log.num.partitions": "3"}) as cluster:
        servers = cluster.bootstrap_servers
        settings: dict[str, Any] = {"bootstrap.servers": servers, "logger": _SILENT}
        admin = AdminClient(settings)
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("source", "target")]
        for created in admin.create_topics(topics).values():
            created.result(CALL_TIMEOUT_S)
        cluster.wait_until_healthy()
        fill(servers)
        chain = Chain(servers)
        chain.start()
        try:
            for node_id in (1, 2, 3):
                chain.await_more()
                cluster.kill(node_id)
                chain.await_more()
                cluster.start(node_id)
                cluster.wait_until_healthy()
            counts = read_target(servers)
        finally:
            chain.stop()
    assert not chain.refusals
    assert counts == Counter({str(number): 1 for number in range(RECORDS)})


def fill(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("source", str(number), partition=number % PARTITIONS)
    assert producer.flush(CALL_TIMEOUT_S) == 0


def read_target(servers: str) -> Counter[str]:
    """Return the committed values, once there are as many as there must be."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "logger": _SILENT,
        }
    )
    consumer.assign([TopicPartition("target", index, 0) for index in range(PARTITIONS)])
    counts: Counter[str] = Counter()
    quiet_polls = 0
    while quiet_polls < (2 if counts.total() >= RECORDS else 30):
        message = consumer.poll(1.0)
        if message is None:
            quiet_polls += 1
        elif message.error():
            error = message.error()
            assert error is not None
            assert error.code() == KafkaError._PARTITION_EOF
        else:
            quiet_polls = 0
            counts[(message.value() or b"").decode()] += 1
    consumer.close()
    return counts


def test_offsets_find_the_new_coordinator_of_their_group(tmp_path: pathlib.Path) -> None:
    """Though librdkafka hears of a new leader before it learns of that (its issue 5511)."""
    with ClusterProcesses(tmp_path, 3, {"transaction.state.log.num.partitions": "3"}) as cluster:
        servers = cluster.bootstrap_servers
        settings: dict[str, Any] = {"bootstrap.servers": servers, "logger": _SILENT}
        admin = AdminClient(settings)
        admin.create_topics([NewTopic("source", PARTITIONS, 3)])["source"].result(CALL_TIMEOUT_S)
        cluster.wait_until_healthy()
        settings = {"bootstrap.servers": servers, "transactional.id": "chain", "logger": _SILENT}
        producer = Producer(settings)
        producer.init_transactions(CALL_TIMEOUT_S)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "chain", "logger": _SILENT})
        group = consumer.consumer_group_metadata()
        producer.begin_transaction()
        send_offset(producer, 1, group)
        producer.commit_transaction(CALL_TIMEOUT_S)
        lost = admin.describe_consumer_groups(["chain"])["chain"].result().coordinator.id
        producer.begin_transaction()
        cluster.kill(lost)
        wait_until(lambda: not leads(producer, lost), "new leaders")
        sending = threading.Thread(target=send_offset, args=(producer, 2, group), daemon=True)
        sending.start()
        sending.join(2 * CALL_TIMEOUT_S)
        assert not sending.is_alive(), "it waits for a coordinator that is gone"
        producer.commit_transaction(CALL_TIMEOUT_S)
        wait_until(lambda: committed(consumer) == 2, "the second commit")
        consumer.close()


def leads(producer: Producer, node_id: int) -> bool:
    """Return whether the node leads anything, as far as the producer now knows."""
    try:
        topics = producer.list_topics(timeout=1.0).topics.values()
    except KafkaException:
        return True  # it asked the node that is gone
    return any(part.leader == node_id for topic in topics for part in topic.partitions.values())


def committed(consumer: Consumer) -> int | None:
    """The group's offset, or None while a transaction has none decided or its coordinator moves.

    The admin client is no help: librdkafka crashes where its answer is NOT_COORDINATOR.
    """
    try:
        (found,) = consumer.committed([TopicPartition("source", 0)], timeout=CALL_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].name() not in MOVING_CODES:
            raise
        return None
    return int(found.offset)


def send_offset(producer: Producer, offset: int, group: object) -> None:
    """Add the offset to the transaction."""
    position = TopicPartition("source", 0, offset)
    while True:
        try:
            producer.send_offsets_to_transaction([position], group, CALL_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return
