"""The one supervision of streaming queries: start, watch, start again, stop.

SQL's queries, pipelines in Python and the Python queries beside SQL's statements use it:

    Supervisor        a thread that looks at queries, and has those that failed start again
    Restarts          when a failed query is due: after pauses that double
    SupervisedStream  one streaming query of Spark's, over its failures and restarts

Nothing here imports Spark: SQL's runner without Spark is supervised too.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from barnabas.base.backoff import doubled

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
Query = TypeVar("Query")
_STARTS_AT_ONCE: Final = 4
"""A start may have to wait until a broker does not answer: others need not wait for it."""
_FAILURES_MAX: Final = 100
_POLL_S: Final = 0.02
RECENT_BATCHES_MAX: Final = 20
"""Micro-batches that `recent_progress` gives: each is a call to the JVM."""
_NO_REASON: Final = "Spark has ended the query, and does not say why"


class QueryState(Enum):
    """The states of a query, with ksqlDB's names. PAUSED: it does not run, and has not failed."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    UNRESPONSIVE = "UNRESPONSIVE"


@dataclass(frozen=True)
class Failure:
    """Why a query stopped."""

    timestamp_ms: int
    error: BaseException


class Restarts:
    """When one query is started again, decided from its states as they are seen.

    The pause after a failure is `initial_ms`, and doubles with each further one up to `max_ms`. It
    begins from the first one again once the query is sound: it has run for `sound_after_ms`, or
    `sound` was called.
    """

    def __init__(self, initial_ms: int, max_ms: int, sound_after_ms: int | None = None) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._sound_after_ms = sound_after_ms
        self._running_since_ms: int | None = None
        self.due_ms: int | None = None
        """When the query is started again, if it waits for that."""
        self.failures = 0
        """The number of failures in a row."""

    def is_due(self, state: QueryState, now_ms: int) -> bool:
        """Return whether the query, which is in that state now, is to be started again now."""
        if state is not QueryState.ERROR:
            self.due_ms = None
            self._note_sound(state, now_ms)
            return False
        self._running_since_ms = None
        if self.due_ms is None:
            self.due_ms = now_ms + int(doubled(self._initial_ms, self._max_ms, self.failures))
            self.failures += 1
        if now_ms < self.due_ms:
            return False
        self.due_ms = None
        return True

    def sound(self) -> None:
        """Count the failures so far no more."""
        self.failures = 0

    def _note_sound(self, state: QueryState, now_ms: int) -> None:
        if state is not QueryState.RUNNING:
            self._running_since_ms = None
            self.sound()
        elif self._running_since_ms is None:
            self._running_since_ms = now_ms
        elif self._sound_after_ms is not None and (
            now_ms - self._running_since_ms >= self._sound_after_ms
        ):
            self.sound()


