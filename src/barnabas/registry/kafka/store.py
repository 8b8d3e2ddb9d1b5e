"""The registry over a topic: a service that reads, elects, and writes while it leads."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import TypeVar

from barnabas.base.backoff import ExponentialBackoff
from barnabas.registry import errors
from barnabas.registry.config import RegistryConfig
from barnabas.registry.core.decision import Decision, Formats, View
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka.batch import NotStoredError
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.election import Elector
from barnabas.registry.kafka.faults import CLIENT_TROUBLE, StoreError, watch, words
from barnabas.registry.kafka.membership import Identity
from barnabas.registry.kafka.reader import TopicReader
from barnabas.registry.kafka.replica import Replica
from barnabas.registry.kafka.topic import TopicFacts, prepare_topic
from barnabas.registry.kafka.writer import Reign
from barnabas.registry.service import Done, Forward

Response = TypeVar("Response")

BACKOFF_MS_MAX = 5000
BEGIN_TIMEOUT_S = 30.0
"""The time limit for the start of a reign: transactions, and reading the topic to its end."""
PAUSE_TIMEOUT_S = 5.0
"""Time that an election waits for the current transaction."""
FINISH_TIMEOUT_S = 5.0

telemetry = logging.getLogger(__name__)


class KafkaStore:
    """A `Service` whose records are in a topic. `failure` is done when it can serve no longer."""

    def __init__(self, config: RegistryConfig, formats: Formats, port: int | None = None) -> None:
        """`port` is what the listener for other instances is bound to, where the file says 0.

        Raises ConfigError.
        """
        self._config = config
        self._formats = formats
        self._timeout_s = config.timeout_ms / 1000
        self._connection = Connection(config)
        self._identity = Identity(
            config.advertised_host,
            config.advertised_port or port or 0,
            config.inter_instance_listener.scheme,
            config.get_bool("leader.eligibility"),
        )
        self._replica = Replica()
        self._view = View(self._replica.state, formats, config.defaults)
        self._facts = TopicFacts()
        self._reader = TopicReader(self._connection, config.topic, self._apply)
        self.failure = self._reader.failure
        self._elector = Elector(
            config,
            self._connection,
            self._identity,
            on_rebalance=self._pause,
            on_elected=self._elected,
            on_lost=self._lost,
        )
        self._leader: Identity | None = None
        self._leads = False
        self._elections = 0
        """The number of terms that an election, or the loss of the group, has ended."""
        self._joined = asyncio.Event()
        self._reign: Reign | None = None
        self._reigning: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        """Set, and replaced, at each change of leader or reign."""
        self._no_leader: str | None = None
        """Why nobody leads, where that is known."""
        self._no_reign: str | None = None
        """Why this instance could not write when it last tried."""
        self._has_stopped = False

    # Service

    @property
    def view(self) -> View:
        """The committed state."""
        return self._view

    @property
    def is_ready(self) -> bool:
        """True if the topic has been read to its end and this instance is in its group."""
        return self._joined.is_set() and not self.failure.done()

    @property
    def is_leader(self) -> bool:
        """True if this instance decides on writes."""
        return self._leads and self._reign is not None and self._reign.is_open

    @property
    def leader_url(self) -> str | None:
        """The leader's URL, None while there is no leader."""
        return None if self._leader is None else self._leader.url

    @property
    def cluster_id(self) -> str:
        """The id of the Kafka cluster; not asked for where the topic is not looked up."""
        return self._facts.cluster_id

    async def write(
        self, decide: Callable[[View], Decision[Response]], *, is_large: bool = False
    ) -> Done[Response] | Forward:
        """Decide, append and commit, or say who can. See `Service.write`."""
        is_submitted = False
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    if self._has_stopped:
                        raise RegistryError(
                            errors.STORE_ERROR, "this instance is stopping; try again"
                        )
                    if self._leader is not None and not self._leads:
                        return Forward(self._leader.url)
                    if self._reign is None or not self._reign.is_open:
                        await self._changed.wait()
                        continue
                    is_submitted = True
                    try:
                        return await self._reign.submit(decide, is_large=is_large)
                    except NotStoredError as error:
                        telemetry.debug("a write is decided again: %s", error)
                    is_submitted = False
        except TimeoutError:
            raise self._too_late(is_submitted=is_submitted) from None

    def _too_late(self, *, is_submitted: bool) -> RegistryError:
        if is_submitted:
            return RegistryError(
                errors.OPERATION_TIMEOUT,
                f"the write has not been confirmed within kafkastore.timeout.ms="
                f"{self._config.timeout_ms}; it may still be stored",
            )
        if self._leader is None:
            why = self._no_leader or "none is elected yet"
            return RegistryError(errors.UNKNOWN_LEADER, f"there is no leader: {why}")
        why = self._no_reign or "it has just been elected"
        return RegistryError(errors.STORE_ERROR, f"the leader cannot write yet: {why}")

    async def caught_up(self, offset: int | None = None) -> None:
        """Wait until the view holds an offset, or all that is committed now."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if offset is None:
                    offset = await self._reader.committed_end() - 1
                await self._reader.reached(offset + 1)
        except TimeoutError:
            raise RegistryError(
                errors.OPERATION_TIMEOUT,
                f"this instance has not read up to there within {self._config.timeout_ms} ms",
            ) from None
        except StoreError as error:
            raise RegistryError(errors.STORE_ERROR, str(error)) from error

    # Life

    async def start(self) -> None:
        """Prepare the topic, read it to its end and join the group.

        If this instance leads, it also waits for the first attempt to take over. Raises
        StoreError if the rest cannot be done within `kafkastore.init.timeout.ms`.
        """
        deadline = asyncio.get_running_loop().time() + self._config.init_timeout_ms / 1000
        self._facts = await prepare_topic(self._config, self._connection)
        doing = f"reading topic {self._config.topic}"
        try:
            async with asyncio.timeout_at(deadline):
                await self._reader.start()
                await self._reader.reached(await self._reader.committed_end())
                telemetry.info(
                    "topic %s is read up to offset %d", self._config.topic, self._reader.position
                )
                doing = f"joining group {self._config.group_id}"
                watch(self._elector.start(), "the election", self.failure)
                await self._joined.wait()
        except TimeoutError:
            await self.stop()
            detail = f": {self._no_leader}" if self._no_leader else ""
            raise StoreError(
                f"{doing} has taken longer than kafkastore.init.timeout.ms="
                f"{self._config.init_timeout_ms}{detail}"
            ) from None
        except BaseException:
            await self.stop()
            raise
        self.failure.add_done_callback(self._failed)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self._leads and not self.is_leader and self._no_reign is None:
                    await self._changed.wait()

    async def stop(self) -> None:
        """Finish the writes that wait, leave the group and let go of the brokers."""
        if self._reign is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FINISH_TIMEOUT_S):
                    await self._reign.finish()
        self._has_stopped = True
        self._set_leader(None, leads=False)
        await self._elector.stop()
        await self._end_reigning("this instance stops")
        await self._reader.stop()

    def _failed(self, failure: "asyncio.Future[StoreError]") -> None:
        if not failure.cancelled():
            self._lost(str(failure.result()))

    # What happens

    def _apply(
        self, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None
    ) -> None:
        if self._replica.apply(offset, timestamp_ms, key, value) and self._reign is not None:
            self._reign.note_other(offset)

    async def _pause(self) -> None:
        if self._reign is None:
            return
        try:
            async with asyncio.timeout(PAUSE_TIMEOUT_S):
                await self._reign.pause()
        except TimeoutError:
            self._reign.end("an election did not wait for it")

    def _elected(self, leader: Identity | None, leads: bool) -> None:
        self._no_leader = None if leader is not None else "no instance may lead"
        self._set_leader(leader, leads=leads)
        self._joined.set()
        if leads and self._reign is not None:
            self._reign.resume()
        elif self._reign is not None:
            self._elections += 1
            self._reign.end("another instance leads")
        if leads and self._reigning is None:
            self._reigning = asyncio.create_task(self._reign_on())
            watch(self._reigning, "the writer", self.failure)

    def _lost(self, reason: str) -> None:
        if self._leads:
            telemetry.warning("this instance is no longer the leader: %s", reason)
        self._no_leader = reason
        self._set_leader(None, leads=False)
        if self._reign is not None:
            self._elections += 1
            self._reign.end(reason)

    def _set_leader(self, leader: Identity | None, *, leads: bool) -> None:
        self._leader, self._leads = leader, leads
        self._tell_change()

    def _tell_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # Reigning

    async def _reign_on(self) -> None:
        """One reign after another while this instance is the one that was elected."""
        backoff = ExponentialBackoff(
            self._connection.retry_backoff_ms, BACKOFF_MS_MAX, random.Random()
        )
        failures = 0
        while self._leads:
            election = self._elections
            reign = self._reign = Reign(
                self._config,
                self._connection,
                self._facts,
                self._reader,
                self._replica,
                self._formats,
            )
            try:
                began = await self._begin(reign)
                reason = await asyncio.shield(reign.ended)
            finally:
                await reign.close()
            if self._elections != election:
                failures = 0
                continue
            failures = 1 if began else failures + 1
            self._no_reign = reason
            self._tell_change()
            telemetry.warning("writes are interrupted: %s", reason)
            # Somebody else may lead by now: the group knows.
            self._elector.rejoin()
            await asyncio.sleep(backoff.after(failures) / 1000)
        self._reign = None
        self._reigning = None

    async def _begin(self, reign: Reign) -> bool:
        """Begin a reign, or end it with the reason why that is not possible."""
        beginning = asyncio.create_task(reign.begin())
        try:
            await asyncio.wait(
                (beginning, reign.ended),
                timeout=BEGIN_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not beginning.done():
                reign.end(
                    f"no transaction could be begun within {BEGIN_TIMEOUT_S:g} s: does the "
                    "cluster have its topic of transactions (__transaction_state; "
                    "transaction.state.log.replication.factor not above the number of brokers)?"
                )
                return False
            try:
                beginning.result()
            except (*CLIENT_TROUBLE, StoreError) as error:
                reign.end(words(error))
                return False
        finally:
            beginning.cancel()
            await asyncio.wait((beginning,))
        if reign.is_open:
            self._no_reign = None
            self._tell_change()
            telemetry.info("this instance accepts writes, from offset %d", self._reader.position)
        return reign.is_open

    async def _end_reigning(self, reason: str) -> None:
        reigning = self._reigning
        if self._reign is not None:
            self._reign.end(reason)
        if reigning is not None:
            reigning.cancel()
            await asyncio.wait((reigning,))
