"""A share-group member's session with one broker: it acquires, acknowledges and renews.

One thread and one connection each, because a broker releases what a session holds when its
connection ends, and because requests of a session are numbered. What was acquired goes into the
ledger; the records themselves are dropped undecoded, since tasks read them from the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.kafka.wire import Access, Connection, WireError
from barnabas.protocol.apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_fetch
from barnabas.spark.datasource.share_ledger import Acknowledgement, Ledger
from barnabas.spark.datasource.share_ranges import Delivery, Partition

IDLE_WAIT_MS: Final = 200
"""How long a broker may wait for records while none are held; acknowledgements wait too."""
BUSY_PAUSE_S: Final = 0.05
"""Between two requests that found nothing, while a batch runs."""
RETRY_S: Final = 0.25
FETCH_BYTES_MAX: Final = 16 << 20
RENEW: Final = 4
FINAL_EPOCH: Final = -1
FIRST_LOCK_S: Final = 30.0
"""The duration of a lock until a broker reports it."""

_SESSION_ENDED = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
_FATAL = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_telemetry = logging.getLogger(__name__)


class ShareSourceError(RuntimeError):
    """The source cannot continue: the brokers refuse it. The message says why."""


class Books:
    """The ledger with its lock, and the state that sessions and Spark share."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        """Held for all later operations."""
        self.ledger = Ledger()
        self.due: dict[Session, list[Acknowledgement]] = {}
        self.failure: Exception | None = None
        self.has_asked = False
        """True if any session has had an answer to a request for records."""

    def fail(self, error: Exception) -> None:
        """Have the query fail with an error."""
        with self.changed:
            self.failure = self.failure or error
            self.changed.notify_all()

    def is_batch_running(self) -> bool:
        """Return whether a batch runs, so that acknowledgements will follow soon."""
        return self.ledger.is_running


@dataclass(slots=True, frozen=True)
class SessionOptions:
    """The shared state of a source's sessions."""

    access: Access
    group: str
    records_max: int
    """In one request."""


