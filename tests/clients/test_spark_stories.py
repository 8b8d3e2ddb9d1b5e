"""The main job's pipeline end to end: generator, node, Spark; stopped, killed, started again."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from barnabas.app.cluster import Cluster
from barnabas.demo.contract import TOPIC_PARTITIONS, PipelineProgress, Plan, Truth
from barnabas.demo.figures import FigureBoard
from barnabas.demo.generators.run import GeneratorRun
from barnabas.demo.generators.topics import ensure_topics
from barnabas.demo.spark.queries import STORY_QUERIES
from barnabas.demo.spark.stories import Stories, StoryOptions, table_of
from barnabas.demo.topics import CONSUMER_GROUPS, INPUT_TOPICS, OUTPUT_TOPICS
from support.node_process import wait_until
from support.registry_thread import registry_of
from support.spark import shared_session

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.timeout(300),
]

DEADLINE_SECONDS = 120.0
PLAN: Plan = {"seed": 5, "rate": 150, "acceleration": 240, "seconds": 6}


@pytest.fixture(autouse=True)
def spark() -> Iterator[SparkSession]:
    """The process's Spark session; skips all where Spark cannot run."""
    yield shared_session()
    # PySpark leaves the sockets of collect() to the garbage collector.
    gc.collect()


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    with Cluster() as cluster:
        ensure_topics(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


@pytest.fixture
def registry_url(bootstrap_servers: str) -> Iterator[str]:
    with registry_of(bootstrap_servers) as url:
        yield url


class Onlooker:
    """Reads what anyone can: ends of topics, committed offsets, output topics."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.consumer = self._consumer("onlooker")

    def _consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )

    def ends(self, topic: str) -> dict[str, int]:
        return {
            str(p): self.consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1]
            for p in range(TOPIC_PARTITIONS[topic])
        }

    def committed(self, group: str) -> dict[str, int]:
        topic = CONSUMER_GROUPS[group]
        consumer = self._consumer(group)
        partitions = [TopicPartition(topic, p) for p in range(TOPIC_PARTITIONS[topic])]
        found = {str(p.partition): p.offset for p in consumer.committed(partitions, timeout=10)}
        consumer.close()
        return found

    def board(self) -> FigureBoard:
        board = FigureBoard()
        self.consumer.assign([TopicPartition(topic, 0, 0) for topic in OUTPUT_TOPICS])
        ended: set[str | None] = set()
        while len(ended) < len(OUTPUT_TOPICS):
            message = self.consumer.poll(10)
            assert message is not None
            if message.error():
                ended.add(message.topic())
            else:
                board.apply(message.topic() or "", message.key() or b"", message.value() or b"")
        return board

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture
def onlooker(bootstrap_servers: str) -> Iterator[Onlooker]:
    onlooker = Onlooker(bootstrap_servers)
    yield onlooker
    onlooker.close()


def caught_up(progress: PipelineProgress, onlooker: Onlooker) -> bool:
    ends = {topic: onlooker.ends(topic) for topic in INPUT_TOPICS}
    return all(query["offsets"] == ends[query["topic"]] for query in progress["queries"].values())


def read_progress(path: Path) -> PipelineProgress:
    progress: PipelineProgress = json.loads(path.read_text())
    return progress


class StopWhenCaughtUp(Flag):
    """A flag that `Stories.run` waits on: set once every query is at the topics' ends."""

    def __init__(self, path: Path, onlooker: Onlooker) -> None:
        super().__init__()
        self._path = path
        self._onlooker = onlooker
        self._deadline = time.monotonic() + DEADLINE_SECONDS

    def wait(self, timeout: float | None = None) -> bool:
        assert time.monotonic() < self._deadline, self._path.read_text()
        if caught_up(read_progress(self._path), self._onlooker):
            self.set()
        return super().wait(timeout)


def generate(bootstrap_servers: str, registry_url: str, directory: Path, seconds: int) -> Truth:
    plan: Plan = {**PLAN, "seconds": seconds}
    return GeneratorRun(bootstrap_servers, registry_url, str(directory), plan, paced=False).run()


def as_text(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_figures_are_the_truth_over_a_restart(
    spark: SparkSession,
    bootstrap_servers: str,
    registry_url: str,
    onlooker: Onlooker,
    tmp_path: Path,
) -> None:
    progress_path = tmp_path / "progress.json"
    warehouse = tmp_path / "warehouse"
    options = StoryOptions(
        bootstrap_servers, registry_url, str(warehouse), str(tmp_path / "checkpoints"), trigger_ms=0
    )
    for seconds in (3, 6):
        truth = generate(bootstrap_servers, registry_url, tmp_path / "generator", seconds)
        stories = Stories(spark, options, str(progress_path))
        try:
            stories.start()
            stories.run(StopWhenCaughtUp(progress_path, onlooker))
        finally:
            stories.stop()
        progress = read_progress(progress_path)
        assert progress["state"] == "stopped"
        assert all(query["dropped_late"] == 0 for query in progress["queries"].values())
        board = onlooker.board()
        assert board.figures() == truth["figures"]
        for group, topic in CONSUMER_GROUPS.items():
            assert onlooker.committed(group) == onlooker.ends(topic)
    for query in STORY_QUERIES:
        for output in query.outputs:
            stored = table_of(output, str(warehouse)).read_latest()
            assert as_text(stored) == as_text(board.rows[output.topic].values())


@pytest.mark.slow
def test_a_pipeline_that_is_killed_goes_on_to_the_same_figures(
    bootstrap_servers: str, registry_url: str, onlooker: Onlooker, tmp_path: Path
) -> None:
    progress_path = tmp_path / "progress.json"
    command: list[Any] = [
        *(sys.executable, "-m", "barnabas.demo.spark.stories", "--bootstrap", bootstrap_servers),
        *("--registry", registry_url),
        *("--warehouse", tmp_path / "warehouse", "--checkpoints", tmp_path / "checkpoints"),
        *("--progress", progress_path, "--trigger-ms", "0", "--max-offsets-per-trigger", "120"),
    ]

    def wait_for(process: subprocess.Popen[str], reached: str) -> None:
        def is_reached() -> bool:
            assert process.poll() is None, reached
            if not progress_path.exists():
                return False
            progress = read_progress(progress_path)
            started = any(query["batches"] for query in progress["queries"].values())
            return started and (reached == "a batch" or caught_up(progress, onlooker))

        wait_until(is_reached, reached, DEADLINE_SECONDS)

    truth = generate(bootstrap_servers, registry_url, tmp_path / "generator", 8)
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        wait_for(process, "a batch")
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert not caught_up(read_progress(progress_path), onlooker)
    progress_path.unlink()
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        wait_for(process, "the end")
        process.terminate()
        assert process.stdout is not None
        said = process.stdout.read().splitlines()
        assert process.wait() == 0
    assert said[-2:] == ["queries running", "stopped"]
    assert onlooker.board().figures() == truth["figures"]
    assert not os.path.exists(f"{progress_path}.partial")


def test_sigterm_before_the_topics_exist_ends_at_once(tmp_path: Path) -> None:
    with Cluster() as cluster:
        command = [
            *(sys.executable, "-m", "barnabas.demo.spark.stories"),
            *("--bootstrap", cluster.bootstrap_servers, "--registry", "http://127.0.0.1:1"),
            *("--warehouse", str(tmp_path / "w"), "--checkpoints", str(tmp_path / "c")),
        ]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "starting Spark\n"
            process.terminate()
            assert process.wait() == 0
    assert (tmp_path / "c" / "spark.log").exists()
