"""A topic mirrored from one cluster to another, by our mirror on both engines and by Kafka's.

Both clusters are one node of ours each. Records have 1000 bytes, the topic has three partitions.
The plain driver is one loop of confluent-kafka that reads there and writes here.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.connectors.latency import latencies
from bench.connectors.workers import RUNNERS, TopicEnd, in_turn, mirror, rate
from bench.settings import MEGABYTE, Settings
from bench.wire import make_topic

Figures = dict[str, dict[str, float]]
_SIZE_BYTES: Final = 1000
_PARTITIONS: Final = 3
_FILE: Final = {
    **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "offset.flush.interval.ms": "1000",
}


def mirror_round(
    source: int, target: int, directory: Path, settings: Settings, number: int
) -> Figures:
    """Measure each runner, and the plain driver; `source` and `target` are ports."""
    records = settings.connect_mirror_records
    figures: Figures = {}
    make_topic(source, "mirrored", _PARTITIONS)
    _fill(source, "mirrored", records)
    figures["driver"] = {"connect_mirror_mb_s": _driver(source, target, records)}
    for runner in in_turn(RUNNERS, number):
        figures[runner] = _measure(runner, source, target, directory, settings)
    return figures


def _measure(
    runner: str, source: int, target: int, directory: Path, settings: Settings
) -> dict[str, float]:
    # Each runner has its own name for the source, so that the copies are not each other's.
    topic, live, target_servers = "mirrored", f"live-{runner}", f"127.0.0.1:{target}"
    make_topic(source, live, 1)
    file = {
        **_FILE,
        "clusters": f"{runner}, there",
        f"{runner}.bootstrap.servers": f"127.0.0.1:{source}",
        "there.bootstrap.servers": target_servers,
        f"{runner}->there.enabled": "true",
        f"{runner}->there.topics": f"{topic}, {live}",
        f"there->{runner}.emit.heartbeats.enabled": "false",
    }
    end = TopicEnd(target_servers, f"{runner}.{topic}", _PARTITIONS)
    live_end = TopicEnd(target_servers, f"{runner}.{live}")
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{source}", "linger.ms": 0})
    padding = b" " * (_SIZE_BYTES - 20)

    def change(now_us: int) -> None:
        producer.produce(live, b"%020d%s" % (now_us, padding), partition=0)
        producer.poll(0)

    with mirror(runner, directory, file) as running:
        records = settings.connect_mirror_records
        rows_s = rate(running, end, records, settings.timeout_seconds)
        change(0)  # so that it is known to be mirrored
        rate(running, live_end, 1, settings.timeout_seconds)
        middle, high = latencies(
            running,
            target_servers,
            f"{runner}.{live}",
            change,
            lambda value: int(value[:20]) / 1e6,
            settings.connect_seconds,
        )
        memory_mb = running.memory_mb
    producer.flush()
    for one in (end, live_end):
        one.close()
    return {
        "connect_mirror_mb_s": rows_s * _SIZE_BYTES / MEGABYTE,
        "connect_mirror_p50_ms": middle,
        "connect_mirror_p99_ms": high,
        "connect_mirror_mb": memory_mb,
    }


def _fill(port: int, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 20})
    value = bytes(range(250)) * (_SIZE_BYTES // 250)
    for number in range(records):
        _send(producer, topic, value, number % _PARTITIONS)
    producer.flush()


def _driver(source: int, target: int, records: int) -> float:
    make_topic(target, "driver.mirrored", _PARTITIONS)
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{source}", "group.id": "bench-driver"})
    consumer.assign([TopicPartition("mirrored", number, 0) for number in range(_PARTITIONS)])
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{target}",
            "enable.idempotence": True,
            "linger.ms": 5,
        }
    )
    count, began = 0, time.perf_counter()
    while count < records:
        for one in consumer.consume(10_000, 1.0):
            _send(producer, "driver.mirrored", one.value() or b"", one.partition() or 0)
            count += 1
    producer.flush()
    seconds = time.perf_counter() - began
    consumer.close()
    return records * _SIZE_BYTES / MEGABYTE / seconds


def _send(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition)
            return
        except BufferError:
            producer.poll(0.01)
