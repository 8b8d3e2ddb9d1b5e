"""Producers, a reader and a consumer group on one topic, each in a thread, while a cluster suffers.

Everything they send, are told and see goes into a `History`. They are confluent-kafka's clients
with time-outs short enough for a test; producers are idempotent and wait for all in-sync replicas.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from support.history import History, Place, Token
from support.node_process import wait_until

WRITERS = 2
MEMBERS = 2
BURST_RECORDS = 4
BURST_INTERVAL_S = 0.01
IN_FLIGHT_MAX = 400
SETTLE_TIMEOUT_S = 90
GROUP = "members"


def client(bootstrap_servers: str, **settings: Any) -> dict[str, Any]:
    """Settings of a client that gives a silent node up within seconds, and complains to nobody."""
    logger = logging.getLogger("suffers-on-purpose")
    logger.setLevel(logging.CRITICAL)
    common = {
        "bootstrap.servers": bootstrap_servers,
        "logger": logger,
        "socket.timeout.ms": 5_000,
        "socket.connection.setup.timeout.ms": 2_000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 2_000,
    }
    return common | {name.replace("_", "."): value for name, value in settings.items()}


class Load:
    """A context manager; `settle` ends the load in order, leaving the block ends it anyhow."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self.history = History()
        self.topic = topic
        self.partitions = partitions
        self._bootstrap_servers = bootstrap_servers
        self._writing = threading.Event()
        self._reading = threading.Event()
        self._writing.set()
        self._reading.set()
        self._failures: list[BaseException] = []
        self._writers = [self._thread(self._write, f"w{n}") for n in range(WRITERS)]
        self._readers = [self._thread(self._read, "reader")]
        self._readers += [self._thread(self._consume, f"m{n}") for n in range(MEMBERS)]

    def __enter__(self) -> Load:
        for thread in (*self._writers, *self._readers):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._writing.clear()
        self._reading.clear()
        for thread in (*self._writers, *self._readers):
            thread.join()

    def await_acknowledged(self, more: int, timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        """Wait until `more` records were acknowledged from now on."""
        goal = self.history.count_acknowledged() + more
        self._await(
            lambda: self.history.count_acknowledged() >= goal, f"{more} acknowledgements", timeout_s
        )

    def await_known(self) -> None:
        """Wait until each partition's in-sync replicas have something of each producer.

        Until then librdkafka may report records as delivered that no broker has, when the leader
        changes (`test_librdkafka_limit.py` shows it): what is lost before is not of the cluster.
        """
        pairs = {
            (f"w{n}", partition) for n in range(WRITERS) for partition in range(self.partitions)
        }

        def are_known() -> bool:
            acknowledged = list(self.history.acknowledged)
            return pairs <= {(token.writer, token.partition) for token in acknowledged}

        self._await(are_known, "a record of each producer in each partition")

    def settle(self) -> dict[Place, Token]:
        """End the writers, let the readers see everything, and return the log's contents."""
        self._writing.clear()
        for thread in self._writers:
            self._await(lambda t=thread: not t.is_alive(), "the end of a writer")
        final = read_all(self._bootstrap_servers, self.topic, self.partitions)
        places = set(final)
        self._await(lambda: places <= self.history.seen_by_group, "all records seen by the group")
        self._await(lambda: places <= set(self.history.seen), "all records seen by the reader")
        self._reading.clear()
        for thread in self._readers:
            self._await(lambda t=thread: not t.is_alive(), "the end of a reader")
        return final

    def _await(
        self, condition: Callable[[], bool], what: str, timeout_s: float = SETTLE_TIMEOUT_S
    ) -> None:
        def holds() -> bool:
            if self._failures:
                raise self._failures[0]
            return condition()

        wait_until(holds, what, timeout_s)

    def _thread(self, run: Callable[[str], None], name: str) -> threading.Thread:
        def body() -> None:
            try:
                run(name)
            except BaseException as failure:  # noqa: BLE001 - raised by whoever waits
                self._failures.append(failure)

        return threading.Thread(target=body, name=name, daemon=True)

    # The clients

    def _write(self, name: str) -> None:
        producer = Producer(
            client(
                self._bootstrap_servers,
                acks="all",
                enable_idempotence=True,
                linger_ms=2,
                message_timeout_ms=120_000,
                request_timeout_ms=4_000,
            )
        )
        numbers = dict.fromkeys(range(self.partitions), 0)
        turn = 0
        due = time.monotonic()
        while self._writing.is_set():
            due = max(due + BURST_INTERVAL_S, time.monotonic())
            for _ in range(BURST_RECORDS if len(producer) < IN_FLIGHT_MAX else 0):
                partition = turn % self.partitions
                token = Token(name, partition, numbers[partition])
                numbers[partition] += 1
                turn += 1
                self.history.sent[name, partition] = numbers[partition]
                self._send(producer, token)
            while (left_s := due - time.monotonic()) > 0:
                producer.poll(left_s)
        left = producer.flush(SETTLE_TIMEOUT_S)
        assert left == 0, f"{left} records were neither acknowledged nor failed"

    def _send(self, producer: Producer, token: Token) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                place = None if offset is None else (token.partition, offset)
                self.history.acknowledge(token, place, time.monotonic())
            else:
                self.history.failed[token] = error.str()

        producer.produce(
            self.topic, token.encode(), partition=token.partition, on_delivery=delivered
        )

    def _read(self, _: str) -> None:
        """Follow all partitions without a group: each offset comes once, in order."""
        settings = client(self._bootstrap_servers, group_id="reader", auto_offset_reset="error")
        consumer = Consumer(settings)
        expected = dict.fromkeys(range(self.partitions), 0)
        try:
            consumer.assign(
                [TopicPartition(self.topic, p, OFFSET_BEGINNING) for p in range(self.partitions)]
            )
            while self._reading.is_set():
                for message in consumer.consume(500, 0.1):
                    if self._failed(message, "the reader"):
                        continue
                    partition, offset = self._note(message, in_group=False)
                    if offset != expected[partition]:
                        kind = "poll-skip" if offset > expected[partition] else "nonmonotonic-poll"
                        self.history.report(
                            f"{kind}: {partition} came to {offset}, not {expected[partition]}"
                        )
                    expected[partition] = offset + 1
        finally:
            consumer.close()

    def _consume(self, name: str) -> None:
        """Be a member of the group: what is committed was seen."""
        settings = client(
            self._bootstrap_servers,
            group_id=GROUP,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
        )
        consumer = Consumer(settings)
        try:
            consumer.subscribe([self.topic])
            while self._reading.is_set():
                messages = [
                    message
                    for message in consumer.consume(500, 0.1)
                    if not self._failed(message, name)
                ]
                for message in messages:
                    self._note(message, in_group=True)
                if messages:
                    self._commit(consumer)
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            # The next owner of the partitions reads those records again.
            if error.args[0].fatal():
                raise

    def _note(self, message: Message, *, in_group: bool) -> Place:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        place = (partition, offset)
        self.history.see(Token.decode(message.value() or b""), place, in_group=in_group)
        return place

    def _failed(self, message: Message, who: str) -> bool:
        """Return whether it is an error; one that a client must not be shown is an anomaly."""
        error = message.error()
        if error is None:
            return False
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self.history.report(f"poll-skip: {who} lost its place: {error.str()}")
        if error.fatal():
            raise KafkaException(error)
        return True


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> dict[Place, Token]:
    """Everything that the topic holds up to its high watermarks of now."""
    settings = client(bootstrap_servers, group_id="final", enable_partition_eof=True)
    consumer = Consumer(settings)
    found: dict[Place, Token] = {}
    open_partitions = set(range(partitions))
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

        def is_read() -> bool:
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        open_partitions.discard(message.partition())
                    continue
                place = (message.partition() or 0, message.offset() or 0)
                found[place] = Token.decode(message.value() or b"")
            return not open_partitions

        wait_until(is_read, "reading everything back", SETTLE_TIMEOUT_S)
    finally:
        consumer.close()
    return found
