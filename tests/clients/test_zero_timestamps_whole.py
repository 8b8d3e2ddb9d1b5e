"""Records with the timestamp 0 over whole ways: SQL, a mirror and a change of leaders."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from client_matrix import KEPT
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.connection import Connection
from barnabas.cli.records.records import NewRecord
from barnabas.cli.records.sender import Sender
from barnabas.connect.tasks.local import LocalEngine
from barnabas.kafka import wire
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.protocol.apis import PRODUCE
from support.cluster_processes import EAGER, ClusterProcesses
from support.connect.mirror import OFFSETS, MirrorRun
from support.eventually import eventually
from support.patience import PATIENCE_S
from support.sql_server_process import running

STAMPS = [5, 0, 6, 0, 0]


@pytest.fixture(params=[1, pytest.param(3, marks=pytest.mark.slow)])
def servers(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> str:
    """The bootstrap servers of one node, and of three."""
    if request.param == 1:
        return kafka_bootstrap_servers
    cluster: ClusterProcesses = request.getfixturevalue("three_nodes")
    return cluster.bootstrap_servers


def create(servers: str, topic: str, replicas: int = -1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    settings = KEPT | {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, 1, replicas, config=settings)
    admin.create_topics([new])[topic].result(PATIENCE_S)


def read(servers: str, topic: str, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Message] = []
    while len(found) < count:
        more = consumer.consume(count - len(found), PATIENCE_S)
        assert more, f"{len(found)} of {count} records of {topic}"
        found += more
    consumer.close()
    return found


def test_insert_values_keeps_a_rowtime_of_0(servers: str) -> None:
    with running(servers) as server:
        topic = f"moments-{server.suffix}"
        server.ksql(
            f"CREATE STREAM moments (k STRING KEY, v INT) WITH (kafka_topic='{topic}', "
            "value_format='JSON', partitions=1);"
            f"CREATE TABLE latest WITH (kafka_topic='latest-{topic}') AS SELECT k, "
            "LATEST_BY_OFFSET(v) AS v FROM moments GROUP BY k EMIT CHANGES;"
        )
        server.ksql(
            "".join(
                f"INSERT INTO moments (ROWTIME, k, v) VALUES ({stamp}, 'k', {number});"
                for number, stamp in enumerate(STAMPS)
            )
        )
        found = [message.timestamp()[1] for message in read(servers, topic, len(STAMPS))]
        assert found == STAMPS
        server.ksql("INSERT INTO moments (ROWTIME, k, v) VALUES (0, 'zero', 9);")
        server.wait_for_rows("SELECT k, v, ROWTIME FROM latest WHERE k = 'zero';", [["zero", 9, 0]])
        assert server.stop() == 0


def test_a_mirror_keeps_a_timestamp_of_0(servers: str, engine: LocalEngine) -> None:
    topic = f"old-{uuid.uuid4().hex[:8]}"
    if OFFSETS not in AdminClient({"bootstrap.servers": servers}).list_topics().topics:
        create(servers, OFFSETS, cleanup_policy="compact")
    create(servers, topic)
    producer = OrderedProducer({"bootstrap.servers": servers})
    for number, stamp in enumerate(STAMPS):
        while len(producer):  # each way of sending waits for the other
            producer.poll(PATIENCE_S)
        producer.produce(topic, str(number), timestamp=stamp)
    assert producer.flush(PATIENCE_S) == 0
    run = MirrorRun(engine, servers, servers, {"topics": topic}, connectors=("Source",))
    try:
        mirrored = f"west.{topic}"
        admin = AdminClient({"bootstrap.servers": servers})
        run.wait_until(lambda: mirrored in admin.list_topics().topics)
        run.wait_until(lambda: end_of(servers, mirrored) == len(STAMPS))
        found = read(servers, mirrored, len(STAMPS))
        assert [message.timestamp()[1] for message in found] == STAMPS
    finally:
        run.stop()


def end_of(servers: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
    consumer.close()
    return int(end)


@pytest.mark.slow
def test_a_leader_that_is_killed_costs_no_record_and_doubles_none(tmp_path: Path) -> None:
    count = 400
    with ClusterProcesses(tmp_path, 3, EAGER) as cluster:
        servers = cluster.bootstrap_servers
        create(servers, "zeros", 3, min_insync_replicas="2")
        acknowledged: list[int] = []
        half = threading.Event()

        def on_delivery(error: Any, message: Message) -> None:
            assert error is None, error
            acknowledged.append(int(message.value() or b""))
            if len(acknowledged) >= count // 4:
                half.set()

        def kill() -> None:
            half.wait()
            cluster.kill(leader)

        producer = OrderedProducer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "on_delivery": on_delivery}
        )
        leader = cluster.wait_for_leader("zeros")
        killing = threading.Thread(target=kill)
        killing.start()
        for number in range(count):
            # There is no room while librdkafka has something to say, as that the leader is gone.
            while True:
                try:
                    producer.produce("zeros", str(number), timestamp=0)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(PATIENCE_S)
        assert producer.flush(PATIENCE_S) == 0
        killing.join()
        assert acknowledged == list(range(count))
        found = read(servers, "zeros", count)
        assert [int(message.value() or b"") for message in found] == list(range(count))
        assert {message.timestamp()[1] for message in found} == {0}
        assert end_of(servers, "zeros") == count


def sender_of(servers: str, topic: str, *, is_short: bool = False) -> Sender:
    connection = Connection(servers, {}, PATIENCE_S)
    return Sender(connection, topic, "all", "none", is_short=is_short)


@pytest.mark.parametrize("is_short", [True, False])
def test_the_command_sends_many_at_once(
    kafka_bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    topic = f"many-{uuid.uuid4().hex[:8]}"
    create(kafka_bootstrap_servers, topic)
    requests: list[Any] = []
    call = wire.Connection.call

    def counting(self: wire.Connection, api: Any, *more: Any) -> Any:
        if api is PRODUCE:
            requests.append(api)
        return call(self, api, *more)

    monkeypatch.setattr(wire.Connection, "call", counting)
    sender = sender_of(kafka_bootstrap_servers, topic, is_short=is_short)
    for number in range(5000):
        sender.send(NewRecord(b"%d" % number, timestamp_ms=0))
    sender.finish()
    assert sender.acknowledged == 5000
    assert sender.spans == {0: [0, 4999]}
    assert len(requests) < 50
    found = read(kafka_bootstrap_servers, topic, 5000)
    assert [message.value() for message in found] == [b"%d" % number for number in range(5000)]


async def test_the_command_sends_what_waits_while_no_more_comes(
    kafka_bootstrap_servers: str,
) -> None:
    topic = f"slow-{uuid.uuid4().hex[:8]}"
    create(kafka_bootstrap_servers, topic)
    sender = sender_of(kafka_bootstrap_servers, topic)
    sender.send(NewRecord(b"0", timestamp_ms=0))
    await eventually(lambda: sender.acknowledged == 1, "an acknowledgement")
    sender.finish()
