"""Tasks of connectors on Spark elsewhere: a standalone cluster, a server of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from test_connect_killed import Doomed
from test_sql_spark_cluster import StandaloneSpark

from barnabas.app.local_nodes import free_ports
from barnabas.app.testing import Kafka
from support.connect.tasks import TopicOffsets, read_topic
from support.node_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LINES = 400
EXPECTED = [f"line {number}".encode() for number in range(LINES)]
PATIENCE_SECONDS = 300.0


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[StandaloneSpark]:
    with ExitStack() as stack:
        yield StandaloneSpark(tmp_path, stack)


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("grpc_status", reason="Spark Connect's client needs grpcio-status")
    (port,) = free_ports(1, "127.0.0.1")
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
                *("--master", "local[2]"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--conf", f"spark.connect.grpc.binding.port={port}"),
                *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
                *("--conf", "spark.ui.enabled=false"),
                "spark-internal",
            ],
            stdout=output,
            stderr=output,
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
    try:
        wait_until(lambda: "Spark Connect server started" in log.read_text(), "a server")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


class Copying:
    """A file that is read into a topic."""

    def __init__(
        self, kafka: Kafka, directory: Path, master: str, *, is_exactly_once: bool
    ) -> None:
        self._kafka = kafka
        self.topic, stored = kafka.topic("lines"), kafka.topic("offsets")
        file = directory / "lines.txt"
        file.write_bytes(b"".join(line + b"\n" for line in EXPECTED))
        self.doomed = Doomed(
            kafka,
            directory,
            {
                "settings": {
                    "connector.class": "support.connect.distributed_lines:DistributedLines",
                    "file": str(file),
                    "topic": self.topic,
                    "batch.size": "1",
                },
                "offsets_topic": stored,
                "is_exactly_once": is_exactly_once,
                "engine": "spark",
            },
        )
        self.doomed.given["worker"]["barnabas.connect.spark.master"] = master
        self._offsets = TopicOffsets(kafka.bootstrap_servers, stored, self.doomed.given["name"])
        self._end = [({"filename": str(file)}, {"position": file.stat().st_size})]

    def is_done(self) -> bool:
        return self._offsets.all() == self._end

    def values(self) -> list[bytes | None]:
        return [value for _, value in read_topic(self._kafka.bootstrap_servers, self.topic)]


def test_a_machine_that_dies_costs_nothing(
    kafka: Kafka, tmp_path: Path, standalone: StandaloneSpark
) -> None:
    copying = Copying(kafka, tmp_path, standalone.url, is_exactly_once=True)
    process = copying.doomed.start()
    try:

        def is_on_its_way() -> bool:
            assert process.poll() is None, copying.doomed.log()
            return len(copying.values()) > LINES // 4

        def is_done() -> bool:
            assert process.poll() is None, copying.doomed.log()
            return copying.is_done()

        wait_until(is_on_its_way, "the first lines", PATIENCE_SECONDS, copying.doomed.log)
        assert not copying.is_done()
        standalone.workers[0].kill()
        wait_until(is_done, "the end of the copy", PATIENCE_SECONDS, copying.doomed.log)
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
    assert copying.values() == EXPECTED


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_spark_connect(
    kafka: Kafka, tmp_path: Path, connect_server: str, is_exactly_once: bool
) -> None:
    copying = Copying(kafka, tmp_path, connect_server, is_exactly_once=is_exactly_once)
    copying.doomed.run_until(copying.is_done)
    assert copying.values() == EXPECTED
