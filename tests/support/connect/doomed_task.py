"""A process that runs one task until it is killed, by itself, at a step of a micro-batch.

    python -m support.connect.doomed_task SPECIFICATION

The specification is JSON: name, settings, worker, offsets_topic, is_exactly_once, engine, step (the
name of where to die, empty for nowhere) and batch (at its how manyth time). Without a step it ends
when its standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from barnabas.connect.connectors.file.reader import FileReader
from barnabas.connect.tasks import kafka_group, kafka_output, runner, source_transactions
from barnabas.connect.tasks.local import LocalEngine
from barnabas.connect.tasks.spark import spark_engine
from barnabas.connect.tasks.spark_exactly_once import BatchCommits
from barnabas.spark.datasource.journal import Journal
from support.connect.tasks import TaskRun, TopicOffsets

STEPS: dict[str, tuple[Any, str, bool]] = {
    "planned": (FileReader, "partitions", False),
    "sent": ((runner, source_transactions), "settle", False),
    "acknowledged": ((runner, source_transactions), "settle", True),
    "stored": (TopicOffsets, "store", True),
    "told": (FileReader, "commit", True),
    "before the transaction's end": (kafka_output.KafkaTransactions, "commit", False),
    "after the transaction's end": (kafka_output.KafkaTransactions, "commit", True),
    "before a sink's commit": (kafka_group.KafkaGroup, "commit", False),
    "after a sink's commit": (kafka_group.KafkaGroup, "commit", True),
    "prepared": (BatchCommits, "commit", False),
    "decided": (Journal, "write", True),
    "committed": (BatchCommits, "commit", True),
}
"""Each step: whose function it is (or which modules have it), and whether the process dies before
or after it.
"""


def doom(step: str, times: int) -> None:
    """Let the process die at a step."""
    owner, name, is_after = STEPS[step] if step in STEPS else _named(step)
    owners = owner if isinstance(owner, tuple) else (owner,)
    real = getattr(owners[0], name)
    left = [times]

    def die() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def doomed(*given: Any, **named: Any) -> Any:
        if not is_after:
            die()
        result = real(*given, **named)
        if is_after:
            die()
        return result

    for one in owners:
        assert getattr(one, name) is real
        setattr(one, name, doomed)


def _named(step: str) -> tuple[Any, str, bool]:
    """Any function of a class: `before module:Class.function`, `after …`; see `place_of`."""
    when, _, place = step.partition(" ")
    module, _, path = place.partition(":")
    owner, _, name = path.partition(".")
    return getattr(import_module(module), owner), name, when == "after"


def main() -> None:
    """Run the task."""
    given = json.loads(sys.argv[1])
    if given["step"]:
        doom(given["step"], given["batch"])
    worker = {"barnabas.connect.paths": "/", **given["worker"]}
    is_spark = given.get("engine") == "spark"
    engine = spark_engine(worker) if is_spark else LocalEngine()
    offsets = TopicOffsets(worker["bootstrap.servers"], given["offsets_topic"], given["name"])
    run = TaskRun(
        engine,
        given["name"],
        given["settings"],
        worker,
        offsets,
        offsets_topic=given["offsets_topic"],
        is_exactly_once=given["is_exactly_once"],
    )
    sys.stdin.read()
    run.stop()
    engine.close()
    if run.log.error is not None:
        raise run.log.error


if __name__ == "__main__":
    main()
