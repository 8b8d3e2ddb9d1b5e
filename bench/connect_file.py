"""Rows per second and memory of the file connectors: our worker, on both engines, and Kafka's.

    python -m bench.connect_file [--records 300000] [--only kafka|local|spark]

A standalone worker reads a file of lines of 100 bytes into a topic of one partition, and another
writes that topic into a file; converters are Kafka's String converter. All use the same node of
ours. The time is from the first record that is seen to the last, so that no start counts. Kafka's
worker has a heap of 512 MB. Memory is the peak of all processes of a worker.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.kafka_jars import java, kafka_classpath

NODE = """
import sys, barnabas
with barnabas.Cluster() as cluster:
    print(cluster.bootstrap_servers, flush=True)
    sys.stdin.read()
"""
STRING = "org.apache.kafka.connect.storage.StringConverter"
LINE = "x" * 99 + "\n"
WAIT_SECONDS = 300.0
LOOK_SECONDS = 0.02


def main() -> None:
    """Measure each worker once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--only", choices=("kafka", "local", "spark"))
    arguments = parser.parse_args()
    with (
        subprocess.Popen(
            [sys.executable, "-c", NODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as node,
        tempfile.TemporaryDirectory() as directory,
    ):
        assert node.stdout is not None
        assert node.stdin is not None
        servers = node.stdout.readline().strip()
        source = Path(directory, "source.txt")
        source.write_text(LINE * arguments.records)
        for kind in ("kafka", "local", "spark"):
            if arguments.only in (None, kind):
                _measure(kind, servers, Path(directory), source, arguments.records)
        node.stdin.close()


def _measure(kind: str, servers: str, directory: Path, source: Path, records: int) -> None:
    topic = f"lines-{kind}"
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    reader = {
        "name": f"source-{kind}",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(source),
        "topic": topic,
    }
    end = _end_of(servers, topic)
    _run(kind, servers, directory, reader, end, records)
    target = directory / f"target-{kind}.txt"
    writer = {
        "name": f"sink-{kind}",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": str(target),
        "topics": topic,
    }

    def lines() -> int:
        return target.stat().st_size // len(LINE) if target.exists() else 0

    _run(kind, servers, directory, writer, lines, records)


def _end_of(servers: str, topic: str) -> Callable[[], int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench", "log_level": 2})

    def end() -> int:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1])

    return end


def _run(
    kind: str,
    servers: str,
    directory: Path,
    connector: Mapping[str, str],
    seen: Callable[[], int],
    records: int,
) -> None:
    name = connector["name"]
    worker = {
        "bootstrap.servers": servers,
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.storage.file.filename": str(directory / f"{name}.offsets"),
        "offset.flush.interval.ms": "1000",
        "listeners": "http://127.0.0.1:0",
        "barnabas.connect.engine": kind,
    }
    with _worker(kind, directory, name, worker, connector) as process:
        first_time, first, last_time, last, memory = 0.0, 0, 0.0, 0, 0
        deadline = time.monotonic() + WAIT_SECONDS
        looked = 0.0
        while last < records:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((directory / f"{name}.log").read_text()[-3000:])
            count, now = seen(), time.monotonic()
            if count and not first:
                first_time, first = now, count
            if count > last:
                last_time, last = now, count
            if now - looked > 1.0 or last >= records:
                looked, memory = now, max(memory, _memory(process.pid))
            time.sleep(LOOK_SECONDS)
    rate = (last - first) / max(last_time - first_time, LOOK_SECONDS)
    what = name.split("-")[0]
    print(f"{kind:6} {what:6} {rate:>9,.0f} rows/s {memory >> 20:>6,} MB", flush=True)


@contextmanager
def _worker(
    kind: str,
    directory: Path,
    name: str,
    worker: Mapping[str, str],
    connector: Mapping[str, str],
) -> Iterator[subprocess.Popen[bytes]]:
    files = []
    for what, values in (("worker", worker), ("connector", connector)):
        path = directory / f"{name}.{what}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        files.append(str(path))
    if kind == "kafka":
        main_class = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [java(), "-Xmx512m", "-cp", kafka_classpath(), main_class, *files]
    else:
        command = [sys.executable, "-m", "barnabas", "connect", "start", *files]
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=directory, env={**os.environ}
        )
    try:
        yield process
    finally:
        family = []
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for one in family:
            if one.is_running():
                one.kill()


def _memory(pid: int) -> int:
    total = 0
    for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        try:
            total += one.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


if __name__ == "__main__":
    main()
