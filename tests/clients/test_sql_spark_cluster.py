"""A query on a standalone cluster of Spark: a machine that dies in the middle costs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pyspark
import pytest
from test_sql_spark import JOIN_AND_GROUP, World
from test_sql_spark_killed import Killed, until_last

from barnabas.app.local_nodes import free_ports
from barnabas.app.testing import Kafka
from support.node_process import wait_until
from support.process_tree import descendants

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
WORKERS = 2


class Part:
    """A master or a worker with all that it has started."""

    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        self.output = directory / f"{name}.log"
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [str(SPARK_CLASS), *arguments, "--host", "127.0.0.1", "--webui-port", "0"],
                stdout=output,
                stderr=output,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )

    def has_said(self, text: str) -> bool:
        assert self._process.poll() is None, self.output.read_text()
        return text in self.output.read_text()

    def kill(self) -> None:
        """As a machine that loses its power: executors and their Python workers go too."""
        for pid in list(descendants(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


class StandaloneSpark:
    """A master and workers with a core each."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        (port,) = free_ports(1, "127.0.0.1")
        self.url = f"spark://127.0.0.1:{port}"
        self.master = Part(directory, "master", f"{DEPLOY}.master.Master", "--port", str(port))
        stack.callback(self.master.kill)
        wait_until(lambda: self.master.has_said("I have been elected leader"), "a master")
        self.workers: list[Part] = []
        for number in range(WORKERS):
            own = directory / f"worker{number}"
            own.mkdir()
            worker = Part(
                own,
                "worker",
                *(f"{DEPLOY}.worker.Worker", self.url, "--cores", "1", "--memory", "1g"),
                *("--work-dir", str(own)),
            )
            stack.callback(worker.kill)
            self.workers.append(worker)
        wait_until(
            lambda: all(each.has_said("Successfully registered") for each in self.workers),
            "the workers",
        )


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[StandaloneSpark]:
    with ExitStack() as stack:
        yield StandaloneSpark(tmp_path, stack)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_worker_that_dies_costs_nothing(
    kafka: Kafka, tmp_path: Path, standalone: StandaloneSpark, guarantee: str
) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    world = World(kafka, None, checkpoints)  # type: ignore[arg-type]
    plan = world.plan(JOIN_AND_GROUP)
    world.send(5)
    world.send_stream(1_500)
    want = world.expected(plan)
    running = Killed(world, plan, guarantee, standalone.url)
    try:
        running.wait_for(3)
        standalone.workers[0].kill()
        got = until_last(world, {r.key: (r.value, r.timestamp_ms) for r in want})
    finally:
        running.kill()
    values = sorted((m.key() or b"", m.value() or b"") for m in got)
    expected = sorted((r.key or b"", r.value or b"") for r in want)
    if guarantee == "exactly_once_v2":
        assert values == expected
    else:
        assert set(values) == set(expected)
