"""How long the steps of a coroutine keep the loop: what happens while it waits does not count."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Measured(Generic[R]):
    """Awaits `work`; `busy_ns` is the time of its steps so far."""

    __slots__ = ("_clock_ns", "_work", "busy_ns")

    def __init__(self, work: Awaitable[R], clock_ns: Callable[[], int]) -> None:
        self._work = work
        self._clock_ns = clock_ns
        self.busy_ns = 0

    def __await__(self) -> Generator[Any, None, R]:
        steps, clock_ns = self._work.__await__(), self._clock_ns
        error: BaseException | None = None
        while True:
            started_ns = clock_ns()
            try:
                awaited = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                self.busy_ns += clock_ns() - started_ns
            error = None
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001  # it is the work's to handle
                error = raised
