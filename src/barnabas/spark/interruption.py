"""Shortens the errors of `foreachBatch` functions that a stopped query interrupts.

Spark looks for the interruption in the text of Python's error, with a regular expression that
recurses for each character. The Java trace in that text is so long that the stack overflows, and
Spark prints a thousand lines. So the text is shortened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes without types

T = TypeVar("T")
_INTERRUPTIONS: Final = frozenset(
    {
        "java.lang.InterruptedException",
        "java.io.InterruptedIOException",
        "java.nio.channels.ClosedByInterruptException",
    }
)
"""Source: Spark's StreamExecution.isInterruptionException."""


class BatchInterruptedError(Exception):
    """The query was stopped in the middle of a micro-batch, which runs again at the next start."""


def interruptible(take: Callable[[T, int], None]) -> Callable[[T, int], None]:
    """Return the function for micro-batches that does what `take` does."""

    def run(given: T, batch_id: int) -> None:
        try:
            take(given, batch_id)
        except Py4JJavaError as error:
            name = str(error.java_exception.getClass().getName())
            if name not in _INTERRUPTIONS:
                raise
            # Spark looks for these words.
            told = f"py4j.protocol.Py4JJavaError: An error occurred while calling it: {name}"
            raise BatchInterruptedError(told) from None

    return run
