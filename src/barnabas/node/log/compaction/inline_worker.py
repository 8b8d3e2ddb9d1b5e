"""Cleaning on the event loop itself, one buffer at a time.

For disks that are no directory of the machine: what the simulator runs must have one order of
events, and its disks live in this process.
"""

import asyncio
from collections.abc import Generator
from typing import TypeVar

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.node.log.compaction.cleaner import Cleaner
from barnabas.node.log.compaction.job import CleanJob, GroupCleaned, MapBuilt, Source, Throttle

Result = TypeVar("Result")


class InlineWorker:
    """A `compactor.Worker`."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._cleaner: Cleaner | None = None
        self._throttle = Throttle(float("inf"), 0.0)

    async def build_map(self, job: CleanJob) -> MapBuilt:
        self._throttle = Throttle(job.bytes_per_second_max, self._now_s())
        self._cleaner = Cleaner(self._disk, job)
        return await self._run(self._cleaner.build_map())

    async def clean(self, group: list[Source]) -> GroupCleaned:
        assert self._cleaner is not None
        return await self._run(self._cleaner.clean(group))

    async def _run(self, steps: Generator[int, None, Result]) -> Result:
        try:
            while True:
                try:
                    size_bytes = next(steps)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                await self._wait(self._throttle.delay_s(size_bytes, self._now_s()))
        finally:
            steps.close()

    async def _wait(self, delay_s: float) -> None:
        if not delay_s:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(delay_s * 1000, lambda: done.set_result(None))
        try:
            await done
        finally:
            timer.cancel()

    def _now_s(self) -> float:
        return self._clock.monotonic_ms() / 1000

    def rest(self) -> None:
        """Give the memory back: there is nothing to do for a while."""
        self._cleaner = None

    async def stop(self) -> None:
        """End for good."""
        self._cleaner = None
