"""File descriptors of the process: its limit, and a reserve that connections leave free.

A server whose clients hold every descriptor cannot open its own files. So each server

1. calls `raise_limit()` once, when its process starts, before it sizes anything by the limit;
2. asks `DescriptorReserve.is_short()` before each accept. While that is true it accepts nothing,
   leaves new connections waiting in the backlog, and asks again after `RETRY_S` seconds.

`is_short` logs when accepting stops and goes on, at most once a minute each.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Final

from barnabas.base.peer_lines import peer_logger

LIMIT_MAX: Final = 1 << 20
"""The limit is raised no further than this: some systems have hard limits in the billions, and
programs that a process starts may close every possible descriptor one by one."""
RESERVE_MIN: Final = 32
RESERVE_MAX: Final = 1024
RESERVE_SHARE: Final = 8
"""An eighth of the limit is kept for the process's own sockets and files, within these bounds."""
RETRY_S: Final = 0.5
LINE_INTERVAL_S: Final = 60.0
OPEN_DESCRIPTORS: Final = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"

telemetry = peer_logger(__name__)


def raise_limit() -> int:
    """Raise the soft limit on open descriptors to the hard one; returns what holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:  # macOS has an additional, lower limit
            telemetry.warning("the limit on open files stays at %d: %s", soft, error)
    return limit()


def limit() -> int:
    """Count the descriptors that the process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def open_count() -> int:
    """Count the descriptors that the process has open."""
    if sys.platform == "linux":
        counted = os.stat(OPEN_DESCRIPTORS).st_size  # Linux 6.2 and later; 0 before
        if counted:
            return counted
    return len(os.listdir(OPEN_DESCRIPTORS))


def reserve_of(limit_of_process: int) -> int:
    """Count the descriptors that connections leave free under a limit."""
    return max(RESERVE_MIN, min(limit_of_process // RESERVE_SHARE, RESERVE_MAX))


def _nothing() -> int:
    return 0


class DescriptorReserve:
    """The descriptors that connections leave free; one serves all listeners of a process."""

    __slots__ = ("_is_short", "_kept", "_limit", "_line_s", "_open_count", "_promised")

    def __init__(
        self,
        promised: Callable[[], int] = _nothing,
        *,
        limit_of_process: int | None = None,
        count: Callable[[], int] = open_count,
    ) -> None:
        """`promised`: descriptors that others in the process may still take, beside the reserve."""
        self._limit = limit() if limit_of_process is None else limit_of_process
        self._kept = reserve_of(self._limit)
        self._promised = promised
        self._open_count = count
        self._is_short = False
        self._line_s = {True: -LINE_INTERVAL_S, False: -LINE_INTERVAL_S}

    def is_short(self, *, is_own: bool = False) -> bool:
        """Return whether so few are free that no connection may be accepted.

        `is_own`: on a listener that only the system's own processes use. It has half of the
        reserve, so that clients cannot keep nodes from reaching each other.
        """
        kept = self._kept // 2 if is_own else self._kept + min(self._promised(), self._limit // 2)
        free = self._limit - self._open_count()
        is_short = free <= kept
        if not is_own and is_short is not self._is_short:
            self._is_short = is_short
            self._tell(free, kept)
        return is_short

    def _tell(self, free: int, kept: int) -> None:
        now_s = time.monotonic()
        if now_s - self._line_s[self._is_short] < LINE_INTERVAL_S:
            return
        self._line_s[self._is_short] = now_s
        if self._is_short:
            telemetry.warning(
                "accepting no more connections: %d of %d file descriptors are free, and %d are "
                "kept for files; raise the limit (ulimit -n, LimitNOFILE=)",
                free,
                self._limit,
                kept,
            )
        else:
            telemetry.warning("accepting connections again: %d file descriptors are free", free)
