"""What a node spends on unfolding compressed batches.

Small batches are checked when they arrive, up to AT_ONCE_MAX_BYTES in each turn of the event
loop. All others wait for one of ACTIVE_MAX places, in the order in which they came. Those that have
one are checked in turn, some 32 KB in each turn of the loop, which serves everybody else between
them. A request asks for a place with each of its batches, and a connection has one such request
at a time. So connections take turns, and memory is bounded by the places.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.log.config import LogConfig
from barnabas.log.stepped_check import (
    PACKED_SMALL_MAX_BYTES,
    UNFOLDED_SMALL_MAX_BYTES,
    CheckedBatch,
    Steps,
    check_at_once,
    header_to_check,
)
from barnabas.log.validator import Rejection
from barnabas.protocol.records.batch import BatchHeader, CorruptBatchError
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX
from barnabas.protocol.records.unfolding import Aside

AT_ONCE_MAX_BYTES: Final = 4 * UNFOLDED_SMALL_MAX_BYTES
"""Unfolded in one turn of the loop, for all connections."""
ACTIVE_MAX: Final = 2
"""Batches that are being unfolded. Each may hold a window of zstd: 8 MB mostly, 128 MB at most."""
STEPS_MAX: Final = 3
"""In one turn of the loop, of one batch: some 32 KB."""
TURN_MS: Final = 1
"""A turn ends by then even if its steps take long."""
BYTES_PER_SENT_BYTE: Final = 1024
"""What gzip can reach. zstd can reach more, and honest data does not."""


class Unfolding:
    """The node's limits and places."""

    __slots__ = ("_is_counting", "_left_bytes", "_places", "_turn")

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(ACTIVE_MAX)
        self._turn = asyncio.Lock()
        self._left_bytes = AT_ONCE_MAX_BYTES
        self._is_counting = False

    def is_good(self, batch: memoryview, config: LogConfig, now_ms: int) -> bool:
        """Whether a compressed batch is small and well-formed; False says nothing of it."""
        if len(batch) > PACKED_SMALL_MAX_BYTES:
            return False
        header = header_to_check(batch, config)
        return header is not None and self.check_at_once(batch, header, config, now_ms)

    def check_at_once(
        self, batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
    ) -> bool:
        """As `is_good`, for a batch whose header and CRC are known to be good."""
        if self._left_bytes <= 0:
            return False
        size = check_at_once(batch, header, config, now_ms, self._left_bytes)
        self._left_bytes -= size if size >= 0 else UNFOLDED_SMALL_MAX_BYTES
        if self._left_bytes < AT_ONCE_MAX_BYTES // 2 and not self._is_counting:
            self._is_counting = True  # not for each batch: it gives the loop another turn
            asyncio.get_running_loop().call_soon(self._begin_turn)
        return size >= 0

    def _begin_turn(self) -> None:
        self._is_counting = False
        self._left_bytes = AT_ONCE_MAX_BYTES

    async def check(
        self, steps: Steps, clock: Clock, is_wanted: Callable[[], bool]
    ) -> CheckedBatch | Rejection | None:
        """Wait for a place, then take `steps` to their end; None: the result is not wanted now."""
        async with self._places:
            resume: Callable[[], Aside | None] = partial(next, steps)
            aside: Aside | None = None
            while is_wanted():
                async with self._turn:
                    end_ms = clock.monotonic_ms() + TURN_MS
                    for _ in range(STEPS_MAX):
                        try:
                            aside = resume()
                        except StopIteration as over:
                            result: CheckedBatch | Rejection = over.value
                            return result
                        resume = partial(next, steps)
                        if aside is not None or clock.monotonic_ms() >= end_ms:
                            break
                    await asyncio.sleep(0)  # the loop serves others
                if aside is not None:
                    loop = asyncio.get_running_loop()
                    try:
                        piece = await loop.run_in_executor(_threads(), aside)
                        resume = partial(steps.send, piece)
                    except CorruptBatchError as error:
                        resume = partial(steps.throw, error)
            steps.close()
            return None


def request_limit(size_bytes: int) -> int:
    """How many bytes the batches of one request may unfold to, whose frame has `size_bytes`."""
    return DECOMPRESSED_SIZE_BYTES_MAX + BYTES_PER_SENT_BYTE * size_bytes


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="unfold")
