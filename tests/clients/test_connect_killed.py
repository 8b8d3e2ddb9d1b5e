"""Tasks killed in every step of a micro-batch: nothing is lost, and exactly once nothing twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from support.connect.tasks import STRING, TopicOffsets, read_topic
from support.node_process import wait_until

LINES = 100
LINES_MODULE = "support.connect.distributed_lines"
ROOT = Path(__file__).parents[1]
WAIT_SECONDS = 240.0


class Doomed:
    """Starts the same task again and again."""

    def __init__(self, kafka: Kafka, directory: Path, given: Mapping[str, Any]) -> None:
        self._directory = directory
        self.given = {
            "name": kafka.name("doomed"),
            "worker": {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": kafka.name("workers"),
                "key.converter": STRING,
                "barnabas.connect.plugins": f"FileStreamSource,FileStreamSink,{LINES_MODULE}",
                "value.converter": STRING,
                # A member that was killed is waited for.
                "consumer.session.timeout.ms": "6000",
                "consumer.heartbeat.interval.ms": "500",
                "barnabas.connect.batch.records.max": "20",
            },
            "step": "",
            "batch": 1,
            **given,
        }

    def start(self, step: str = "", batch: int = 1) -> subprocess.Popen[str]:
        """Start it, to die at a step."""
        given = {**self.given, "step": step, "batch": batch}
        with (self._directory / "doomed.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "support.connect.doomed_task", json.dumps(given)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
            )

    def die(self, step: str, batch: int = 1) -> None:
        """Start it, and wait until it has died."""
        process = self.start(step, batch)
        try:
            process.wait(WAIT_SECONDS)
        finally:
            process.kill()
            _close(process)
        assert process.returncode == -signal.SIGKILL, self.log()

    def run_until(self, is_so: Callable[[], bool]) -> None:
        """Start it, and stop it when something is so."""
        process = self.start()
        try:

            def happens() -> bool:
                if is_so():
                    return True
                assert process.poll() is None, self.log()
                return False

            wait_until(happens, "what the process is to do", WAIT_SECONDS, self.log)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(WAIT_SECONDS) == 0, self.log()
        finally:
            process.kill()
            _close(process)

    def log(self) -> str:
        """Return what the processes said."""
        return (self._directory / "doomed.log").read_text()[-4000:]


def _close(process: subprocess.Popen[str]) -> None:
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _source(
    kafka: Kafka,
    tmp_path: Path,
    steps: Sequence[str],
    *,
    is_exactly_once: bool,
    connector: str = "FileStreamSource",
    **more: str,
) -> list[bytes | None]:
    topic, stored = kafka.topic("lines"), kafka.topic("offsets")
    file = tmp_path / "lines.txt"
    doomed = Doomed(
        kafka,
        tmp_path,
        {
            "settings": {
                "connector.class": connector,
                "file": str(file),
                "topic": topic,
                "batch.size": "1",
            },
            "offsets_topic": stored,
            "is_exactly_once": is_exactly_once,
            **more,
        },
    )
    file.write_text("".join(f"line {number}\n" for number in range(LINES)))
    for step in steps:
        doomed.die(step)
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, doomed.given["name"])
    end = [({"filename": str(file)}, {"position": file.stat().st_size})]
    doomed.run_until(lambda: offsets.all() == end)
    return [value for _, value in read_topic(kafka.bootstrap_servers, topic)]


EXPECTED = [f"line {number}".encode() for number in range(LINES)]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            ["planned", "sent", "acknowledged", "stored", "told"], id="all", marks=pytest.mark.slow
        ),
    ],
)
def test_source_at_least_once_loses_nothing(
    kafka: Kafka, tmp_path: Path, steps: Sequence[str]
) -> None:
    found = _source(kafka, tmp_path, steps, is_exactly_once=False)
    assert set(found) == set(EXPECTED)
    twice = [value for value, count in Counter(found).items() if count > 1]
    assert twice != []  # what was acknowledged, and whose offset was not stored, is read again


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["before the transaction's end"], id="quick"),
        pytest.param(
            [
                "planned",
                "sent",
                "acknowledged",
                "before the transaction's end",
                "after the transaction's end",
                "told",
            ],
            id="all",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_source_exactly_once_writes_each_record_once(
    kafka: Kafka, tmp_path: Path, steps: Sequence[str]
) -> None:
    assert _source(kafka, tmp_path, steps, is_exactly_once=True) == EXPECTED


_IN_THE_WORKER = ["planned", "before the transaction's end", "after the transaction's end", "told"]
_DISTRIBUTED = ["planned", "prepared", "decided", "committed", "told"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("connector", "steps"),
    [
        pytest.param("FileStreamSource", _IN_THE_WORKER, id="in the worker"),
        pytest.param(f"{LINES_MODULE}:DistributedLines", _DISTRIBUTED, id="distributed"),
        # Each run begins with a distributed one, and the ways take turns.
        pytest.param(
            f"{LINES_MODULE}:AlternatingLines", [*_DISTRIBUTED, *_IN_THE_WORKER], id="in turn"
        ),
    ],
)
def test_source_exactly_once_on_spark_writes_each_record_once(
    kafka: Kafka, tmp_path: Path, connector: str, steps: Sequence[str]
) -> None:
    found = _source(
        kafka, tmp_path, steps, is_exactly_once=True, connector=connector, engine="spark"
    )
    assert found == EXPECTED


@pytest.mark.slow
def test_sink_loses_nothing(kafka: Kafka, tmp_path: Path) -> None:
    topic, file = kafka.topic("in"), tmp_path / "out.txt"
    kafka.produce(topic, EXPECTED)
    doomed = Doomed(
        kafka,
        tmp_path,
        {
            "settings": {
                "connector.class": "FileStreamSink",
                "file": str(file),
                "topics": topic,
            },
            "offsets_topic": "unused",
            "is_exactly_once": False,
        },
    )
    doomed.die("before a sink's commit")
    doomed.die("after a sink's commit")
    doomed.run_until(lambda: file.read_bytes().endswith(EXPECTED[-1] + b"\n"))
    found = file.read_bytes().split(b"\n")[:-1]
    assert sorted(set(found), key=EXPECTED.index) == EXPECTED
    assert len(found) == LINES + 20
