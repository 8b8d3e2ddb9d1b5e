"""Our worker and Kafka's give the same answers to the same requests, and copy the same records.

Part of `make test-slow`: Kafka's worker is slow to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.connect.kafka_connect import KafkaWorker, needs_kafka_connect
from support.connect.side_by_side import answer
from support.connect.steps import STEPS
from support.connect.worker import OurWorker, WorkerProcess
from support.node_process import wait_until

LINES = "one\ntwo\nmore\n"[:12]
"""The last line is not at its end yet."""
TWICE = "one\ntwo\n" * 2


@pytest.fixture(params=["standalone", "distributed"])
def workers(
    request: pytest.FixtureRequest, tmp_path: Path, kafka_bootstrap_servers: str
) -> Iterator[list[WorkerProcess]]:
    found: list[WorkerProcess] = []
    mode: str = request.param
    try:
        for kind, name in ((OurWorker, "ours"), (KafkaWorker, "kafk")):
            tag = f"{name}{mode[0]}0"
            group = f"workers-{tag}" if mode == "distributed" else None
            made: WorkerProcess = kind(tmp_path / tag, kafka_bootstrap_servers, tag, group)
            found.append(made)
            (made.folder / "in.txt").write_text(LINES)
            made.launch()
        for worker in found:
            worker.url = worker.wait()
        yield found
    finally:
        for worker in found:
            worker.close()


@pytest.mark.slow
@needs_kafka_connect
@pytest.mark.timeout(600)
def test_answers_and_copies_are_the_same(workers: list[WorkerProcess]) -> None:
    different = []
    for step in STEPS:
        ours, theirs = (answer(worker, step) for worker in workers)
        if ours != theirs:
            different.append((step.method, step.path, step.body, ours, theirs))
    assert different == []
    for worker in workers:
        # Its offsets were reset: it has copied what there is once more.
        wait_until(lambda out=worker.folder / "out.txt": out.read_text() == TWICE, "copied twice")  # type: ignore[misc]
