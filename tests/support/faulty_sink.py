"""The sink with places at which a process of it dies, once each, when a file says so.

`<place>.kill` in the directory of BARNABAS_TEST_FAULTS kills the process that gets there;
`<place>.wait` makes it wait there to be killed with the driver, and becomes `<place>.reached`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.types import StructType

from barnabas.spark.datasource.committer import Committer
from barnabas.spark.datasource.protocol import Effect, Event
from barnabas.spark.datasource.sink import BarnabasSink, QueryWriter

DIRECTORY = "BARNABAS_TEST_FAULTS"
TASK_PLACES = ("task-begun", "rows-sent", "task-prepared")
COMMIT_PLACES = tuple(
    f"{when}-{effect}"
    for effect in ("ReadDecision", "Check", "WriteDecision", "Commit")
    for when in ("before", "after")
)


def pass_by(place: str) -> None:
    """Die here if so told; nobody else then does."""
    path = os.path.join(os.environ[DIRECTORY], place)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{path}.kill")
        os.kill(os.getpid(), signal.SIGKILL)
    with contextlib.suppress(FileNotFoundError):
        os.rename(f"{path}.wait", f"{path}.reached")
        signal.pause()


class FaultyWriter(QueryWriter):
    """Passes by places in its tasks and its commits."""

    def write(self, iterator: Iterator[Any]) -> Any:
        def rows() -> Iterator[Any]:
            pass_by("task-begun")
            yield from iterator
            pass_by("rows-sent")

        message = super().write(rows())
        pass_by("task-prepared")
        return message

    def commit(self, messages: Sequence[Any], batch_id: int) -> None:  # type: ignore[override]
        do = Committer._do

        def watched(committer: Committer, effect: Effect) -> Event:
            pass_by(f"before-{type(effect).__name__}")
            event = do(committer, effect)
            pass_by(f"after-{type(effect).__name__}")
            return event

        Committer._do = watched  # type: ignore[method-assign, assignment]
        try:
            super().commit(messages, batch_id)
        finally:
            Committer._do = do  # type: ignore[method-assign]


class FaultySink(BarnabasSink):
    """`format("faulty")`."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802  # Spark's
        return FaultyWriter(self._checked(schema))
