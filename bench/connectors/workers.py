"""Processes that run connectors: our standalone worker and Kafka's, our mirror and Kafka's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from confluent_kafka import Consumer, TopicPartition

from bench.connectors.kafka_plugins import Plugin
from bench.ending import end_group
from bench.kafka_jars import java, kafka_classpath
from bench.kafka_server import LOG4J
from bench.settings import ROOT

STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
RUNNERS: Final = ("kafka", "barnabas", "spark")
"""Kafka's program with a heap of 512 MB, ours with tasks in its process, and ours on Spark."""
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
LOOK_SECONDS: Final = 0.02
MEMORY_SECONDS: Final = 1.0
TASK_SECONDS: Final = 5.0
_TASK_ENDED: Final = ("Task is being killed", ": the task ends")
"""What Kafka's worker and ours log of a task that failed."""


@dataclass(slots=True)
class Running:
    """A process with its log; `memory_mb` is the highest so far, of all its processes."""

    process: subprocess.Popen[bytes]
    log: Path
    memory_mb: float = 0.0
    looked_s: float = 0.0
    """When its log was read last."""

    def check_alive(self) -> None:
        """Raises RuntimeError with the end of its log if it, or its task, has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(self.log_end())
        now = time.monotonic()
        if now - self.looked_s > TASK_SECONDS:
            self.looked_s = now
            text = self.log.read_text(errors="replace")
            place = next((text.index(one) for one in _TASK_ENDED if one in text), None)
            if place is not None:
                raise RuntimeError(text[max(0, place - 500) : place + 2500])

    def log_end(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]

    def look_at_memory(self) -> None:
        """Take note of the memory in use."""
        parent = psutil.Process(self.process.pid)
        total = 0
        for one in (parent, *parent.children(recursive=True)):
            try:
                total += one.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
        self.memory_mb = max(self.memory_mb, total / 1e6)


def in_turn(runners: Sequence[str], number: int) -> list[str]:
    """The runners, beginning with another one in each round: none always comes last."""
    first = number % len(runners)
    return [*runners[first:], *runners[:first]]


@contextmanager
def connector(
    runner: str,
    directory: Path,
    servers: str,
    settings: Mapping[str, str],
    plugin: Plugin | None = None,
) -> Iterator[Running]:
    """Run one connector in a standalone worker; `plugin` is where Kafka's finds it."""
    name = settings["name"]
    worker = {
        "bootstrap.servers": servers,
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.storage.file.filename": str(directory / f"{name}.offsets"),
        "offset.flush.interval.ms": "1000",
        "barnabas.connect.plugins": "FileStreamSource,FileStreamSink",
        "barnabas.connect.paths": "/",
        "listeners": "http://127.0.0.1:0",
        "barnabas.connect.engine": _engine(runner),
    }
    if runner == "kafka" and plugin is not None:
        worker |= {"plugin.path": plugin.path(), "plugin.discovery": "only_scan"}
    files = [
        _file(directory / f"{name}.{what}.properties", values)
        for what, values in (("worker", worker), ("connector", settings))
    ]
    kafka = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = _kafka(directory, kafka, *files) if runner == "kafka" else _ours("start", *files)
    with _running(command, directory / f"{name}.log") as running:
        yield running


@contextmanager
def mirror(runner: str, directory: Path, settings: Mapping[str, str]) -> Iterator[Running]:
    """Run the flows of a mirror maker's file."""
    given = {**settings, "barnabas.connect.engine": _engine(runner)}
    file = _file(directory / f"mirror-{runner}.properties", given)
    kafka = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = _kafka(directory, kafka, file) if runner == "kafka" else _ours("mirror", file)
    with _running(command, directory / f"mirror-{runner}.log") as running:
        yield running


def rate(running: Running, seen: Callable[[], int], wanted: int, timeout_s: float) -> float:
    """Watch a count until it is `wanted`: per second, from the first that is seen to the last."""
    first_s = first = looked_s = 0.0
    deadline = time.monotonic() + timeout_s
    while True:
        count, now = seen(), time.monotonic()
        if count and not first:
            first_s, first = now, count
        if now - looked_s > MEMORY_SECONDS or count >= wanted:
            looked_s = now
            running.look_at_memory()
        if count >= wanted:
            return (count - first) / max(now - first_s, LOOK_SECONDS)
        running.check_alive()
        if now > deadline:
            raise RuntimeError(f"{count} of {wanted} within {timeout_s:g} s")
        time.sleep(LOOK_SECONDS)


class TopicEnd:
    """How many records a topic's partitions have had."""

    def __init__(self, servers: str, topic: str, partitions: int = 1) -> None:
        config = {"bootstrap.servers": servers, "group.id": "bench", "log_level": 0}
        self._consumer = Consumer(config)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]

    def __call__(self) -> int:
        """Look; 0 where there is no such topic yet."""
        topic = self._places[0].topic
        found = self._consumer.list_topics(timeout=30).topics.get(topic)
        if found is None or len(found.partitions) < len(self._places):
            return 0
        return sum(self._consumer.get_watermark_offsets(one, 30)[1] for one in self._places)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def _engine(runner: str) -> str:
    return "spark" if runner == "spark" else "local"


def _file(path: Path, values: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(path)


def _kafka(directory: Path, main_class: str, *files: str) -> list[str]:
    log4j = directory / "log4j2.properties"
    log4j.write_text(LOG4J)
    options = ["-Xmx512m", f"-Dlog4j2.configurationFile={log4j}", "-cp", kafka_classpath()]
    return [java(), *options, main_class, *files]


def _ours(command: str, *files: str) -> list[str]:
    return [sys.executable, "-m", "barnabas", "connect", command, *files]


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[Running]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            start_new_session=True,
        )
    try:
        yield Running(process, log)
    finally:
        end_group(process)
