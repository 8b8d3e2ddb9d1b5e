"""The cleaner's workers: a process separate from the node's, and one on the event loop for tests.

A thread is not enough: cleaning decodes records in Python, so it would hold the interpreter most of
the time and delay the event loop at every turn. The process is started when there is something to
clean and ended when there is not, which frees its memory (the map of keys may take
`log.cleaner.dedupe.buffer.size`). A call is one line of JSON each way.

`worker_main` is what runs there.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.node.log.compaction.cleaner import Cleaner
from barnabas.node.log.compaction.compactor import WorkerLostError
from barnabas.node.log.compaction.job import CleanJob, GroupCleaned, MapBuilt, Source, Throttle
from barnabas.node.log.errors import CorruptIndexError
from barnabas.protocol.records.batch import CorruptBatchError

PROGRAM: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from barnabas.node.log.compaction.worker_main import main; main()"
)


class ProcessWorker:
    """A `compactor.Worker`. One thread waits for the process, and does nothing else."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()

    @property
    def process_id(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    async def build_map(self, job: CleanJob) -> MapBuilt:
        return MapBuilt(**await self._call({"job": asdict(job)}))

    async def clean(self, group: list[Source]) -> GroupCleaned:
        return GroupCleaned(**await self._call({"group": [asdict(source) for source in group]}))

    async def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        line = json.dumps(request).encode() + b"\n"
        answer = json.loads(await self._exchange_soon(line))
        error = answer.pop("error", None)
        if error is None:
            result: dict[str, Any] = answer
            return result
        match error:
            case "OSError":
                raise OSError(*answer["arguments"])
            case "CorruptBatchError":
                raise CorruptBatchError(answer["message"])
            case "CorruptIndexError":
                raise CorruptIndexError(answer["message"])
        raise WorkerLostError(answer["message"])

    def _exchange_soon(self, line: bytes) -> "asyncio.Future[bytes]":
        """Call in a thread that no interpreter waits for when it ends, as it would for a pool's."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()

        def run() -> None:
            try:
                answer = self._exchange(line)
            except WorkerLostError as error:
                loop.call_soon_threadsafe(_settle, future, error)
            else:
                loop.call_soon_threadsafe(_settle, future, answer)

        self._thread = threading.Thread(target=run, name="compaction", daemon=True)
        self._thread.start()
        return future

    def _exchange(self, line: bytes) -> bytes:
        """One call, in the thread."""
        if self._stopped.is_set():
            raise WorkerLostError("the node is stopping")
        process = self._process
        try:
            if process is None:
                process = self._process = _start()
                if self._stopped.is_set():  # which may not have seen it
                    process.kill()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError as error:
            self._end()
            raise WorkerLostError(f"the worker process: {error}") from error
        if not answer.endswith(b"\n"):
            self._end()
            raise WorkerLostError("the worker process ended in the middle of its work")
        return answer

    def rest(self) -> None:
        self._end()

    async def stop(self) -> None:
        self._stopped.set()
        process = self._process
        if process is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join()
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # what it was to be told, it need not know
                        pipe.close()


def _settle(future: "asyncio.Future[bytes]", result: bytes | WorkerLostError) -> None:
    if future.done():
        return  # cancelled
    if isinstance(result, bytes):
        future.set_result(result)
    else:
        future.set_exception(result)


def _start() -> subprocess.Popen[bytes]:
    """Start the process: its own session, so that a Ctrl-C meant for the node is not for it."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


# -- on the event loop itself, one buffer at a time
#
# For disks that are no directory of the machine: what the simulator runs must have one order of
# events, and its disks live in this process.


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
