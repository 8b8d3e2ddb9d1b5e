"""Reads the topic from its start to its end, and then follows it for ever.

Only committed records are handed on. Brokers that go and come, and other leaders of the
partition, are waited for. What cannot be waited for ends the reader for good, with `failure`: the
topic was deleted, or records that were read are gone from it, so that a new reading would come to
another state.
"""

import asyncio
import bisect
import contextlib
import logging
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED, PartitionRecords
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from barnabas.base.backoff import ExponentialBackoff
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.faults import TROUBLE, StoreError, watch, words

FETCH_BYTES_MAX = 16 * 1024 * 1024
"""Of one answer; ten thousand schemas come in one or two."""
FETCH_WAIT_MS = 500
EARLIEST = -2
LATEST = -1
RECORDS_AT_ONCE = 200
"""After so many others get their turn."""
BACKOFF_MS_MAX = 1000
FAILURES_PER_CLIENT = 10
"""After so many in a row the brokers are looked up again, at their first addresses."""

telemetry = logging.getLogger(__name__)

Apply = Callable[[int, int, bytes | None, bytes | None], None]
"""(offset, timestamp_ms, key, value) of a committed record."""


class _Waiter(NamedTuple):
    position: int
    future: asyncio.Future[None]


class TopicReader:
    """Hands all committed records of a topic's one partition to `apply`, in order."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        apply: Apply,
        *,
        missing_topic_s: float | None = None,
    ) -> None:
        self.position = 0
        """The offset that is read next: all committed records before it are applied."""
        self.failure: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()
        """Why the reader ended, if it did by itself."""
        self.failure.add_done_callback(self._fail_waiters_with)
        self._connection = connection
        self._partition = TopicPartition(topic, 0)
        self._apply = apply
        self._missing_topic_s = missing_topic_s or connection.request_timeout_ms / 1000
        self._missing_since: float | None = None
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._waiters: list[_Waiter] = []
        self._backoff = ExponentialBackoff(
            connection.retry_backoff_ms, BACKOFF_MS_MAX, random.Random()
        )

    async def start(self) -> None:
        """Find the start of the topic and begin to read. Waits for brokers as long as it takes."""
        self.position = await self._offset(EARLIEST, READ_UNCOMMITTED)
        self._task = asyncio.create_task(self._follow())
        watch(self._task, "the reader of the topic", self.failure)

    async def stop(self) -> None:
        """End for good; who waits for a position gets StoreError."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._fail_waiters(StoreError("the reader of the topic has stopped"))
        await self._close_client()

    async def committed_end(self) -> int:
        """The position after which nothing is committed now. Waits for brokers."""
        return await self._offset(LATEST, READ_COMMITTED)

    async def log_end(self) -> int:
        """The position after all records, committed or not. Waits for brokers."""
        return await self._offset(LATEST, READ_UNCOMMITTED)

    async def reached(self, position: int) -> None:
        """Wait until everything before `position` is applied. Raises StoreError if it ends."""
        if self.position >= position:
            return
        if self.failure.done():
            raise self.failure.result()
        waiter = _Waiter(position, asyncio.get_running_loop().create_future())
        bisect.insort(self._waiters, waiter, key=lambda other: other.position)
        try:
            await waiter.future
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    # Following

    async def _follow(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._fetch()
                    failures = 0
                except TROUBLE as error:
                    failures += 1
                    await self._after_trouble("cannot be read", error, failures)
        except StoreError as error:
            telemetry.error("%s", error)
            self.failure.set_result(error)

    async def _fetch(self) -> None:
        leader = await self._leader()
        topic, partition = self._partition
        request = FetchRequest(
            FETCH_WAIT_MS,
            1,
            FETCH_BYTES_MAX,
            READ_COMMITTED,
            [(topic, [(partition, self.position, FETCH_BYTES_MAX)])],
        )
        answer = await self._client.send(leader, request)
        ((_, ((_, code, high_watermark, *rest),)),) = answer.topics
        self._check(errors.for_code(code), high_watermark)
        self._missing_since = None
        # last stable offset, log start (from version 5), aborted, read replica (from 11), records
        aborted = rest[2] if answer.API_VERSION >= 5 else rest[1]
        records = MemoryRecords(rest[-1])
        if records.size_in_bytes() and not records.has_next():
            raise StoreError(
                f"a batch of topic {topic} at offset {self.position} is larger than "
                f"{FETCH_BYTES_MAX} bytes"
            )
        await self._hand_on(
            PartitionRecords(
                self._partition, records, aborted, self.position, None, None, True, READ_COMMITTED
            )
        )

    async def _hand_on(self, records: Any) -> None:
        for count, record in enumerate(records, 1):
            self._apply(record.offset, record.timestamp, record.key, record.value)
            self.position = record.offset + 1
            if count % RECORDS_AT_ONCE == 0:
                self._wake()
                await asyncio.sleep(0)
        # Beyond markers, aborted records and what compaction left out.
        self.position = max(self.position, records.next_fetch_offset)
        self._wake()

    def _check(self, error: type[Exception], high_watermark: int) -> None:
        """Raise what an answer's error comes to."""
        topic = self._partition.topic
        if error is errors.NoError:
            return
        if error is errors.OffsetOutOfRangeError:
            raise StoreError(
                f"topic {topic} no longer has offset {self.position} (it ends at "
                f"{high_watermark}): it was deleted, truncated or cut off, and what this instance "
                "has read is no longer what the topic says. Find the cause, then restart"
            )
        if error is errors.TopicAuthorizationFailedError:
            telemetry.error("topic %s: %s", topic, words(error()))
        if error is errors.UnknownTopicOrPartitionError:
            self._note_missing()
        raise error()

    def _note_missing(self) -> None:
        """The topic may be unknown for a moment to a broker that has just started."""
        now = time.monotonic()
        self._missing_since = self._missing_since or now
        if now - self._missing_since >= self._missing_topic_s and self._task is not None:
            raise StoreError(
                f"topic {self._partition.topic} has been deleted: the brokers have not known it "
                f"for {self._missing_topic_s:g} s"
            )

    def _wake(self) -> None:
        while self._waiters and self._waiters[0].position <= self.position:
            waiter = self._waiters.pop(0)
            if not waiter.future.done():
                waiter.future.set_result(None)

    def _fail_waiters_with(self, failure: asyncio.Future[StoreError]) -> None:
        if not failure.cancelled():
            self._fail_waiters(failure.result())

    def _fail_waiters(self, error: StoreError) -> None:
        for waiter in self._waiters:
            if not waiter.future.done():
                waiter.future.set_exception(error)
        self._waiters.clear()

    # Brokers

    async def _offset(self, which: int, isolation: int) -> int:
        failures = 0
        while True:
            if self.failure.done():
                raise self.failure.result()
            try:
                return await self._offset_now(which, isolation)
            except TROUBLE as error:
                failures += 1
                await self._after_trouble("cannot be looked up", error, failures)

    async def _offset_now(self, which: int, isolation: int) -> int:
        leader = await self._leader()
        topic, partition = self._partition
        request = OffsetRequest(-1, isolation, [(topic, [(partition, which)])])
        # Not on the connection where a fetch waits: it would be answered after that.
        answer = await self._client.send(leader, request, group=ConnectionGroup.COORDINATION)
        ((_, ((_, code, _, offset),)),) = answer.topics
        error = errors.for_code(code)
        if error is not errors.NoError:
            raise error()
        return int(offset)

    async def _leader(self) -> int:
        """The broker that leads the partition, as far as is known."""
        client = await self._connected()
        leader = client.cluster.leader_for_partition(self._partition)
        if leader is None or leader == -1:
            await self._update_metadata()
            leader = client.cluster.leader_for_partition(self._partition)
            if client.cluster.partitions_for_topic(self._partition.topic) is None:
                self._note_missing()
        if leader is None or leader == -1:
            raise errors.LeaderNotAvailableError(f"topic {self._partition.topic}")
        return int(leader)

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None:
                client = AIOKafkaClient(**self._connection.options("reader"))
                try:
                    await client.bootstrap()
                    await client.set_topics([self._partition.topic])
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            return self._client

    async def _update_metadata(self) -> None:
        if self._client is not None:
            # Waiting for a client that is closed in between would never end.
            async with asyncio.timeout(self._connection.request_timeout_ms / 1000):
                await self._client.force_metadata_update()

    async def _after_trouble(self, what: str, error: BaseException, failures: int) -> None:
        tell = telemetry.warning if failures == 3 else telemetry.debug
        tell("topic %s %s, trying again: %s", self._partition.topic, what, words(error))
        if failures % FAILURES_PER_CLIENT == 0:
            await self._close_client()
        else:
            with contextlib.suppress(TimeoutError):
                await self._update_metadata()
        await asyncio.sleep(self._backoff.after(failures) / 1000)

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
