"""GET /metrics of a worker: Kafka Connect's figures under the names that Prometheus' JMX exporter
gives them with the usual rules.

    kafka.connect:type=connect-worker-metrics                kafka_connect_worker_<figure>
    …,connector="c"                                          … {connector}
    kafka.connect:type=connect-worker-rebalance-metrics      kafka_connect_worker_rebalance_<figure>
    kafka.connect:type=connect-coordinator-metrics           kafka_connect_coordinator_<figure>
    kafka.connect:type=connector-metrics,connector="c"       kafka_connect_connector_<figure>
    kafka.connect:type=source-task-metrics,…,task="0"        kafka_connect_source_task_<figure>
    and sink-task-, connector-task- and task-error-metrics   {connector, task}

    kafka.connect.mirror:type=MirrorSourceConnector,…        kafka_connect_mirror_mirrorsource…
    and what else connectors count themselves                {connector, task and their own}

Text metrics become labels of a metric with the value 1. `sink_record_lag` is ours: how many
records of the task's partitions wait.

Source: org.apache.kafka.connect.runtime.ConnectMetricsRegistry (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.connect.config import common
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.herder import Herder, connector_type
from barnabas.connect.worker.state import Status
from barnabas.web.metrics import Families, metrics_text

_COUNTED: Final = ("RUNNING", "PAUSED", "FAILED", "UNASSIGNED", "DESTROYED", "RESTARTING")
_ERRORS: Final = ("total-", "deadletterqueue-", "last-error-")
_SINK: Final = ("sink-", "put-batch-", "partition-count", "offset-commit-seq-no")
_OF_SINKS: Final = ("offset-commit-completion-", "offset-commit-skip-")
_TOTAL: Final = "_total"
_STARTUPS: Final = ("connector", "task")
Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


def worker_metrics(herder: Herder) -> bytes:
    """Return all figures of a worker."""
    families = Families()
    for name, labels, value in _samples(herder):
        name = name.replace("-", "_")
        what = name.removeprefix("kafka_connect_").replace("_", " ").capitalize() + "."
        if name.endswith(_TOTAL):
            families.counter(name.removesuffix(_TOTAL), what, value, **dict(labels))
        else:
            families.gauge(name, what, value, **dict(labels))
    return metrics_text(families.all())


def _samples(herder: Herder) -> Iterator[Sample]:
    yield from _worker(herder)
    for group, figures, labels in herder.group_figures():
        for name, value in figures.items():
            yield f"kafka_connect_{group}_{name}", labels, value
    state = herder.store.snapshot()
    for name, running in sorted(herder.worker.connectors.items()):
        status = herder.store.status(name)
        words = {
            "status": "unassigned" if status is None else status.state.lower(),
            "connector-type": connector_type(running.settings),
            "connector-class": running.settings.get(common.CONNECTOR_CLASS, ""),
            "connector-version": (status and status.version) or "",
        }
        for what, word in words.items():
            label = what.replace("-", "_")
            labels = (("connector", name), (label, word))
            yield f"kafka_connect_connector_{what.removeprefix('connector-')}", labels, 1.0
    for task, (running_task, _) in sorted(herder.worker.tasks.items(), key=lambda one: str(one[0])):
        kind = connector_type(state.connectors.get(task.connector))
        yield from _task(task, kind, herder.store.status(task), running_task.metrics())
        own = (("connector", task.connector), ("task", str(task.task)))
        for name, labels, value in running_task.own_metrics():
            yield f"kafka_connect_{name}", (*own, *labels), value


def _worker(herder: Herder) -> Iterator[Sample]:
    worker = herder.worker
    tasks = list(worker.tasks)
    yield "kafka_connect_worker_connector-count", (), len(worker.connectors)
    yield "kafka_connect_worker_task-count", (), len(tasks)
    for what in _STARTUPS:
        good, bad = worker.starts[what, True], worker.starts[what, False]
        prefix = f"kafka_connect_worker_{what}-startup"
        yield f"{prefix}-attempts-total", (), good + bad
        yield f"{prefix}-success-total", (), good
        yield f"{prefix}-failure-total", (), bad
        yield f"{prefix}-success-percentage", (), good / (good + bad) if good + bad else 0.0
        yield f"{prefix}-failure-percentage", (), bad / (good + bad) if good + bad else 0.0
    for name in sorted({task.connector for task in tasks} | set(worker.connectors)):
        own = [task.task for task in tasks if task.connector == name]
        statuses = herder.store.task_statuses(name)
        states = [statuses[number].state for number in own if number in statuses]
        labels = (("connector", name),)
        yield "kafka_connect_worker_connector-total-task-count", labels, len(own)
        for state in _COUNTED:
            figure = f"kafka_connect_worker_connector-{state.lower()}-task-count"
            yield figure, labels, states.count(state)


def _task(
    task: TaskId, kind: str, status: Status | None, figures: Mapping[str, float]
) -> Iterator[Sample]:
    labels = (("connector", task.connector), ("task", str(task.task)))
    word = "unassigned" if status is None else status.state.lower()
    yield "kafka_connect_connector_task_status", (*labels, ("status", word)), 1.0
    for name, value in figures.items():
        yield f"kafka_connect_{_group(name, kind)}_{name}", labels, value


def _group(name: str, kind: str) -> str:
    if name.startswith(_ERRORS):
        return "task_error"
    if name.startswith(("source-", "poll-batch-", "transaction-size-")):
        return "source_task"
    if name.startswith(_SINK) or (kind == "sink" and name.startswith(_OF_SINKS)):
        return "sink_task"
    return "connector_task"
