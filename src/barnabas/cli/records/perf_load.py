"""The loads of `barnabas perf`: records that are sent at a rate, records that are read."""

import math
import random
import time
import uuid
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.kafka.partitioners import JAVA_PARTITIONER

FULL_QUEUE_WAIT_S = 0.01
POLL_EVERY = 64
"""Records between looks at acknowledgements."""
TRANSACTION_MS = 3000
POOL_SIZE_BYTES = 1 << 20
BATCH_MAX = 10_000
POLL_S = 0.1
Report = Callable[[str], None]


class Payloads:
    """Values of records; `next` makes that of record `number`."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        self.next = make

    @classmethod
    def random(cls, size_bytes: int) -> "Payloads":
        """Values of random capital letters."""
        chosen = random.Random(0)
        pool = bytes(chosen.choices(range(65, 91), k=size_bytes + POOL_SIZE_BYTES))
        start_max = POOL_SIZE_BYTES

        def make(_: int) -> bytes:
            start = int(chosen.random() * start_max)
            return pool[start : start + size_bytes]

        return cls(make)

    @classmethod
    def of_file(cls, path: str, delimiter: str) -> "Payloads":
        """Values from a file, each time any of them. Raises CliError for an empty file."""
        with open(path, "rb") as file:
            content = file.read()
        values = [value for value in content.split(delimiter.encode()) if value]
        if not values:
            raise CliError(f"{path}: there are no values in it", ExitCode.USAGE)
        chosen = random.Random(0)
        return cls(lambda _: chosen.choice(values))

    @classmethod
    def numbers(cls) -> "Payloads":
        """The number of each record in decimal."""
        return cls(lambda number: b"%d" % number)


class Load:
    """Sends records to one topic and measures them."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        transactional_id: str | None,
        transaction_duration_ms: int | None,
        report: Report | None,
        interval_ms: int,
    ) -> None:
        from confluent_kafka import KafkaException, Producer

        self._topic = topic
        self._timeout_s = connection.timeout_s
        self._report = report
        self._interval_s = interval_ms / 1000
        self._failure: Any = None
        self._steady: Stats | None = None
        """Of the records after those that warm up."""
        config: dict[str, Any] = {"acks": "all", **JAVA_PARTITIONER, **connection.config}
        name = transactional_id or config.get("transactional.id")
        if name is None and transaction_duration_ms is not None:
            name = f"performance-producer-{uuid.uuid4()}"
        if name is not None:
            config["transactional.id"] = name
        self._transaction_s: float | None = None
        if name is not None:
            self._transaction_s = (transaction_duration_ms or TRANSACTION_MS) / 1000
        settings = connection.client_config(**config)
        try:
            self._producer = Producer(settings)
        except KafkaException as error:
            raise from_kafka(error) from error

    def run(
        self, count: int, make: Callable[[int], bytes], throughput: float, warmup: int
    ) -> dict[str, Any]:
        """Send `count` records, at most `throughput` a second if that is above 0.

        Returns the figures of all; with `warmup` those of the rest too. Raises CliError for the
        first record that is refused.
        """
        from confluent_kafka import KafkaException

        try:
            return self._run(count, make, throughput, warmup)
        except KafkaException as error:
            raise from_kafka(error, self._topic) from error

    def _run(
        self, count: int, make: Callable[[int], bytes], throughput: float, warmup: int
    ) -> dict[str, Any]:
        clock = time.perf_counter
        if self._transaction_s is not None:
            self._producer.init_transactions(self._timeout_s)
        transactions = 0
        began_s = clock()
        self._all = Stats(count, began_s)
        self._interval = Stats(count, began_s)
        self._warmup = warmup
        self._count = count
        self._reported_s = began_s
        commit_at_s = 0.0
        for number in range(count):
            if self._transaction_s is not None:
                if number and clock() >= commit_at_s:
                    self._commit()
                if number == 0 or clock() >= commit_at_s:
                    self._producer.begin_transaction()
                    transactions += 1
                    commit_at_s = clock() + self._transaction_s
            self._send(make(number))
            if number % POLL_EVERY == 0:
                self._look(0)
            if throughput > 0:
                self._wait_until(began_s + (number + 1) / throughput)
        if self._transaction_s is not None:
            self._commit()
        self._drain()
        now_s = clock()
        result = self._all.figures(now_s)
        if transactions:
            result["transactions"] = transactions
        if self._steady is not None:
            result["steady_state"] = self._steady.figures(now_s)
        return result

    def _commit(self) -> None:
        self._drain()
        self._producer.commit_transaction(self._timeout_s)

    def _drain(self) -> None:
        """Wait for all acknowledgements, as long as some come. Raises CliError."""
        known, since_s = self._all.records, time.perf_counter()
        while left := len(self._producer):
            self._look(POLL_S)
            if self._all.records != known:
                known, since_s = self._all.records, time.perf_counter()
            elif time.perf_counter() - since_s > self._timeout_s:
                raise CliError(
                    f"{self._topic}: {left} records not acknowledged", ExitCode.UNREACHABLE
                )

    def _send(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, on_delivery=self._delivered)
                return
            except BufferError:
                self._look(FULL_QUEUE_WAIT_S)

    def _wait_until(self, moment_s: float) -> None:
        while True:
            left_s = moment_s - time.perf_counter()
            if left_s <= 0:
                return
            self._look(left_s)

    def _look(self, wait_s: float) -> None:
        """Take acknowledgements for so long, and report if it is time."""
        self._producer.poll(wait_s)
        self._stop_at_failure()
        now_s = time.perf_counter()
        if self._report is not None and now_s - self._reported_s >= self._interval_s:
            self._report(summary_line(self._interval.figures(now_s, with_percentiles=False)))
            self._interval = Stats(self._count, now_s)
            self._reported_s = now_s

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or error
            return
        latency_ms, size_bytes = (message.latency() or 0.0) * 1000, len(message)
        self._all.add(latency_ms, size_bytes)
        self._interval.add(latency_ms, size_bytes)
        if self._steady is not None:
            self._steady.add(latency_ms, size_bytes)
        elif self._warmup and self._all.records == self._warmup:
            self._steady = Stats(self._count, time.perf_counter())

    def _stop_at_failure(self) -> None:
        if self._failure is not None:
            known = from_kafka(self._failure, self._topic)
            known.hint = f"{self._all.records} records were acknowledged before"
            raise known


