"""One reign: the time from fencing the former leader until this instance leads no longer.

Decisions are taken against a state of their own, `speculative`, which is ahead of the committed
one by what is not committed yet. Their records wait for the next transaction; while one is under
way those of many requests gather for the one after it. A request is answered when the committed
state of this instance holds all that its answer rests on, also if it wrote nothing itself: the
schema that it found may be one that another request is about to commit.

Any failure ends the reign, and with it the speculative state. Waiting requests get NotStoredError
once it is certain that none of their records is in the topic; `store.py` then has it decided again.
Where a commit was asked for and not confirmed, that is known when the reader has passed the
records: it reads what is committed, and goes no further than the first open transaction.
The transactional id is the same for all leaders, so `InitProducerId` at the start of a reign ends
the transactions of the one before, even if that one still believes that it leads.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from aiokafka import AIOKafkaProducer

from barnabas.registry import errors
from barnabas.registry.config import RegistryConfig
from barnabas.registry.core.decision import Decision, Formats, View
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka.batch import Batch, NotStoredError, OwnRecord, Request
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.faults import CLIENT_TROUBLE, REFUSALS, StoreError, words
from barnabas.registry.kafka.reader import TopicReader
from barnabas.registry.kafka.replica import Replica
from barnabas.registry.kafka.topic import TopicFacts
from barnabas.registry.large_work import LargeWork
from barnabas.registry.service import Done

Response = TypeVar("Response")

TRANSACTION_TIMEOUT_MS = 20_000
"""After so long the brokers end a transaction whose leader is gone; readers wait for that."""
BATCH_BYTES_MAX = 512 * 1024
RECORD_OVERHEAD_BYTES = 512
"""More than a batch's header and a record's lengths take."""
RENEWED_AFTER = 1000
"""After so many records, and a tenth of all, the speculative state is copied again when possible:
a copy shares its tables, which two states that replay the same records do not."""
WAITING_MAX = 10_000
"""Requests that wait for a transaction; more are refused."""

telemetry = logging.getLogger(__name__)


class _Undone(Generic[Response]):
    """A decision that has to wait: the response, or the RegistryError that refuses."""

    __slots__ = ("outcome",)

    def __init__(self, outcome: Response | RegistryError) -> None:
        self.outcome = outcome


class Reign:
    """`ended` holds the reason when it is over; nothing starts it again."""

    def __init__(
        self,
        config: RegistryConfig,
        connection: Connection,
        facts: TopicFacts,
        reader: TopicReader,
        replica: Replica,
        formats: Formats,
    ) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._config = config
        self._connection = connection
        self._record_bytes_max = facts.message_bytes_max - RECORD_OVERHEAD_BYTES
        self._batch_bytes_max = min(BATCH_BYTES_MAX, self._record_bytes_max)
        self._reader = reader
        self._replica = replica
        self._formats = formats
        self._speculative = replica.state
        self._view = View(self._speculative, formats, config.defaults)
        self._replayed = 0
        """Records that both states have replayed since the one was copied from the other."""
        self._producer: Any = None
        self._next = Batch()
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        """Set while no transaction is under way."""
        self._idle.set()
        self._open = asyncio.Event()
        """Set unless paused."""
        self._open.set()
        self._is_contradicted = False
        """True if records that were committed did not have the effect that they were meant to."""
        self._committed_to = 0
        """The position after the last committed record that an answer may rest on."""
        self._deciding = asyncio.Lock()
        self._undecided = 0
        """Requests that are being decided, or wait for that."""
        self._large = LargeWork()
        self._unanswered = 0
        self._answered = asyncio.Event()
        """Set while no request waits."""
        self._answered.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._committing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True if it takes requests."""
        return self._committing is not None and not self.ended.done()

    async def begin(self) -> None:
        """Fence the former leader, read to the end and start to decide.

        Raises KafkaError, TimeoutError or StoreError if that cannot be done.
        """
        options = self._connection.options("writer")
        producer = AIOKafkaProducer(
            **options,
            transactional_id=self._config.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            max_batch_size=self._batch_bytes_max,
            max_request_size=self._record_bytes_max + RECORD_OVERHEAD_BYTES,
        )
        try:
            await producer.start()
            end = await self._reader.log_end()
            await self._reader.reached(end)
        except BaseException:
            await _close(producer)
            raise
        self._producer = producer
        self._committed_to = end
        self._copy_state()
        if not self.ended.done():
            self._committing = asyncio.create_task(self._commit_for_ever())

    def end(self, reason: str) -> None:
        """Stop at once."""
        if self.ended.done():
            return
        self.ended.set_result(reason)
        if self._committing is not None:
            self._committing.cancel()
        self._next.fail(NotStoredError(reason))

    async def close(self) -> None:
        """End, and let go of the brokers.

        Those whose commit is in doubt are answered later: by what the reader finds.
        """
        self.end("it is over")
        self._large.close()
        if self._committing is not None:
            await asyncio.wait((self._committing,))
        if self._producer is not None:
            await _close(self._producer)

    async def pause(self) -> None:
        """Begin no transaction until `resume`; returns when none is under way."""
        self._open.clear()
        await self._idle.wait()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._open.set()

    async def finish(self) -> None:
        """Wait until all that was asked for is answered, or the reign is over."""
        answered = asyncio.create_task(self._answered.wait())
        await asyncio.wait((answered, self.ended), return_when=asyncio.FIRST_COMPLETED)
        answered.cancel()

    # Requests

    async def submit(
        self, decide: Callable[[View], Decision[Response]], *, is_large: bool = False
    ) -> Done[Response]:
        """Decide, and wait for the commit. Raises RegistryError, and NotStoredError at the end.

        One decision after another: while a large one is taken in its thread, others wait.
        """
        if len(self._next.requests) + self._undecided >= WAITING_MAX:
            raise RegistryError(errors.STORE_ERROR, "too many writes are waiting; try again")
        self._undecided += 1
        try:
            async with self._deciding:
                outcome = await self._decided(decide, is_large)
        finally:
            self._undecided -= 1
        # No await from the replay of records to here: they and who waits are in one batch.
        if isinstance(outcome, Done):
            return outcome
        return await self._wait_in_next(outcome)

    async def _decided(
        self, decide: Callable[[View], Decision[Response]], is_large: bool
    ) -> "Done[Response] | _Undone[Response]":
        """Decide; records go into the next batch. Done if there is nothing to wait for."""
        try:
            self._check_open()
            if is_large:
                decision = await self._large.run(decide, self._view)
                self._check_open()
            else:
                decision = decide(self._view)
        except RegistryError as refusal:
            self._check_open()
            if self._is_settled:
                raise
            return _Undone(refusal)
        if not decision.records and self._is_settled:
            return Done(decision.response, self._committed_to - 1)
        now_ms = int(time.time() * 1000)
        records = [OwnRecord(item, now_ms) for item in decision.records]
        if any(record.size_bytes > self._record_bytes_max for record in records):
            raise RegistryError(
                errors.SCHEMA_TOO_LARGE,
                f"the schema is too large: topic {self._config.topic} takes records of "
                f"{self._record_bytes_max} bytes (max.message.bytes)",
            )
        for record in records:
            offset = self._speculative.offset + 1
            complaint = self._speculative.replay(record.key, record.value, offset)
            if complaint is not None:
                self.end("a decision contradicted the state")
                raise AssertionError(complaint)
        self._next.records += records
        return _Undone(decision.response)

    def _check_open(self) -> None:
        if self.ended.done():
            raise NotStoredError(self.ended.result())

    @property
    def _is_settled(self) -> bool:
        """True if the speculative state is the committed one, which readers see."""
        return (
            not self._next.records
            and self._idle.is_set()
            and self._reader.position >= self._committed_to
        )

    async def _wait_in_next(self, undone: _Undone[Response]) -> Done[Response]:
        request = Request(undone.outcome)
        self._next.requests.append(request)
        self._wanted.set()
        self._unanswered += 1
        self._answered.clear()
        try:
            done: Done[Response] = await request.answer
        finally:
            self._unanswered -= 1
            if not self._unanswered:
                self._answered.set()
        return done

    # Transactions

    async def _commit_for_ever(self) -> None:
        while True:
            await self._wanted.wait()
            await self._open.wait()
            batch, self._next = self._next, Batch()
            self._wanted.clear()
            self._idle.clear()
            try:
                if batch.records:
                    await self._commit(batch)
            except asyncio.CancelledError:
                self._settle(batch, NotStoredError(self.ended.result()))
                raise
            except CLIENT_TROUBLE as error:
                self._settle(batch, _refused(error) or NotStoredError(words(error)))
                self.end(words(error))
                return
            finally:
                self._idle.set()
            self._settle(batch, NotStoredError("another writer's records are in the topic"))

    async def _commit(self, batch: Batch) -> None:
        """Write records in one transaction. Raises KafkaError or TimeoutError."""
        producer = self._producer
        async with asyncio.timeout(TRANSACTION_TIMEOUT_MS / 1000):
            await producer.begin_transaction()
            futures = [
                await producer.send(
                    self._config.topic,
                    record.value_data,
                    record.key_data,
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in batch.records
            ]
            offsets = [acknowledged.offset for acknowledged in await asyncio.gather(*futures)]
            if min(offsets) < 0:
                raise TimeoutError("a broker did not return the offset of a record")
            # Known before anybody can read them, which is after the commit.
            batch.offsets = offsets
            for offset, record in zip(offsets, batch.records, strict=True):
                self._replica.expect(offset, record)
            await producer.commit_transaction()
        self._committed_to = max(offsets) + 1

    def _settle(self, batch: Batch, error: NotStoredError | RegistryError) -> None:
        """Answer a batch, or fail it if it is not stored, as soon as that is known."""
        if batch.records and not batch.offsets:
            batch.fail(error)
            return
        position = max(batch.offsets) + 1 if batch.offsets else self._committed_to
        task = asyncio.create_task(self._answer(batch, position, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, batch: Batch, position: int, error: NotStoredError | RegistryError
    ) -> None:
        try:
            await self._reader.reached(position)
        except StoreError as fault:
            batch.fail(_try_again(str(fault)))
            return
        finally:
            for offset in batch.offsets:
                self._replica.expect_no_longer(offset)
        if batch.is_stored and (batch.records or not self._is_contradicted):
            batch.answer(position - 1)
            self._replayed += len(batch.records)
            self._renew()
            return
        # If it was committed, the speculative state is not what the topic came to.
        self._is_contradicted = True
        self.end("what was written is not what is in the topic")
        batch.fail(error)

    def _renew(self) -> None:
        """Copy the state again if that is worthwhile and nothing is under way."""
        if (
            self._replayed >= RENEWED_AFTER
            and self._replayed >= self._replica.state.size // 10
            and self.is_open
            and self._is_settled
            and not self._deciding.locked()
        ):
            self._copy_state()

    def _copy_state(self) -> None:
        self._speculative = self._replica.state.copy()
        self._view = View(self._speculative, self._formats, self._config.defaults)
        self._replayed = 0

    def note_other(self, offset: int) -> None:
        """The committed state has applied another writer's record; that ends the reign.

        Our speculative state does not know of it. An instance of Confluent's that has lost the
        lead without knowing can write such a record, as nothing fences it.
        """
        if self.is_open:
            self.end(f"somebody else has written to the topic, at offset {offset}")


def _refused(error: BaseException) -> RegistryError | None:
    """The answer to those whose records the brokers would refuse again; None for other faults."""
    return _try_again(words(error)) if isinstance(error, REFUSALS) else None


def _try_again(reason: str) -> RegistryError:
    return RegistryError(
        errors.STORE_ERROR,
        f"the write may not have been stored; try it again ({reason})",
    )


async def _close(producer: Any) -> None:
    """Close without waiting for what it still wants to send."""
    closing = asyncio.create_task(producer.stop())
    await asyncio.wait((closing,), timeout=1.0)
    if closing.done():
        if not closing.cancelled() and closing.exception() is not None:
            telemetry.debug("the producer was not closed cleanly: %s", closing.exception())
        return
    closing.cancel()
    await asyncio.wait((closing,), timeout=1.0)
