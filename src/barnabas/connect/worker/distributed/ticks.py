"""The herder's one thread: what is asked for, and what happens, one after the other.

What takes long on it holds everything up; that is how nothing a worker does overlaps.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from barnabas.connect.errors.requests import ShuttingDownError
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
T = TypeVar("T")
REQUEST_S: Final = 90.0
"""Time that a request waits for its turn and its work (Kafka's RestRequestTimeout)."""


class TickTimeoutError(ConnectError, TimeoutError):
    """The herder did not come to a request in time."""


class Ticks:
    """`settle` runs after each thing that was done."""

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._queue: list[tuple[float, int, Callable[[], Any], Future[Any] | None]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._is_closed = False
        self._begun_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="connect herder", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, work: Callable[[], Any], delay_s: float = 0.0) -> None:
        """Do something soon, or after a while."""
        self._add(work, delay_s, None)

    def call(self, work: Callable[[], T], timeout_s: float | None = REQUEST_S) -> T:
        """Do something and return what it returns or raise what it raises."""
        if threading.current_thread() is self._thread:
            return work()
        answer: Future[T] = Future()
        self._add(work, 0.0, answer)
        try:
            return answer.result(timeout_s)
        except TimeoutError as error:
            answer.cancel()
            raise TickTimeoutError("Request timed out") from error

    def busy_s(self) -> float:
        """Return how long what is done now has lasted; 0 if nothing is done."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    def close(self, timeout_s: float = REQUEST_S) -> None:
        """End after what is done now, or without it after a while; waiters are notified."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                _log.error("the herder did not finish and is abandoned")
        for *_, answer in self._queue:
            if answer is not None and answer.set_running_or_notify_cancel():
                answer.set_exception(ShuttingDownError())
        self._queue.clear()

    def _add(self, work: Callable[[], Any], delay_s: float, answer: Future[Any] | None) -> None:
        with self._changed:
            if self._is_closed:
                if answer is not None:
                    answer.set_exception(ShuttingDownError())
                return
            entry = (time.monotonic() + delay_s, next(self._numbers), work, answer)
            heapq.heappush(self._queue, entry)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and not self._is_due():
                    self._changed.wait(self._pause_s())
                if self._is_closed:
                    return
                *_, work, answer = heapq.heappop(self._queue)
            self._begun_s = time.monotonic()
            self._do(work, answer)
            self._do(self._settle, None)
            self._begun_s = None

    def _is_due(self) -> bool:
        return bool(self._queue) and self._queue[0][0] <= time.monotonic()

    def _pause_s(self) -> float | None:
        return self._queue[0][0] - time.monotonic() if self._queue else None

    def _do(self, work: Callable[[], Any], answer: Future[Any] | None) -> None:
        if answer is not None and not answer.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  the herder's thread must not end
            if answer is None:
                _log.exception("an action of the herder failed")
            else:
                answer.set_exception(error)
        else:
            if answer is not None:
                answer.set_result(result)
