"""Long work on batches, in turns of the event loop.

A check or a look-up is a generator of steps, each of about 32 KB. Up to AT_ONCE_STEPS are taken in
a turn of the loop by work that is just beginning. Work that is not done then waits for one of
ACTIVE_MAX places, in order of arrival. Those that have one go on in turn, and the loop serves
everybody else between them. So memory is bounded by the places.
"""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Final, NamedTuple, TypeVar

from barnabas.base.clock import Clock
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.protocol.records.decompressing import Aside

ACTIVE_MAX: Final = 2
"""Batches being decompressed. Each may hold a window of zstd: usually 8 MB, 128 MB at most."""
AT_ONCE_STEPS: Final = 32
"""Of all work that begins in one turn of the loop."""
STEPS_MAX: Final = 3
"""In one turn of the loop, of one piece of work: some 32 KB."""
TURN_MS: Final = 1
"""A turn ends by then even if its steps take long."""

R = TypeVar("R")
Steps = Generator[Aside | None, bytes | None, R]
"""Work under way. None ends a step; what an `Aside` returns or raises is to be sent back."""


class Begun(NamedTuple):
    """The result of the first steps, if more remain: later values are sent to the generator."""

    aside: Aside | None


class Turns:
    """A node's places."""

    __slots__ = ("_is_counting", "_left_steps", "_places", "_tasks", "_turn")

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(ACTIVE_MAX)
        self._turn = asyncio.Lock()
        self._left_steps = AT_ONCE_STEPS
        self._is_counting = False
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, task: "asyncio.Task[None]") -> None:
        """Keep a task that calls `run` from being collected."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def begin(self, steps: Steps[R]) -> R | Begun:
        """Take as many steps as fit this turn of the loop: the result, or what `run` goes on from.

        Without a running loop nobody waits, and all are taken.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return run_at_once(steps)
        if not self._is_counting:
            self._is_counting = True
            loop.call_soon(self._begin_turn)
        try:
            while self._left_steps > 0:
                self._left_steps -= 1
                aside = next(steps)
                if aside is not None:
                    return Begun(aside)
        except StopIteration as over:
            result: R = over.value
            return result
        return Begun(None)

    def _begin_turn(self) -> None:
        self._is_counting = False
        self._left_steps = AT_ONCE_STEPS

    async def run(
        self,
        steps: Steps[R],
        clock: Clock,
        is_wanted: Callable[[], bool],
        aside: Aside | None = None,
    ) -> R | None:
        """Wait for a place, then take `steps` to their end; None: the result is not wanted now.

        `aside` is the one to begin with, if they have begun.
        """
        async with self._places:
            resume: Callable[[], Aside | None] = partial(next, steps)
            while is_wanted():
                if aside is not None:
                    loop = asyncio.get_running_loop()
                    try:
                        piece = await loop.run_in_executor(_threads(), aside)
                        resume = partial(steps.send, piece)
                    except CorruptBatchError as error:
                        resume = partial(steps.throw, error)
                async with self._turn:
                    end_ms = clock.monotonic_ms() + TURN_MS
                    for _ in range(STEPS_MAX):
                        try:
                            aside = resume()
                        except StopIteration as over:
                            result: R = over.value
                            return result
                        resume = partial(next, steps)
                        if aside is not None or clock.monotonic_ms() >= end_ms:
                            break
                    await asyncio.sleep(0)  # the loop serves others
            steps.close()
            return None


def run_at_once(steps: Steps[R]) -> R:
    """Take all steps here and now."""
    resume: Callable[[], Aside | None] = partial(next, steps)
    while True:
        try:
            aside = resume()
        except StopIteration as over:
            result: R = over.value
            return result
        resume = partial(next, steps)
        if aside is not None:
            try:
                resume = partial(steps.send, aside())
            except CorruptBatchError as error:
                resume = partial(steps.throw, error)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="decompress")
