"""A topic as a log that several workers share: everything is read, always, by a thread of its own.

`read_to_end` waits until all that is in the topic at the time of the call is read: what was written
before it, by anyone, is known after it. `send` writes; records of one key stay in order.

Source: org.apache.kafka.connect.util.KafkaBasedLog (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.topics import TopicPlan, prepare
from barnabas.kafka.listed_offsets import answer_of, told_offset
from barnabas.kafka.partitioning import JAVA_PARTITIONER
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
_POLL_S: Final = 0.2
_ASK_S: Final = 10.0
_PAUSE_S: Final = 0.2
_FLUSH_S: Final = 2.0
"""How long what was sent at last is waited for at the end."""
Take = Callable[[int, bytes | None, bytes | None], None]
"""Gets offset, key and value of a record, in the order of its partition, on the log's thread."""


class LogTimeoutError(ConnectError):
    """The end of the topic was not reached in time."""

    java_name = "java.util.concurrent.TimeoutException"


class KafkaLog:
    """One topic, read whole. `plan` None: the topic is there, and is not made or checked."""

    def __init__(
        self,
        clients: Clients,
        topic: str,
        take: Take,
        *,
        plan: TopicPlan | None = None,
        is_committed_only: bool = False,
    ) -> None:
        self.topic = topic
        self.partitions = 0
        self._take = take
        self._plan = plan
        self._isolation = (
            IsolationLevel.READ_COMMITTED if is_committed_only else IsolationLevel.READ_UNCOMMITTED
        )
        self._clients = clients
        self._admin: Any = None
        self._producer: Any = None
        self._consumer: Any = None
        self._positions: dict[int, int] = {}
        self._moved = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"log {topic}", daemon=True)
        self._pump = threading.Thread(target=self._deliver, name=f"write {topic}", daemon=True)

    def start(self, timeout_s: float = 60.0) -> None:
        """Make or check the topic and read it to its end. Raises ConfigError, ConnectError."""
        self._open()
        try:
            if self._plan is not None:
                self.partitions = prepare(self._admin, self._plan, timeout_s)
            else:
                self.partitions = self._count()
            places = [
                TopicPartition(self.topic, n, OFFSET_BEGINNING) for n in range(self.partitions)
            ]
            self._positions = dict.fromkeys(range(self.partitions), 0)
            self._consumer.assign(places)
            self._thread.start()
            self._pump.start()
            self.read_to_end(timeout_s)
        except BaseException:
            self.stop()
            raise

    def _open(self) -> None:
        self._admin = AdminClient(self._clients.named(f"{self.topic}-admin"))
        self._producer = Producer(
            {
                **self._clients.named(self.topic),
                **JAVA_PARTITIONER,
                "acks": "all",
                "max.in.flight.requests.per.connection": 1,
                "message.timeout.ms": 0,  # who waits says how long
                "linger.ms": 0,
            }
        )
        self._consumer = Consumer(
            {
                **self._clients.named(self.topic),
                "group.id": f"{self.topic}-readers",  # asked for, never used
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": (
                    "read_committed"
                    if self._isolation == IsolationLevel.READ_COMMITTED
                    else "read_uncommitted"
                ),
            }
        )

    def _count(self) -> int:
        found = self._admin.list_topics(self.topic, timeout=_ASK_S).topics[self.topic]
        if not found.partitions:
            raise ConnectError(f"topic '{self.topic}' does not exist")
        return len(found.partitions)

    def read_to_end(self, timeout_s: float = 30.0) -> None:
        """Wait until all that is in the topic now is read. Raises LogTimeoutError."""
        deadline = time.monotonic() + timeout_s
        ends = self._ends(deadline)
        with self._moved:
            done = self._moved.wait_for(
                lambda: self._is_closed or self._has_reached(ends),
                max(0.0, deadline - time.monotonic()),
            )
            if not done or not self._has_reached(ends):
                raise LogTimeoutError(f"topic '{self.topic}' was not read to its end in time")

    def _has_reached(self, ends: dict[int, int]) -> bool:
        return all(self._positions[number] >= end for number, end in ends.items())

    def _ends(self, deadline: float) -> dict[int, int]:
        wanted = {TopicPartition(self.topic, n): OffsetSpec.latest() for n in self._positions}
        while True:
            admin = self._admin
            if admin is None:
                raise LogTimeoutError(f"topic '{self.topic}' is closed")
            try:
                asked = admin.list_offsets(
                    wanted,
                    isolation_level=self._isolation,
                    request_timeout=max(0.1, min(_ASK_S, deadline - time.monotonic())),
                )
                return {place.partition: told_offset(answer_of(f)) for place, f in asked.items()}
            except KafkaException as error:
                self._ask_anew()
                if time.monotonic() > deadline or self._is_closed:
                    raise LogTimeoutError(
                        f"the end of topic '{self.topic}' is not known: {error.args[0].str()}"
                    ) from error
                time.sleep(_PAUSE_S)

    def _ask_anew(self) -> None:
        """Ask who leads: librdkafka would go on for minutes with the leader that it knows."""
        with self._moved:
            if not self._is_closed:
                self._admin = AdminClient(self._clients.named(f"{self.topic}-admin"))

    def send(self, key: bytes | str, value: bytes | None) -> Future[None]:
        """Write a record; the result is there when all replicas in sync have it."""
        answer: Future[None] = Future()

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(ConnectError(error.str()))

        producer = self._producer
        try:
            if producer is None:
                raise ConnectError("the worker has closed it")
            producer.produce(self.topic, value, key, on_delivery=delivered)
        except (ConnectError, KafkaException, BufferError) as error:
            answer.set_exception(ConnectError(f"writing to topic '{self.topic}': {error}"))
        return answer

    def flush(self, timeout_s: float = 10.0) -> None:
        """Wait until what was sent is written. Raises LogTimeoutError."""
        producer = self._producer
        if producer is None or producer.flush(timeout_s):
            raise LogTimeoutError(f"topic '{self.topic}' was not written in time")

    def stop(self) -> None:
        """End reading; what is not written by now may be lost."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()
        for thread in (self._thread, self._pump):
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()
        if self._consumer is not None:
            self._consumer.close()
        if self._producer is not None:
            self._producer.flush(_FLUSH_S)
        # They end with the last reference to them: until then they would look for their brokers.
        self._consumer = self._producer = self._admin = None

    def _deliver(self) -> None:
        while not self._is_closed:
            self._admin.poll(0)  # what it logs is told here
            self._producer.poll(_POLL_S)

    def _run(self) -> None:
        while not self._is_closed:
            try:
                message = self._consumer.poll(_POLL_S)
            except KafkaException as error:
                _log.warning("reading topic %s: %s", self.topic, error.args[0].str())
                time.sleep(_PAUSE_S)
                continue
            if message is not None:
                self._on_message(message)

    def _on_message(self, message: Message) -> None:
        number, offset = int(message.partition() or 0), int(message.offset() or 0)
        error = message.error()
        if error is None:
            try:
                key: Any = message.key()
                self._take(offset, key, message.value())
            except Exception:  # noqa: BLE001
                # Who hears of a record must not keep the others from being read.
                _log.exception("offset %d of topic %s", offset, self.topic)
            offset += 1
        elif error.code() != KafkaError._PARTITION_EOF:
            _log.warning("reading topic %s: %s", self.topic, error.str())
            return
        with self._moved:
            self._positions[number] = max(self._positions[number], offset)
            self._moved.notify_all()