class Session(threading.Thread):
    """Acquires records of some partitions of one broker, for one member, until it is stopped."""

    def __init__(
        self,
        options: SessionOptions,
        member_id: str,
        address: tuple[str, int],
        books: Books,
        on_moved: Callable[[], None],
    ) -> None:
        """`on_moved` is called when a partition has another leader, or may have."""
        super().__init__(name=f"share-session-{member_id[:8]}-{address[1]}", daemon=True)
        self.address = address
        self._options = options
        self._member_id = member_id
        self._books = books
        self._on_moved = on_moved
        self._wanted: frozenset[Partition] = frozenset()
        self._is_stopping = False
        self._connection: Connection | None = None
        self._epoch = 0
        self._known: frozenset[Partition] = frozenset()
        self._next_fetch_s = 0.0
        self._lock_s = FIRST_LOCK_S
        self._renewed_s = 0.0
        self._can_renew = True

    def want(self, partitions: frozenset[Partition]) -> None:
        """Say which partitions are this session's."""
        with self._books.changed:
            self._wanted = partitions
            self._books.changed.notify_all()

    def stop(self) -> None:
        """Release everything and end; `join` waits for it."""
        with self._books.changed:
            self._is_stopping = True
            self._books.changed.notify_all()

    def run(self) -> None:
        """Serve until stopped; a connection that fails is opened again."""
        try:
            while not self._is_stopping:
                try:
                    self._serve()
                except WireError as error:
                    _telemetry.info("share session with %s: %s", self.address, error)
                    self._end()
                    self._on_moved()
                    with self._books.changed:
                        self._books.changed.wait_for(lambda: self._is_stopping, RETRY_S)
        except Exception as error:  # noqa: BLE001 - the query is told
            self._books.fail(error)
        finally:
            self._end()

    # -- one connection

    def _serve(self) -> None:
        self._connection = Connection(self._options.access, *self.address)
        self._renewed_s = time.monotonic()
        while True:
            action = self._next_action()
            if action is None:
                self._leave()
                return
            action()

    def _next_action(self) -> Callable[[], None] | None:
        """Wait for something to do; None to end."""
        books = self._books
        with books.changed:
            while True:
                if self._is_stopping:
                    return None
                if self in books.due:
                    due = books.due.pop(self)
                    return lambda: self._acknowledge(due)
                now = time.monotonic()
                renew_s = self._renewed_s + self._lock_s / 3
                if now >= renew_s:
                    self._renewed_s = now
                    if self._can_renew and books.ledger.held_by(self):
                        return self._renew
                    continue
                can_fetch = bool(self._wanted) and not books.ledger.has_ready(self)
                if can_fetch and now >= self._next_fetch_s:
                    return self._fetch
                until = min(renew_s, self._next_fetch_s) if can_fetch else renew_s
                books.changed.wait(max(until - now, 0.001))

    def _fetch(self) -> None:
        with self._books.changed:
            is_busy = self._books.is_batch_running()
            wanted = self._wanted
        request = share_fetch.ShareFetchRequest(
            group_id=self._options.group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=0 if is_busy else IDLE_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            max_records=self._options.records_max,
            batch_size=self._options.records_max,
            topics=[
                share_fetch.FetchTopic(
                    topic_id=topic_id,
                    partitions=[share_fetch.FetchPartition(partition_index=i) for i in indexes],
                )
                for topic_id, indexes in _by_topic(wanted - self._known)
            ],
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(topic_id=topic_id, partitions=list(indexes))
                for topic_id, indexes in _by_topic(self._known - wanted)
            ],
        )
        assert self._connection is not None
        response = self._connection.call(SHARE_FETCH, request)
        self._check(response.error_code, response.error_message)
        self._count_request()
        self._known = wanted
        if response.acquisition_lock_timeout_ms > 0:
            self._lock_s = response.acquisition_lock_timeout_ms / 1000
        deliveries: list[Delivery] = []
        for topic in response.responses:
            for entry in topic.partitions:
                partition = Partition(topic.topic_id, entry.partition_index)
                if entry.error_code:
                    self._partition_failed(partition, entry.error_code)
                deliveries += (
                    Delivery(partition, got.first_offset, got.last_offset, got.delivery_count)
                    for got in entry.acquired_records
                )
        with self._books.changed:
            if not self._books.has_asked:
                self._books.has_asked = True
                self._books.changed.notify_all()
            if deliveries:
                due = self._books.ledger.acquired(self, deliveries)
                if due:
                    self._books.due.setdefault(self, []).extend(due)
                self._books.changed.notify_all()
            elif is_busy:
                self._next_fetch_s = time.monotonic() + BUSY_PAUSE_S

    def _acknowledge(self, due: Sequence[Acknowledgement]) -> None:
        failed = self._send_acknowledgements(
            (entry.partition, entry.first, entry.last, entry.verdict) for entry in due
        )
        with self._books.changed:
            ledger = self._books.ledger
            ledger.confirmed(self, [entry for entry in due if entry.partition not in failed])
            for partition in failed:
                ledger.refused(self, partition)
            self._next_fetch_s = 0.0
            self._books.changed.notify_all()

    def _renew(self) -> None:
        with self._books.changed:
            held = self._books.ledger.held_by(self)
        failed = self._send_acknowledgements(
            ((partition, *pair, RENEW) for partition, pairs in held.items() for pair in pairs),
            is_renewal=True,
        )
        with self._books.changed:
            for partition in failed:
                self._books.ledger.refused(self, partition)

    def _leave(self) -> None:
        """End the session: the broker releases what it holds."""
        with self._books.changed:
            due = self._books.due.pop(self, [])
        if due:
            self._acknowledge(due)
        if self._epoch:
            self._epoch = FINAL_EPOCH
            self._send_acknowledgements(())

    def _send_acknowledgements(
        self, entries: Iterable[tuple[Partition, int, int, int]], *, is_renewal: bool = False
    ) -> frozenset[Partition]:
        """Return the partitions of which nothing was acknowledged."""
        batches: dict[Partition, list[share_fetch.AcknowledgementBatch]] = {}
        for partition, first, last, kind in sorted(entries):
            batches.setdefault(partition, []).append(
                share_fetch.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=[kind]
                )
            )
        request = share_fetch.ShareAcknowledgeRequest(
            group_id=self._options.group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            is_renew_ack=is_renewal,
            topics=[
                share_fetch.AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        share_fetch.AcknowledgePartition(
                            partition_index=index,
                            acknowledgement_batches=batches[Partition(topic_id, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic_id, indexes in _by_topic(batches)
            ],
        )
        assert self._connection is not None
        response = self._connection.call(SHARE_ACKNOWLEDGE, request)
        if is_renewal and response.error_code == ErrorCode.INVALID_REQUEST:
            _telemetry.warning("this group does not renew locks: %s", response.error_message)
            self._can_renew = False
            return frozenset()
        self._check(response.error_code, response.error_message)
        self._count_request()
        failed = set()
        for topic in response.responses:
            for entry in topic.partitions:
                if entry.error_code:
                    partition = Partition(topic.topic_id, entry.partition_index)
                    failed.add(partition)
                    self._partition_failed(partition, entry.error_code)
        return frozenset(failed)

    def _check(self, error_code: int, message: str | None) -> None:
        if error_code:
            code = ErrorCode.of(error_code)
            if code in _FATAL:
                raise ShareSourceError(f"group {self._options.group}: {code.name} {message or ''}")
            # For any error the session starts again and releases its records.
            level = logging.INFO if code in _SESSION_ENDED else logging.WARNING
            _telemetry.log(level, "share session with %s: %s %s", self.address, code.name, message)
            raise WireError(f"{self.address} ended the share session: {code.name}")

    def _partition_failed(self, partition: Partition, error_code: int) -> None:
        code = ErrorCode.of(error_code)
        if code in _FATAL:
            raise ShareSourceError(f"partition {partition.number}: {code.name}")
        _telemetry.info("partition %s at %s: %s", partition.number, self.address, code.name)
        self._next_fetch_s = time.monotonic() + RETRY_S
        self._on_moved()

    def _count_request(self) -> None:
        if self._epoch != FINAL_EPOCH:
            self._epoch = self._epoch + 1 if self._epoch < 2**31 - 1 else 1

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._epoch = 0
        self._known = frozenset()
        with self._books.changed:
            self._books.due.pop(self, None)
            self._books.ledger.lost(self)
            self._books.changed.notify_all()


def _by_topic(partitions: Iterable[Partition]) -> Iterable[tuple[Uuid, list[int]]]:
    topics: dict[Uuid, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic_id, []).append(partition.number)
    return topics.items()
