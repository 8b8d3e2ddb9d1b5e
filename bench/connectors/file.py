"""Lines of a file into a topic and back, by our worker on both engines and by Kafka's.

Lines have 100 bytes, topics one partition, converters are Kafka's String converter. The plain
driver is a loop over lines or records with confluent-kafka.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.connectors.latency import latencies
from bench.connectors.workers import RUNNERS, TopicEnd, connector, in_turn, rate
from bench.settings import Settings
from bench.wire import make_topic

Figures = dict[str, dict[str, float]]
_LINE: Final = "x" * 99 + "\n"
_PACKAGE: Final = "org.apache.kafka.connect.file."


def file_round(port: int, directory: Path, settings: Settings, number: int) -> Figures:
    """Measure each runner, and the plain driver."""
    servers = f"127.0.0.1:{port}"
    records = settings.connect_records
    source = directory / "source.txt"
    source.write_text(_LINE * records)
    figures = {"driver": _driver(port, directory, source, records)}
    for runner in in_turn(RUNNERS, number):
        figures[runner] = _measure(runner, port, servers, directory, source, settings)
    return figures


def _measure(
    runner: str, port: int, servers: str, directory: Path, source: Path, settings: Settings
) -> dict[str, float]:
    topic = f"lines-{runner}"
    make_topic(port, topic, 1)
    own = directory / f"source-{runner}.txt"
    own.write_bytes(source.read_bytes())
    reader = {
        "name": f"source-{runner}",
        "connector.class": f"{_PACKAGE}FileStreamSourceConnector",
        "file": str(own),
        "topic": topic,
    }
    end = TopicEnd(servers, topic)
    records, timeout_s = settings.connect_records, settings.timeout_seconds
    with connector(runner, directory, servers, reader) as running, own.open("a") as lines:
        read_s = rate(running, end, records, timeout_s)

        def append(now_us: int) -> None:
            lines.write(f"{now_us}\n")
            lines.flush()

        middle, high = latencies(
            running, servers, topic, append, _time_of, settings.connect_seconds
        )
        read_mb = running.memory_mb
    end.close()
    target = directory / f"target-{runner}.txt"
    writer = {
        "name": f"sink-{runner}",
        "connector.class": f"{_PACKAGE}FileStreamSinkConnector",
        "file": str(target),
        "topics": topic,
    }

    def written() -> int:
        return target.stat().st_size // len(_LINE) if target.exists() else 0

    with connector(runner, directory, servers, writer) as running:
        written_s = rate(running, written, records, timeout_s)
        written_mb = running.memory_mb
    return {
        "connect_file_source_s": read_s,
        "connect_file_source_p50_ms": middle,
        "connect_file_source_p99_ms": high,
        "connect_file_source_mb": read_mb,
        "connect_file_sink_s": written_s,
        "connect_file_sink_mb": written_mb,
    }


def _time_of(value: bytes) -> float | None:
    return int(value) / 1e6 if value.isdigit() else None


def _driver(port: int, directory: Path, source: Path, records: int) -> dict[str, float]:
    servers, topic = f"127.0.0.1:{port}", "lines-driver"
    make_topic(port, topic, 1)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
    began = time.perf_counter()
    with source.open("rb") as lines:
        for line in lines:
            while True:
                try:
                    producer.produce(topic, line.rstrip(b"\n"), partition=0)
                    break
                except BufferError:
                    producer.poll(0.01)
    producer.flush()
    read_s = records / (time.perf_counter() - began)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-driver"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count, began = 0, time.perf_counter()
    with (directory / "target-driver.txt").open("wb") as target:
        while count < records:
            messages = consumer.consume(10_000, 1.0)
            target.writelines((one.value() or b"") + b"\n" for one in messages)
            count += len(messages)
    written_s = records / (time.perf_counter() - began)
    consumer.close()
    return {"connect_file_source_s": read_s, "connect_file_sink_s": written_s}
