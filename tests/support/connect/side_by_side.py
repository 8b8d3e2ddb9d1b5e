"""The same requests to our worker and to Kafka's; what they answer is to be the same.

`{tag}` and `{dir}` in paths and bodies are each worker's own, so that both can use one cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.connect.worker import PATIENCE_S, WorkerProcess
from support.node_process import wait_until

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
OWN_WORDS = ("documentation", "commit", "worker_id", "recommended_values")


@dataclass(frozen=True)
class Step:
    """A request. `until` is waited for; `only` says what of the answer is compared."""

    method: str
    path: str
    body: Any = None
    until: Callable[[Any], bool] | None = None
    only: Callable[[Any], Any] | None = None


def answer(worker: WorkerProcess, step: Step) -> Any:
    """Return what a worker answers, in words that are the same for all."""
    path = _own(worker, step.path)
    body = None if step.body is None else json.loads(_own(worker, json.dumps(step.body)))
    shared: list[Any] = []

    def is_answered() -> bool:
        found = worker.ask(step.method, path, body)
        shared[:] = json.loads(_shared(worker, json.dumps(found)))
        return step.until is None or step.until(shared[1])

    wait_until(is_answered, f"the answer to {step.method} {path}", PATIENCE_S, lambda: shared)
    status, value = shared
    if step.only is not None:
        value = step.only(value)
    return [status, _without_own_words(value)]


def _own(worker: WorkerProcess, text: str) -> str:
    return text.replace("{tag}", worker.tag).replace("{dir}", str(worker.folder))


def _shared(worker: WorkerProcess, text: str) -> str:
    return text.replace(str(worker.folder), "{dir}").replace(worker.tag, "{tag}")


def _without_own_words(value: Any) -> Any:
    if isinstance(value, dict) and "configs" in value:
        # Java's maps have orders of their own.
        configs = sorted(value["configs"], key=lambda one: str(one["value"]["name"]))
        configs = [one for one in configs if not one["value"]["name"].endswith("plugin.version")]
        value = {**value, "configs": configs, "groups": sorted(value["groups"])}
    if isinstance(value, dict):
        return {key: _shown(key, one) for key, one in value.items() if key not in OWN_WORDS}
    if isinstance(value, list):
        found = [one for one in value if not _is_version(one)]
        return [_without_own_words(one) for one in found]
    return value


def _shown(key: str, value: Any) -> Any:
    if key == "trace":
        return (value or "").partition("\n")[0]
    if key == "version":
        return value is not None  # each has its own
    return _without_own_words(value)


def _is_version(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("name")).endswith("plugin.version")


def states(connector: str, *tasks: str) -> Callable[[Any], bool]:
    """Return whether a status is of these states."""

    def are(status: Any) -> bool:
        found = status.get("connector", {}).get("state")
        return found == connector and [one["state"] for one in status["tasks"]] == list(tasks)

    return are
