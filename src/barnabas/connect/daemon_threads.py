"""Threads that connectors may hang in: a process ends without them.

Python waits at its end for those of `concurrent.futures`: a connector that hangs in its `start`
would keep the worker alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class DaemonThreads:
    """Does at most `threads_max` things at once, the first one given first.

    Threads end when there is nothing to do, or with `close` where they are to last.
    """

    def __init__(self, threads_max: int, name: str, *, lasting: bool = False) -> None:
        self._threads_max = threads_max
        self._name = name
        self._is_lasting = lasting
        self._threads = 0
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._changed = Condition()

    def submit(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> Future[T]:
        """Do something soon; what it returns or raises is the answer."""
        answer: Future[T] = Future()
        with self._changed:
            self._waiting.append((lambda: work(*given, **named), answer))
            self._changed.notify()
            if self._threads == self._threads_max:
                return answer
            self._threads += 1
        Thread(target=self._run, name=self._name, daemon=True).start()
        return answer

    def drop(self) -> None:
        """Begin nothing of what still waits; its answers are cancelled."""
        with self._changed:
            dropped = [answer for _, answer in self._waiting]
            self._waiting.clear()
        for answer in dropped:
            answer.cancel()

    def close(self) -> None:
        """End the threads that last, once all is done that was given."""
        with self._changed:
            self._is_lasting = False
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._is_lasting and not self._waiting:
                    self._changed.wait()
                if not self._waiting:
                    self._threads -= 1
                    return
                work, answer = self._waiting.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  raised where the answer is waited for
                answer.set_exception(error)
            else:
                answer.set_result(result)
