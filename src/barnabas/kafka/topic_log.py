"""A topic that holds a state: `TopicLog` reads all of it, follows it, and writes to it.

The state is the sum of the topic's records: several processes share it, or one restores it after a
crash. The owner of a state gives the log a function `take`, and can rely on this:

- `read_to_end` returns when all records written before the call have been passed to `take`. They
  come in the order of their partition, each once.
- A log that `follows` reads all the time, in a thread. Others read only on request.
- `send` writes; records of one key stay in order.
- `lead` fences earlier writers, since all use one transactional id, and reads to the end: nobody
  else can write after that. `append` writes several records in one transaction, all or none. If it
  fails, the records may be written or not; the next `lead` finds out.
- If records that were read are gone, the topic was deleted, recreated or truncated. The log then
  fails with LogLostError, or reads the topic again from its start (`reads_again`).

The registry follows the same rules over aiokafka (docs/decisions/0025).

Source: org.apache.kafka.connect.util.KafkaBasedLog (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

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
from confluent_kafka.admin import OffsetSpec

from barnabas.kafka.admin import REQUEST_S, Admin
from barnabas.kafka.fenced_writer import FencedError, FencedWriter, Pair
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.planned_topics import (
    DENIED,
    PAUSE_S,
    TopicLogError,
    TopicPlan,
    create,
    wait_until_led,
)

POLL_S: Final = 0.2
FLUSH_S: Final = 2.0
"""Time that `close` waits for the last records to be acknowledged."""
CHECK_S: Final = 30.0
"""The interval at which a log that follows checks that the topic is still the same."""
CHECK_REQUEST_S: Final = 2.0
"""The time limit of that check, during which reports of writes, and `close`, wait."""
_CHUNK: Final = 500
_UNKNOWN: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_CUT_OFF: Final = (
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
)
_LASTING: Final = (
    *DENIED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
    KafkaError.TOPIC_EXCEPTION,
)
"""Errors that do not pass by waiting."""
_log = logging.getLogger(__name__)


class LogRecord(NamedTuple):
    """A record of a log."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


Take = Callable[[LogRecord], None]


class LogTimeoutError(TopicLogError):
    """The end of the topic was not known, or not reached, in time."""

    def __init__(self, text: str, error: KafkaError | None = None) -> None:
        super().__init__(text, error or KafkaError(KafkaError._TIMED_OUT, text))


class LogLostError(TopicLogError):
    """The topic has changed since it was read: the owner's state may be wrong."""


