"""The process that cleans: calls come in by stdin, a line each, answers leave by stdout.

It ends as soon as its stdin does, also in the middle of its work: then the node is no more, and
another may already be opening the same log.
"""

import json
import os
import select
import sys
import time
from collections.abc import Generator
from dataclasses import asdict
from typing import Any, Final, TypeVar

from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.compaction.cleaner import Cleaner
from barnabas.node.log.compaction.job import CleanJob, Source, Throttle
from barnabas.node.log.errors import CorruptIndexError
from barnabas.protocol.errors import DecodeError

NICENESS: Final = 5
"""Clients come first where there are fewer processors than work."""

Result = TypeVar("Result")


class _NodeIsGone(Exception):  # noqa: N818  # no error: the end
    """Nobody waits for an answer any more."""


def main() -> None:
    """Answer calls until there are no more."""
    os.nice(NICENESS)
    disk = LocalDisk()
    cleaner: Cleaner | None = None
    throttle = Throttle(float("inf"), 0.0)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if "job" in request:
                job = CleanJob.from_plain(request["job"])
                throttle = Throttle(job.bytes_per_second_max, time.monotonic())
                cleaner = None  # before there is another map
                cleaner = Cleaner(disk, job)
                answer = asdict(_run(cleaner.build_map(), throttle))
            else:
                assert cleaner is not None
                group = [Source(**source) for source in request["group"]]
                answer = asdict(_run(cleaner.clean(group), throttle))
        except _NodeIsGone:
            break
        except Exception as error:  # noqa: BLE001  # it is the node that says what becomes of it
            answer = _failure(error)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    os._exit(0)


def _run(steps: Generator[int, None, Result], throttle: Throttle) -> Result:
    while True:
        try:
            size_bytes = next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        _wait(throttle.delay_s(size_bytes, time.monotonic()))


def _wait(delay_s: float) -> None:
    """Wait; raises `_NodeIsGone` if stdin says so. No call comes while another is answered."""
    if select.select([sys.stdin.fileno()], [], [], delay_s)[0]:
        raise _NodeIsGone


def _failure(error: Exception) -> dict[str, Any]:
    message = str(error)
    if isinstance(error, OSError):
        return {"error": "OSError", "arguments": [error.errno, error.strerror, error.filename]}
    if isinstance(error, DecodeError):
        return {"error": "CorruptBatchError", "message": message}
    if isinstance(error, CorruptIndexError):
        return {"error": "CorruptIndexError", "message": message}
    return {"error": type(error).__name__, "message": f"{type(error).__name__}: {message}"}
