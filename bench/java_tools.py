"""Kafka's own performance tools, run against either server, and what they print."""

import re
import subprocess
from dataclasses import dataclass

from bench.kafka_jars import java, kafka_classpath

_PRODUCED = re.compile(
    r"(\d+) (steady state )?records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), "
    r"([\d.]+) ms avg latency, ([\d.]+) ms max latency, (\d+) ms 50th"
)


@dataclass(frozen=True, slots=True)
class Produced:
    """A run of ProducerPerformance after its warm-up."""

    records_per_second: float


class JavaTool:
    """A tool in a separate process; `wait` returns its output."""

    def __init__(self, main_class: str, *arguments: str) -> None:
        self._name = main_class.rpartition(".")[2]
        command = [java(), "-Xmx512m", "-cp", kafka_classpath(), main_class, *arguments]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait(self, timeout_seconds: float) -> str:
        """Its standard output. Raises RuntimeError if it fails or takes too long."""
        try:
            output, errors = self._process.communicate(timeout=timeout_seconds)
        except BaseException as error:
            self._process.kill()
            self._process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise RuntimeError(f"{self._name} took over {timeout_seconds:g} s") from error
            raise
        if self._process.returncode:
            raise RuntimeError(f"{self._name} failed:\n{output[-2000:]}{errors[-2000:]}")
        return output


def producer(
    bootstrap: str,
    topic: str,
    records: int,
    record_size: int,
    warm_up: int,
    transaction_ms: int | None = None,
    **properties: object,
) -> JavaTool:
    """ProducerPerformance with the client's defaults (acks=all, idempotent, 16 KB batches).

    With `transaction_ms` it commits a transaction after each span of so many milliseconds.
    """
    settings = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
    return JavaTool(
        "org.apache.kafka.tools.ProducerPerformance",
        "--bootstrap-server", bootstrap,
        "--topic", topic,
        "--num-records", str(records),
        "--record-size", str(record_size),
        "--throughput", "-1",
        "--warmup-records", str(warm_up),
        *(["--transaction-duration-ms", str(transaction_ms)] if transaction_ms else []),
        *(["--command-property", *settings] if settings else []),
    )  # fmt: skip


def produced(output: str) -> Produced:
    """Return the last summary of ProducerPerformance. Raises RuntimeError if it printed none."""
    summaries = _PRODUCED.findall(output)
    if not summaries:
        raise RuntimeError(f"ProducerPerformance printed no summary:\n{output[-2000:]}")
    return Produced(records_per_second=float(summaries[-1][2]))


def consume(bootstrap: str, topic: str, records: int, timeout_seconds: float) -> float:
    """ConsumerPerformance from the start of `topic`; MB/s (10^6) without the time of joining.

    Raises RuntimeError if it read fewer records.
    """
    tool = JavaTool(
        "org.apache.kafka.tools.ConsumerPerformance",
        "--bootstrap-server", bootstrap,
        "--topic", topic,
        "--num-records", str(records),
        "--hide-header",
        "--timeout", "30000",
    )  # fmt: skip
    output = tool.wait(timeout_seconds)
    rows = [line.split(", ") for line in output.splitlines() if line.count(", ") >= 9]
    if not rows:
        raise RuntimeError(f"ConsumerPerformance printed no summary:\n{output[-2000:]}")
    # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch rec/s
    row = rows[-1]
    if int(row[4]) < records:
        raise RuntimeError(f"ConsumerPerformance read {row[4]} of {records} records")
    return float(row[8]) * 1024 * 1024 / 1e6


def share_consume(
    bootstrap: str, topic: str, group: str, records: int, timeout_seconds: float
) -> float:
    """ShareConsumerPerformance: one member of a share group; MB/s (10^6), its joining included.

    Raises RuntimeError if it read fewer records.
    """
    tool = JavaTool(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        "--bootstrap-server", bootstrap,
        "--topic", topic,
        "--group", group,
        "--num-records", str(records),
        "--hide-header",
        "--timeout", "30000",
    )  # fmt: skip
    output = tool.wait(timeout_seconds)
    rows = [line.split(", ") for line in output.splitlines() if line.count(", ") >= 6]
    if not rows:
        raise RuntimeError(f"ShareConsumerPerformance printed no summary:\n{output[-2000:]}")
    # start, end, MB, MB/s, records/s, records, ms
    row = rows[-1]
    if int(row[5]) < records:
        raise RuntimeError(f"ShareConsumerPerformance read {row[5]} of {records} records")
    return float(row[3]) * 1024 * 1024 / 1e6
