"""The exactly-once sink on Spark: tasks, commits, drivers and brokers are killed at each step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from support.cluster_processes import EAGER, ClusterProcesses
from support.faulty_sink import COMMIT_PLACES, DIRECTORY, TASK_PLACES
from support.node_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
PROCESS = Path(__file__).with_name("datasource_process.py")
SOURCE, SINK = "source", "sink"
PARTITIONS = 2
PER_FAULT = 40
PATIENCE_S = 180
DRIVER_PLACES = ("task-prepared", "before-WriteDecision", "after-WriteDecision", "after-Commit")


class Copying:
    """The query's process; leads a group, as Spark's JVM goes with it."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.directory = directory
        self.faults = directory / "faults"
        self.faults.mkdir(exist_ok=True)
        self._command = [sys.executable, str(PROCESS), servers, SOURCE, SINK, str(directory)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        tests = str(Path(__file__).parents[1])
        path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, DIRECTORY: str(self.faults), "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def arm(self, name: str) -> Path:
        fault = self.faults / name
        fault.touch()
        return fault

    def until_struck(self, fault: Path) -> None:
        def is_struck() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, "the driver ended"
            return not fault.exists()

        wait_until(is_struck, f"a process to get to {fault.name}", timeout_s=PATIENCE_S)


class Feed:
    """Unique records, so that what comes out can be compared."""

    def __init__(self, servers: str) -> None:
        self.sent = 0
        self._producer = Producer({"bootstrap.servers": servers})

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            self._producer.produce(SOURCE, str(number), str(number), number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0
        self.sent += count


def committed(servers: str, sent: int) -> Counter[str]:
    """Return the committed records, read until the last one and all others have come."""
    settings = {"bootstrap.servers": servers, "group.id": "check", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(SINK, n, OFFSET_BEGINNING) for n in range(PARTITIONS)])
    found: Counter[str] = Counter()

    def has_come() -> bool:
        for message in consumer.consume(500, 1.0):
            if not message.error():
                found[message.value().decode()] += 1
        return found[str(sent - 1)] > 0 and found.total() >= sent

    try:
        wait_until(has_come, f"all of {sent} records", timeout_s=PATIENCE_S)
        has_come()
    finally:
        consumer.close()
    return found


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path / "brokers", 3, EAGER) as cluster:
        for topic in (SOURCE, SINK):
            cluster.create_topic(topic, PARTITIONS)
        yield cluster


def test_each_record_comes_once(brokers: ClusterProcesses, tmp_path: Path) -> None:
    directory = tmp_path / "query"
    directory.mkdir()
    feed, query = Feed(brokers.bootstrap_servers), Copying(brokers.bootstrap_servers, directory)
    query.start()
    try:
        for number, place in enumerate((*TASK_PLACES, *COMMIT_PLACES)):
            fault = query.arm(f"{place}.kill")
            feed.send(PER_FAULT)
            query.until_struck(fault)
            if number % 4 == 3:
                node = 1 + number % 3
                brokers.kill(node)
                feed.send(PER_FAULT)
                brokers.start(node)
        for place in DRIVER_PLACES:
            fault = query.arm(f"{place}.wait")
            feed.send(PER_FAULT)
            query.until_struck(fault)
            query.kill()
            query.start()
        # The last record comes when all before it are written, and no batch is run again.
        feed.send(1)
        found = committed(brokers.bootstrap_servers, feed.sent)
    finally:
        query.kill()
    assert found == Counter(map(str, range(feed.sent)))
