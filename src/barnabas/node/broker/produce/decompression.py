"""The limits of decompressing batches on a node.

Small batches are checked when they arrive, up to AT_ONCE_MAX_BYTES in each turn of the event
loop. All others wait for one of the node's places (`node/log/turns.py`). A request asks for a place
with each of its batches, and a connection has one such request at a time. So connections take
turns.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.base.clock import Clock
from barnabas.node.log.config import LogConfig
from barnabas.node.log.stepped_check import (
    DECOMPRESSED_SMALL_MAX_BYTES,
    PACKED_SMALL_MAX_BYTES,
    CheckedBatch,
    Steps,
    check_at_once,
    header_to_check,
)
from barnabas.node.log.turns import Turns
from barnabas.node.log.validator import Rejection
from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX

AT_ONCE_MAX_BYTES: Final = 4 * DECOMPRESSED_SMALL_MAX_BYTES
"""Decompressed in one turn of the loop, for all connections."""
BYTES_PER_SENT_BYTE: Final = 1024
"""The highest ratio of gzip. zstd can exceed it, but honest data does not."""


class Decompression:
    """The node's limits."""

    __slots__ = ("_is_counting", "_left_bytes", "_turns")

    def __init__(self, turns: Turns | None = None) -> None:
        self._turns = Turns() if turns is None else turns
        self._left_bytes = AT_ONCE_MAX_BYTES
        self._is_counting = False

    def is_good(self, batch: memoryview, config: LogConfig, now_ms: int) -> bool:
        """Return whether a compressed batch is small and well-formed; False says nothing of it."""
        if len(batch) > PACKED_SMALL_MAX_BYTES:
            return False
        header = header_to_check(batch, config, now_ms)
        return header is not None and self.check_at_once(batch, header, config, now_ms)

    def check_at_once(
        self, batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
    ) -> bool:
        """As `is_good`, for a batch whose header and CRC are known to be good."""
        if self._left_bytes <= 0:
            return False
        size = check_at_once(batch, header, config, now_ms, self._left_bytes)
        self._left_bytes -= size if size >= 0 else DECOMPRESSED_SMALL_MAX_BYTES
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
        return await self._turns.run(steps, clock, is_wanted)


def request_limit(size_bytes: int) -> int:
    """The size to which the batches of a request may decompress, by the size of its frame."""
    return DECOMPRESSED_SIZE_BYTES_MAX + BYTES_PER_SENT_BYTE * size_bytes