class Supervisor(Generic[Query]):
    """A thread from `start` to `close`; `step` is one look at all queries, for it and for tests.

    `look` gets a query and the time; it returns True to have `start` called with the query, in a
    thread of a pool, during which the query is not looked at. An exception of either goes to
    `failed`, and does not end the supervision.
    """

    def __init__(
        self,
        name: str,
        queries: Callable[[], Iterable[Query]],
        look: Callable[[Query, int], bool],
        start: Callable[[Query], None],
        *,
        look_s: float,
        failed: Callable[[Query, Exception], None] | None = None,
    ) -> None:
        self._queries = queries
        self._look = look
        self._start = start
        self._look_s = look_s
        self._failed = failed or _log_failed
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._pool = ThreadPoolExecutor(_STARTS_AT_ONCE, f"{name}: start")
        self._starting: set[int] = set()
        """The queries, by identity."""

    def start(self) -> None:
        """Look at the queries from now on."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; a start that has begun may go on until its query is stopped."""
        self._closing.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def step(self, now_ms: int) -> None:
        """Look at all queries once."""
        for one in list(self._queries()):
            if self._closing.is_set():
                return
            if id(one) in self._starting:
                continue
            try:
                if self._look(one, now_ms):
                    self._starting.add(id(one))
                    self._pool.submit(self._begin, one)
            except Exception as error:  # noqa: BLE001  the others are looked at all the same
                self._failed(one, error)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.step(time.monotonic_ns() // 1_000_000)
            except Exception:  # noqa: BLE001  one look that fails is not the last
                _log.exception("the queries could not be checked")
            self._closing.wait(self._look_s)

    def _begin(self, one: Query) -> None:
        try:
            self._start(one)
        except Exception as error:  # noqa: BLE001  nobody else would hear of it
            self._failed(one, error)
        finally:
            self._starting.discard(id(one))


def _log_failed(one: object, error: Exception) -> None:
    _log.error("%s could not be checked or started", one, exc_info=error)


class SupervisedStream:
    """A streaming query of Spark's, over its failures and restarts. Any thread may ask its state.

    `begin` starts it, from its checkpoint if there is one. `release`: called after each end, for
    what the stream has used. `may_end`: it may end by itself, once all is processed.
    """

    def __init__(
        self,
        name: str,
        begin: Callable[[], StreamingQuery],
        release: Callable[[], None] = lambda: None,
        *,
        may_end: bool = False,
    ) -> None:
        self.name = name
        self.stream: StreamingQuery | None = None
        self._failures: deque[Failure] = deque(maxlen=_FAILURES_MAX)
        self.restarts = 0
        self._begin = begin
        self._release = release
        self._may_end = may_end
        self._state = QueryState.PAUSED
        self._has_ended = False
        self.lock = threading.RLock()
        """Held by the thread that starts it or ends it."""
        self._noting = threading.Lock()

    # --- what it does ------------------------------------------------------------------------

    @property
    def state(self) -> QueryState:
        """Its state; one that has ended as it may is still RUNNING, see `has_ended`."""
        stream = self.stream
        if stream is not None:
            self._note_end(stream)
        return self._state

    @property
    def has_ended(self) -> bool:
        """True if it has processed what it was to process, and ended."""
        _ = self.state
        return self._has_ended

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The latest ones, oldest first, as far as `state` has seen them."""
        return tuple(self._failures)  # another thread may add one at any time

    @property
    def last_failure(self) -> BaseException | None:
        """Why it stopped last."""
        failures = self.failures
        return failures[-1].error if failures else None

    def progress(self) -> dict[str, Any]:
        """Return Spark's progress of the last micro-batch, empty before the first."""
        from barnabas.spark.progress import last_progress

        stream = self.stream
        try:
            return {} if stream is None else last_progress(stream) or {}
        except Exception as error:
            if _is_loss(error):
                return {}
            raise

    def recent_progress(self, count_max: int = RECENT_BATCHES_MAX) -> list[dict[str, Any]]:
        """Return Spark's progress of the last micro-batches, oldest first."""
        from barnabas.spark.progress import recent_progress

        stream = self.stream
        try:
            return [] if stream is None else recent_progress(stream, count_max)
        except Exception as error:
            if _is_loss(error):
                return []
            raise

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, from the checkpoint if there is one. Raises what `begin` raises, which is noted
        as a failure too."""
        with self.lock:
            assert self.stream is None, "started already"
            self._has_ended = False
            try:
                self.stream = self._begin()
            except Exception as error:
                self._release()
                self._note(error)
                raise
            self._state = QueryState.RUNNING

    def restart(self) -> bool:
        """Start again after a failure: False without a failure.

        A new failure is its state.
        """
        with self.lock:
            if self.state is not QueryState.ERROR:
                return False
            self._end()
            self.restarts += 1
            try:
                self.start()
            except Exception:  # noqa: BLE001  it is noted
                return True
            return True

    def resume(self) -> None:
        """Start, if it does not run and has not failed. Raises what `begin` raises."""
        with self.lock:
            if self.state is QueryState.PAUSED:
                self.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """End it; a micro-batch that runs has so long to end, then it is run again at the start."""
        with self.lock:
            try:
                self._end(wait_s)
            finally:
                self._state = QueryState.PAUSED

    def _end(self, wait_s: float = 0.0) -> None:
        stream = self.stream
        try:
            if stream is not None:
                self._end_stream(stream, wait_s)
        except Exception as error:
            if not _is_loss(error):
                raise
            _log.warning("%s has ended with Spark's JVM: %s", self.name, error)
        finally:
            self._release()

    def _end_stream(self, stream: StreamingQuery, wait_s: float) -> None:
        try:
            _ = self.state
            deadline = time.monotonic() + wait_s
            while wait_s and stream.isActive and stream.status["isTriggerActive"]:
                if time.monotonic() > deadline:
                    break
                time.sleep(_POLL_S)
        finally:
            # From here on its end is no failure.
            with self._noting:
                self.stream = None
        stream.stop()

    def _note_end(self, stream: StreamingQuery) -> None:
        failure: BaseException | None
        try:
            if stream.isActive:
                return
            failure = stream.exception()
        except Exception as error:
            if not _is_loss(error):
                raise
            failure = error
        with self._noting:
            if self.stream is not stream or self._state is not QueryState.RUNNING:
                return
            if failure is None and self._may_end:
                self._has_ended = True
            else:
                self._note(failure or RuntimeError(_NO_REASON))

    def _note(self, error: BaseException) -> None:
        self._failures.append(Failure(time.time_ns() // 1_000_000, error))
        self._state = QueryState.ERROR


def _is_loss(error: Exception) -> bool:
    """Return whether a call of Spark's fails because its JVM has ended, and all queries with it."""
    from py4j.protocol import (  # type: ignore[import-untyped]  # comes without types
        Py4JError,
        Py4JJavaError,
    )

    # The call that the end interrupts raises Py4JError, those after it ConnectionRefusedError.
    return isinstance(error, Py4JError | OSError) and not isinstance(error, Py4JJavaError)


_NOISE: Final = re.compile(r"^(\[\w+(\.\w+)*\]|org\.apache\.spark\.\S+:|java\.\S+Exception:)\s*")
_RAISED: Final = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception)\b: .+)$", re.MULTILINE)
_PYTHON_ERROR: Final = re.compile(r"[A-Za-z_.]+(Error|Exception)\b.*: ")
_LENGTH_MAX: Final = 500


def why(error: BaseException) -> str:
    """Return the line of an error that says what is wrong: the last of Python's, if one was."""
    text = str(error)
    # The worker's traceback ends with the exception, at the left margin.
    python = _RAISED.findall(text)
    if "Traceback (most recent call last)" in text and python:
        return str(python[-1]).strip()[:_LENGTH_MAX]
    malformed = re.search(r"malformed record in [^\n]+", text)
    if malformed:
        return malformed[0].split(" SQLSTATE")[0][:_LENGTH_MAX]
    text = text.rpartition("terminated with exception: ")[2]
    line = next((one for one in text.splitlines() if one.strip()), type(error).__name__)
    return _NOISE.sub("", line.strip())[:_LENGTH_MAX]


def python_cause(message: str) -> str:
    """The last exception of Python's, where there is one, before all of Spark's message."""
    errors = [line for line in message.splitlines() if _PYTHON_ERROR.match(line)]
    return f"{errors[0]}\n{message}" if errors else message
