"""How late the demo's results come at its own rate, and how much CPU each of its processes takes.

    python -m bench.demo_latency [seconds]

It runs `barnabas demo`, asks its SQL server ten times a second how far the statements have read,
and its broker how far the Python pipeline's ranking has, and compares with when each event was
published: records' own timestamps. A statement has read what is in its result topic. The first
half of the run is left out: Java compiles meanwhile. Processor time is that of the last quarter, in
which nothing is asked: answers cost the SQL server time, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.dashboard.groups import Place, committed_offsets
from barnabas.demo.dashboard.monitors import described
from barnabas.demo.topics import INPUT_TOPICS, RECOMMENDATIONS_GROUP, USER_ACTIVITY
from barnabas.sql.shell.client import Context, KsqlClient
from barnabas.sql.shell.errors import ShellError
from bench.measure import cpu_seconds

_LOOK_SECONDS = 0.1
_QUESTION = "SHOW TABLES EXTENDED;"


class PublishTimes(threading.Thread):
    """Notes when each record of the input topics was published."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.of: dict[Place, list[float]] = defaultdict(list)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
        )
        self.start()

    def run(self) -> None:
        self._consumer.assign(
            [TopicPartition(t, p, 0) for t in INPUT_TOPICS for p in range(TOPIC_PARTITIONS[t])]
        )
        while True:
            for message in self._consumer.consume(500, 0.1):
                if message.error() is None:
                    place = str(message.topic()), int(message.partition() or 0)
                    self.of[place].append(message.timestamp()[1] / 1000)


class Latencies:
    """By reader, how long after its publishing each event was processed."""

    def __init__(self, times: PublishTimes) -> None:
        self._times = times
        self._reached: dict[tuple[str, Place], int] = defaultdict(int)
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def note(self, reader: str, offsets: dict[Place, int], *, counts: bool) -> None:
        now = time.time()
        for place, offset in offsets.items():
            before = self._reached[reader, place]
            self._reached[reader, place] = max(before, offset)
            if counts:
                published = self._times.of[place][before:offset]
                self.seconds[reader] += [now - then for then in published]


def measure(directory: Path, demo: subprocess.Popen[bytes], seconds: int) -> None:
    """Look at a demo from its first event on."""
    settings = json.loads(wait_for(directory / "demo.json", demo))
    bootstrap = f"127.0.0.1:{settings['broker_ports'][0]}"
    wait_for(directory / "generators" / "truth.json", demo)
    client = KsqlClient(f"http://127.0.0.1:{settings['sql_port']}")
    group = Consumer({"bootstrap.servers": bootstrap, "group.id": RECOMMENDATIONS_GROUP})
    places = [(USER_ACTIVITY, partition) for partition in range(TOPIC_PARTITIONS[USER_ACTIVITY])]
    latencies = Latencies(PublishTimes(bootstrap))
    began = time.monotonic()
    while time.monotonic() - began < seconds * 3 / 4:
        time.sleep(_LOOK_SECONDS)
        counts = time.monotonic() - began > seconds / 2
        try:
            answers = client.statement(_QUESTION, Context({}, {}))
        except ShellError:
            continue
        for status, offsets in described(answers):
            latencies.note(status.name, offsets, counts=counts)
        latencies.note(RECOMMENDATIONS_GROUP, committed_offsets(group, places), counts=counts)
    before, before_at = cpu_by_part(directory), time.monotonic()
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    after, span = cpu_by_part(directory), time.monotonic() - before_at
    for reader, found in sorted(latencies.seconds.items()):
        ordered = sorted(found)
        shares = [ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99)]
        shown = "  ".join(f"{value:5.2f}" for value in (*shares, ordered[-1]))
        sys.stdout.write(f"{reader:22} {shown}  s (p50, p95, p99, most; {len(ordered)} events)\n")
    for part, used in sorted(after.items()):
        share = 100 * (used - before.get(part, 0.0)) / span
        sys.stdout.write(f"{part:22} {share:5.0f} % of a core\n")


def cpu_by_part(directory: Path) -> dict[str, float]:
    """CPU seconds so far of each part, with all its processes."""
    found = {}
    for path in (directory / "pids").glob("*.pid"):
        leader = int(json.loads(path.read_text())["pid"])
        members = (int(name) for name in os.listdir("/proc") if name.isdigit())
        found[path.stem] = sum(cpu_of(pid) for pid in members if session_of(pid) == leader)
    return found


def session_of(pid: int) -> int:
    """Return a process's session, 0 if it has ended: Spark's workers leave their part's group."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def cpu_of(pid: int) -> float:
    """Return CPU seconds of a process, 0 if it has ended."""
    try:
        return cpu_seconds(pid)
    except FileNotFoundError:
        return 0.0


def wait_for(path: Path, demo: subprocess.Popen[Any]) -> str:
    """Return a file's content once it is there."""
    while not path.exists():
        if demo.poll() is not None:
            raise SystemExit("the demo ended before its time")
        time.sleep(_LOOK_SECONDS)
    return path.read_text()


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "demo"
        command = [sys.executable, "-m", "barnabas", "demo", "--json"]
        command += ["--directory", str(directory), "--seconds", str(seconds)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as demo:
            measure(directory, demo, seconds)
            sys.stdout.write(f"exit code {demo.wait()}\n")


if __name__ == "__main__":
    main()