def read(
    connection: Connection,
    topic: str,
    count: int,
    *,
    group: str | None,
    reset: str,
    fetch_size_bytes: int,
    report: Report | None,
    interval_ms: int,
) -> dict[str, Any]:
    """Read `count` records in a group and return the figures; fewer where no more come.

    `rebalance_ms` is the time without partitions. Raises CliError.
    """
    from confluent_kafka import Consumer, KafkaException

    clock = time.perf_counter
    began_s = without_s = clock()
    rebalance_s = 0.0
    assigned = False

    def on_assign(_: Any, __: Any) -> None:
        nonlocal rebalance_s, assigned
        if not assigned:
            assigned = True
            rebalance_s += clock() - without_s

    def on_revoke(_: Any, __: Any) -> None:
        nonlocal without_s, assigned
        assigned = False
        without_s = clock()

    settings = connection.client_config(
        **{
            "auto.offset.reset": reset,
            "max.partition.fetch.bytes": fetch_size_bytes,
            # A group of one run leaves nothing behind.
            "enable.auto.commit": group is not None,
            "group.id": group or f"perf-consumer-{uuid.uuid4().hex[:8]}",
            **connection.config,
        }
    )
    records = size_bytes = 0
    last_s = reported_s = began_s
    reported = (0, 0)
    try:
        consumer = Consumer(settings)
    except KafkaException as error:
        raise from_kafka(error) from error
    try:
        consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        while records < count and clock() - last_s < connection.timeout_s:
            for message in consumer.consume(min(BATCH_MAX, count - records), POLL_S):
                failure = message.error()
                if failure is not None:
                    if failure.retriable() or (failure.code() < 0 and not failure.fatal()):
                        continue
                    raise from_kafka(failure, topic)
                records += 1
                size_bytes += len(message.value() or b"") + len(message.key() or b"")
                last_s = clock()
            now_s = clock()
            if report is not None and now_s - reported_s >= interval_ms / 1000:
                part = (records - reported[0], size_bytes - reported[1])
                report(consumed_line(_rates(*part, now_s - reported_s)))
                reported, reported_s = (records, size_bytes), now_s
    finally:
        consumer.close()
    elapsed_s = last_s - began_s
    fetching = _rates(records, size_bytes, elapsed_s - rebalance_s)
    return {
        **_rates(records, size_bytes, elapsed_s),
        "size_bytes": size_bytes,
        "elapsed_ms": round(elapsed_s * 1000),
        "rebalance_ms": round(rebalance_s * 1000),
        "fetch_ms": round((elapsed_s - rebalance_s) * 1000),
        "fetch_records_per_s": fetching["records_per_s"],
        "fetch_mb_per_s": fetching["mb_per_s"],
    }


