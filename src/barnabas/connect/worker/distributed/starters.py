"""Threads that start and stop connectors and tasks; a process ends without them.

Python waits at its end for those of `concurrent.futures`: a connector that hangs in its `start`
would keep the worker alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
THREADS_MAX: Final = 8


class Starters:
    """Does at most `threads_max` things at once, the first one given first."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._threads_max = threads_max
        self._threads = 0
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._lock = Lock()

    def submit(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> Future[T]:
        """Do something soon; what it returns or raises is the answer."""
        answer: Future[T] = Future()
        with self._lock:
            self._waiting.append((lambda: work(*given, **named), answer))
            if self._threads == self._threads_max:
                return answer
            self._threads += 1
        Thread(target=self._run, name="connect-start", daemon=True).start()
        return answer

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                work, answer = self._waiting.popleft()
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  raised where the answer is waited for
                answer.set_exception(error)
            else:
                answer.set_result(result)