class TopicLog:
    """One topic, read from its start; each record is passed to `take`.

    `settings` are librdkafka's for all clients, `producer` more for the leader's producer.
    `is_committed_only` leaves out records of uncommitted transactions. A log that `follows` calls
    `take` in its own thread.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        take: Take,
        *,
        follows: bool = False,
        is_committed_only: bool = False,
        reads_again: bool = False,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = 0
        self.lost: LogLostError | None = None
        """Why the log can be read no longer."""
        self._settings = settings
        self._take = take
        self._is_committed_only = is_committed_only
        self._reads_again = reads_again
        self._producer_settings = producer or {}
        self._admin = Admin(self._named("-admin"))
        self._consumer: Any = None
        self._producer: Any = None
        self._leader: FencedWriter | None = None
        self._topic_id = ""
        self._checked_at = 0.0
        self._positions: dict[int, int] = {}
        self._moved = threading.Condition()
        self._is_following = follows
        self._other = ""
        """Why the topic is not the one that was read, until the thread that reads knows."""
        self._is_closed = False
        self._threads: list[threading.Thread] = []

    @property
    def leads(self) -> bool:
        """True if `append` may write; another writer may have fenced this one unnoticed."""
        return self._leader is not None

    @property
    def positions(self) -> Mapping[int, int]:
        """Of each partition the offset before which all is taken."""
        return self._positions

    def open(
        self,
        plan: TopicPlan | None = None,
        timeout_s: float = 60.0,
        *,
        check: Callable[[Mapping[str, str]], None] | None = None,
    ) -> None:
        """Make the topic if there is a plan for it, and begin to read. Raises TopicLogError.

        `check` gets the configuration of one that was there, if that may be seen, and may refuse.
        """
        deadline = time.monotonic() + timeout_s
        refusal = None if plan is None else create(self._admin, plan, deadline)
        if refusal is not None and check is not None:
            try:
                config = self._admin.configuration(self.topic)
            except KafkaException as error:
                _log.info("the configuration of topic %s is not known: %s", self.topic, error)
            else:
                check(config)
        self.partitions = wait_until_led(self._admin, self.topic, deadline, refusal)
        self._consumer = Consumer(
            {
                "group.id": f"{self.topic}-readers",  # asked for, never used
                # An empty answer marks the end.
                **({} if self._is_following else {"fetch.wait.max.ms": 10}),
                **self._settings,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "isolation.level": (
                    "read_committed" if self._is_committed_only else "read_uncommitted"
                ),
            }
        )
        self._check()
        self._begin()
        if self._is_following:
            for target, name in ((self._run, "log"), (self._serve, "write")):
                thread = threading.Thread(target=target, name=f"{name} {self.topic}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _begin(self) -> None:
        self._positions = dict.fromkeys(range(self.partitions), 0)
        self._other = ""
        self._go_on()

    def _go_on(self) -> None:
        """Let the client read on from what is taken."""
        self._consumer.assign(
            [
                TopicPartition(self.topic, number, offset or OFFSET_BEGINNING)
                for number, offset in self._positions.items()
            ]
        )

    def _named(self, suffix: str) -> dict[str, Any]:
        own = {"client.id": f"{name}{suffix}"} if (name := self._settings.get("client.id")) else {}
        return {**self._settings, **own}

    def close(self) -> None:
        """End; what is not written within `FLUSH_S` fails."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        if self._consumer is not None:
            self._consumer.close()
        if self._producer is not None and self._producer.flush(FLUSH_S):
            self._producer.purge()
            self._producer.poll(0)  # so that nobody waits for what is not written
        # They end with the last reference to them: until then they would look for their brokers.
        self._consumer = self._producer = self._leader = None
        self._admin.close()

    # --- reading ---------------------------------------------------------------------------------

    def read_to_end(self, timeout_s: float = 30.0, *, has_open: bool = False) -> None:
        """Wait until all that is in the topic now is taken; with `has_open` also what is open.

        Raises LogTimeoutError, LogLostError and, where the log does not follow, TopicLogError.
        """
        deadline = time.monotonic() + timeout_s
        ends = self._ends_now(deadline, has_open=has_open)
        if self._is_following:
            with self._moved:
                self._moved.wait_for(
                    lambda: self._is_closed or self.lost or self._has_reached(ends),
                    max(0.0, deadline - time.monotonic()),
                )
        else:
            while not self._has_reached(ends) and not self._is_closed and self.lost is None:
                self._poll(POLL_S)
                if time.monotonic() > deadline:
                    break
        if self.lost is not None:
            raise self.lost.with_traceback(None)  # it would grow with each call
        if not self._has_reached(ends):
            raise LogTimeoutError(f"topic '{self.topic}' was not read to its end in time")

    def _ends_now(self, deadline: float, *, has_open: bool) -> dict[int, int]:
        """Return the ends to read to, and notice a topic that ends before what is taken."""
        while True:
            before = dict(self._positions)
            left_s = max(0.0, deadline - time.monotonic())
            ends = self.ends(left_s, has_open=has_open)
            # The end of what is committed follows the end of what is written.
            if _cover(ends, before) or _cover(self.ends(left_s, has_open=True), before):
                return ends
            self._check()
            if self._other or self.lost is not None or time.monotonic() > deadline:
                return ends
            if self._is_following:
                time.sleep(PAUSE_S)
            else:
                self._poll(POLL_S)

    def ends(self, timeout_s: float = 30.0, *, has_open: bool = False) -> dict[int, int]:
        """Return the end of each partition: of what is committed, if only that is read.

        Raises LogTimeoutError.
        """
        deadline = time.monotonic() + timeout_s
        committed_only = self._is_committed_only and not has_open
        isolation = (
            IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
        )
        wanted = {TopicPartition(self.topic, n): OffsetSpec.latest() for n in self._positions}
        while True:
            if self._is_closed:
                raise LogTimeoutError(f"topic '{self.topic}' is closed")
            left_s = max(0.1, min(REQUEST_S, deadline - time.monotonic()))
            try:
                offsets = self._admin.offsets(wanted, left_s, isolation)
            except KafkaException as error:
                failure = error.args[0]
                if time.monotonic() > deadline or failure.code() in _LASTING:
                    raise LogTimeoutError(
                        f"the end of topic '{self.topic}' is not known: {failure.str()}", failure
                    ) from error
                time.sleep(PAUSE_S)
            else:
                return {partition: offset for (_, partition), offset in offsets.items()}

    def pass_over(self, partition: int, offset: int) -> None:
        """Count what is before an offset as taken. The log must not follow."""
        assert not self._is_following
        self._positions[partition] = offset
        self._go_on()

    def end_reading(self) -> None:
        """Close the reader of a log that only writes from now on. The log must not follow."""
        assert not self._is_following
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None
        self._admin.close()

    def _has_reached(self, ends: Mapping[int, int]) -> bool:
        return not self._other and _cover(self._positions, ends)

    def _run(self) -> None:
        while not self._is_closed and self.lost is None:
            try:
                self._poll(POLL_S)
                if self._other:
                    self._lose(self._other)
            except LogLostError:
                _log.exception("topic %s", self.topic)
            except (KafkaException, TopicLogError) as error:
                _log.warning("reading topic %s: %s", self.topic, error)
                time.sleep(PAUSE_S)
            except Exception:  # noqa: BLE001  callers wait for this thread
                _log.exception("reading topic %s", self.topic)
                time.sleep(PAUSE_S)

    def _poll(self, seconds: float) -> None:
        """Take the records that the client has. Raises LogLostError, TopicLogError."""
        # `consume` alone would wait for all that are asked for, or the whole time.
        first = self._consumer.poll(seconds)
        messages = [] if first is None else [first, *self._consumer.consume(_CHUNK - 1, 0)]
        try:
            for message in messages:
                if not self._on_message(message):
                    break
        except Exception:
            if self.lost is None:
                self._go_on()  # the client would continue after the messages that are left
            raise
        finally:
            if messages:
                with self._moved:
                    self._moved.notify_all()

    def _on_message(self, message: Message) -> bool:
        """Take a record. Returns whether those after it are of the same topic."""
        number, offset = int(message.partition() or 0), int(message.offset() or 0)
        error = message.error()
        if error is None:
            if offset >= self._positions[number]:  # a client may give a record twice
                self._hand_on(LogRecord(number, offset, _bytes(message.key()), message.value()))
                self._positions[number] = offset + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            # Beyond markers of transactions, and what compaction has left out.
            self._positions[number] = max(self._positions[number], offset)
        elif error.code() in _CUT_OFF:
            # Learn the id of a topic that was made again before it is read. Otherwise, the next
            # check would find a new id, and the topic would be read twice.
            self._check()
            self._lose(self._other or f"it no longer has offset {self._positions[number]}")
            return False
        elif error.code() in _UNKNOWN and not self._is_following:
            self._lose("it has been deleted")
        elif self._is_following:
            _log.warning("reading topic %s: %s", self.topic, error.str())
        elif error.fatal() or error.code() in _LASTING:
            raise TopicLogError(f"cannot read {self.topic}: {error}", error)
        else:
            _log.debug("reading topic %s: %s", self.topic, error.str())
        return True

    def _hand_on(self, record: LogRecord) -> None:
        try:
            self._take(record)
        except Exception:
            if not self._is_following:
                raise
            # One record must not keep the others from being read.
            _log.exception("offset %d of topic %s", record.offset, self.topic)

    def _lose(self, why: str) -> None:
        """The topic is another one. Raises LogLostError unless it is read again."""
        if self._reads_again:
            _log.warning("topic %s is read again from its start: %s", self.topic, why)
            self._begin()
            return
        self.lost = LogLostError(
            f"topic '{self.topic}' is not the one that was read: {why}. It was deleted, made "
            "again, or cut off"
        )
        with self._moved:
            self._moved.notify_all()
        raise self.lost

    def _check(self, timeout_s: float = REQUEST_S) -> None:
        """Notice a topic that was made again. Raises LogLostError unless the log follows."""
        self._checked_at = time.monotonic()
        if self._consumer is None:
            return
        try:
            description = self._admin.description(self.topic, timeout_s)
        except KafkaException as error:  # it says nothing about the topic, or the reader learns it
            _log.debug("topic %s cannot be described: %s", self.topic, error)
            return
        with self._moved:
            known, self._topic_id = self._topic_id, str(description.topic_id)
            if known in ("", self._topic_id):
                return
            self.partitions = len(description.partitions)
            self._other = "it has been made again"
        if not self._is_following:
            self._lose(self._other)

    # --- writing ---------------------------------------------------------------------------------

    def send(self, key: bytes | str, value: bytes | None) -> Future[None]:
        """Write a record; the result is there when all replicas in sync have it.

        It is a TopicLogError where the record is not written.
        """
        answer: Future[None] = Future()
        answer.set_running_or_notify_cancel()  # nobody can take back what is sent

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(TopicLogError(error.str(), error))

        assert self._is_following  # its thread reports what was written
        try:
            producer = self._sender()
            producer.produce(self.topic, value, key, on_delivery=delivered)
        except (TopicLogError, KafkaException, BufferError) as error:
            answer.set_exception(TopicLogError(f"writing to topic '{self.topic}': {error}"))
        return answer

    def _sender(self) -> Any:
        with self._moved:
            if self._is_closed:
                raise TopicLogError("it is closed")
            if self._producer is None:
                self._producer = Producer(
                    {
                        **self._settings,
                        **JAVA_PARTITIONER,
                        "acks": "all",
                        "max.in.flight.requests.per.connection": 1,
                        "message.timeout.ms": 0,  # the caller decides how long it waits
                        "linger.ms": 0,
                    }
                )
                self._moved.notify_all()
            return self._producer

    def flush(self, timeout_s: float = 10.0) -> None:
        """Wait until what was sent is written. Raises LogTimeoutError."""
        producer = self._producer
        if self._is_closed or (producer is not None and producer.flush(timeout_s)):
            raise LogTimeoutError(f"topic '{self.topic}' was not written in time")

    def lead(self, transactional_id: str, timeout_s: float = 30.0) -> None:
        """Fence the writers before, and read to the end; the log then leads until a failure.

        Raises AppendError where the id cannot be taken, and as `read_to_end` does.
        """
        if self._leader is not None:
            return
        settings = {**self._named("-leader"), **self._producer_settings}
        leader = FencedWriter(settings, self.topic, transactional_id, timeout_s)
        if not self._is_following and any(self._positions.values()):
            self._check()
        # Up to what others have left open, too: it hides what comes after until it times out.
        self.read_to_end(timeout_s, has_open=True)
        self._leader = leader

    def append(self, pairs: Sequence[Pair], timeout_s: float = 30.0) -> list[int]:
        """Write records in one transaction. Returns their offsets; `take` gets them as any others.

        Raises FencedError, AppendError; the log then no longer leads.
        """
        leader, self._leader = self._leader, None
        if leader is None:
            raise FencedError(f"cannot write to {self.topic}: this log does not lead")
        offsets = leader.append(pairs, timeout_s)
        self._leader = leader
        return offsets

    def _serve(self) -> None:
        """Let clients report what was written, and log."""
        while not self._is_closed:
            try:
                self._serve_once()
            except Exception:  # noqa: BLE001  callers wait for this thread
                _log.exception("serving the clients of topic %s", self.topic)
                time.sleep(PAUSE_S)

    def _serve_once(self) -> None:
        if (leader := self._leader) is not None:
            leader.poll()
        with self._moved:
            if self._producer is None:
                self._moved.wait(POLL_S)
            producer = self._producer
        if producer is not None:
            producer.poll(POLL_S)
        if time.monotonic() - self._checked_at > CHECK_S:
            self._check(CHECK_REQUEST_S)


def _cover(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Return whether positions are not before ends."""
    return all(positions.get(number, 0) >= end for number, end in ends.items())


def _bytes(data: Any) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
