"""One connector of a worker: it is configured, and its task's status is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.connect.worker import OurWorker
from support.node_process import wait_until

PATIENCE_S = 120.0


class OneConnector:
    """One connector, with one task."""

    def __init__(self, worker: OurWorker, name: str, settings: dict[str, str]) -> None:
        self._worker = worker
        self._name = name
        self._settings = settings

    def ask(self, **changed: str) -> tuple[int, Any]:
        """Make it, or change it; names have underscores for points. Returns the answer."""
        given = {**self._settings, **{name.replace("_", "."): v for name, v in changed.items()}}
        return self._worker.ask("PUT", f"/connectors/{self._name}/config", given)

    def put(self, **changed: str) -> None:
        """Make it, or change it, which must be allowed."""
        status, said = self.ask(**changed)
        assert status in (200, 201), said

    def wait_for(self, what: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until its task's status is so."""
        wait_until(
            lambda: any(what(one) for one in self._tasks()), "the status", PATIENCE_S, self._log
        )

    def wait_until(self, is_so: Callable[[], object]) -> None:
        """Wait until something else is so; the worker's log is shown where it does not come."""
        wait_until(lambda: bool(is_so()), "what the connector is to do", PATIENCE_S, self._log)

    def _tasks(self) -> list[dict[str, Any]]:
        status, said = self._worker.ask("GET", f"/connectors/{self._name}/status")
        return said["tasks"] if status == 200 else []

    def _log(self) -> str:
        return f"{self._tasks()}\n{self._worker.log()[-3000:]}"


def says(*texts: str) -> Callable[[dict[str, Any]], bool]:
    """Return whether a task has failed with one of the texts."""
    return lambda task: (
        task["state"] == "FAILED" and any(text in task.get("trace", "") for text in texts)
    )


def runs(task: dict[str, Any]) -> bool:
    """Return whether a task runs."""
    return bool(task["state"] == "RUNNING")


@contextmanager
def quick_worker(folder: Path, bootstrap_servers: str, tag: str) -> Iterator[OurWorker]:
    """Run a worker that starts again soon what has failed."""
    again = {
        "barnabas.connect.restart.backoff.ms": "200",
        "barnabas.connect.restart.backoff.max.ms": "400",
    }
    worker = OurWorker(folder, bootstrap_servers, tag, settings=again)
    try:
        worker.start()
        yield worker
    finally:
        worker.close()