def _rates(records: int, size_bytes: int, elapsed_s: float) -> dict[str, Any]:
    elapsed_s = max(elapsed_s, 1e-3)
    return {
        "records": records,
        "records_per_s": round(records / elapsed_s, 1),
        "mb_per_s": round(size_bytes / elapsed_s / MB, 2),
    }


# Figures of a load: rates, and percentiles of latency from a bounded sample.


SAMPLE_MAX = 500_000
"""Latencies that are kept; with more records, every n-th."""
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
MB = 1024 * 1024
"""As Kafka's tools count."""


class Stats:
    """Counts and latencies of a load, or of one interval of it."""

    def __init__(self, expected: int, began_s: float) -> None:
        self._every = max(1, math.ceil(expected / SAMPLE_MAX))
        self._sample = array("d")
        self._sum_ms = 0.0
        self._max_ms = 0.0
        self._began_s = began_s
        self.records = 0
        self.size_bytes = 0

    def add(self, latency_ms: float, size_bytes: int) -> None:
        """Count one acknowledged record."""
        if self.records % self._every == 0:
            self._sample.append(latency_ms)
        self.records += 1
        self.size_bytes += size_bytes
        self._sum_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)

    def figures(self, now_s: float, *, with_percentiles: bool = True) -> dict[str, Any]:
        """The figures until `now_s`; latencies in milliseconds."""
        elapsed_s = max(now_s - self._began_s, 1e-9)
        latency = {
            "avg": round(self._sum_ms / self.records, 2) if self.records else 0.0,
            "max": round(self._max_ms, 2),
        }
        if with_percentiles:
            latency.update(percentiles(self._sample))
        return {
            "records": self.records,
            "records_per_s": round(self.records / elapsed_s, 1),
            "mb_per_s": round(self.size_bytes / elapsed_s / MB, 2),
            "elapsed_ms": round(elapsed_s * 1000),
            "latency_ms": latency,
        }


def percentiles(sample: Sequence[float]) -> dict[str, float]:
    """The percentiles of a sample, by name; 0 of none."""
    ordered = sorted(sample)
    if not ordered:
        return dict.fromkeys(PERCENTILES, 0.0)
    return {
        name: round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 2)
        for name, share in PERCENTILES.items()
    }


def summary_line(figures: dict[str, Any]) -> str:
    """One line about a load or an interval of it, in the order of Kafka's tool."""
    latency = figures["latency_ms"]
    parts = [
        f"{figures['records']} records sent",
        f"{figures['records_per_s']:.1f} records/sec ({figures['mb_per_s']:.2f} MB/sec)",
        f"{latency['avg']:.1f} ms avg latency",
        f"{latency['max']:.1f} ms max latency",
    ]
    parts += [
        f"{latency[name]:.1f} ms {share * 100:g}th"
        for name, share in PERCENTILES.items()
        if name in latency
    ]
    return ", ".join(parts)


def consumed_line(figures: dict[str, Any]) -> str:
    """One line about records that were read."""
    text = (
        f"{figures['records']} records read, "
        f"{figures['records_per_s']:.1f} records/sec ({figures['mb_per_s']:.2f} MB/sec)"
    )
    if "rebalance_ms" in figures:
        text += (
            f", {figures['rebalance_ms']} ms until partitions were assigned, then "
            f"{figures['fetch_records_per_s']:.1f} records/sec "
            f"({figures['fetch_mb_per_s']:.2f} MB/sec)"
        )
    return text
