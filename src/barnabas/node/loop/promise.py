"""A value that comes later, without an event loop.

Who settles a promise runs the same in production and on a virtual clock, so it does that by plain
calls. Awaiting one works on any running loop.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

R = TypeVar("R")
T = TypeVar("T")


class Promise(Generic[R]):
    """Settled once, with a value; failures are values too."""

    __slots__ = ("_callbacks", "_value", "is_settled")

    def __init__(self) -> None:
        self.is_settled = False
        self._value: R | None = None
        self._callbacks: list[Callable[[R], None]] = []

    def settle(self, value: R) -> None:
        """Give the value to everyone who waits. The first value stays."""
        if self.is_settled:
            return
        self.is_settled = True
        self._value = value
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(value)

    @property
    def value(self) -> R:
        """The value, once settled."""
        assert self.is_settled
        return cast("R", self._value)

    def then(self, callback: Callable[[R], None]) -> None:
        """Call back with the value, at once if there is one."""
        if self.is_settled:
            callback(cast("R", self._value))
        else:
            self._callbacks.append(callback)

    def __await__(self) -> Generator[Any, None, R]:
        if not self.is_settled:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._callbacks.append(lambda _: None if future.done() else future.set_result(None))
            yield from future
        return cast("R", self._value)


def then(response: R | Promise[R], change: Callable[[R], T]) -> T | Promise[T]:
    """Apply `change` to a response now or when it is there."""
    if not isinstance(response, Promise):
        return change(response)
    changed: Promise[T] = Promise()
    response.then(lambda value: changed.settle(change(value)))
    return changed


def flat(response: R | Promise[R], change: Callable[[R], T | Promise[T]]) -> T | Promise[T]:
    """As `then`, for a change that may itself take time."""
    if not isinstance(response, Promise):
        return change(response)
    changed: Promise[T] = Promise()

    def arrived(value: R) -> None:
        later = change(value)
        if isinstance(later, Promise):
            later.then(changed.settle)
        else:
            changed.settle(later)

    response.then(arrived)
    return changed


def gather(parts: list[Any], combine: Callable[[list[Any]], R]) -> R | Promise[R]:
    """Combine results, waiting for those that are promises."""
    missing = [part for part in parts if isinstance(part, Promise)]
    if not missing:
        return combine(parts)
    results = list(parts)
    left = len(missing)
    combined: Promise[R] = Promise()

    def arrive(index: int, value: Any) -> None:
        nonlocal left
        results[index] = value
        left -= 1
        if not left:
            combined.settle(combine(results))

    for index, part in enumerate(parts):
        if isinstance(part, Promise):
            part.then(lambda value, index=index: arrive(index, value))  # type: ignore[misc]  # mypy cannot infer a default
    return combined
