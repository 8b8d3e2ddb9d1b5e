"""How late the demo's results come at its own rate, and how much CPU each of its processes takes.

    python -m bench.demo_latency [seconds]

It runs `barnabas demo`, and reads its events and the tables of its statements as they come. A table
counts each event once, so the n-th event of a window and key is in the results when a row counts n.
When an event was published is its record's own timestamp. The ranking in Python is asked ten times
a second how far it has read. The first half of the run is left out, as Java still compiles.
Processor time is that of the last quarter, in which nothing is read.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Message, TopicPartition

from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.dashboard.groups import Place, committed_offsets
from barnabas.demo.reading import WINDOWED, AvroValues, read_row
from barnabas.demo.topics import (
    ACTIVITY_PER_MINUTE,
    CHARGING_EVENTS,
    ENERGY_PER_MINUTE,
    INPUT_TOPICS,
    RECOMMENDATIONS_GROUP,
    SQL_TOPICS,
    STATION_AVAILABILITY,
    STATION_STATUS,
    STATIONS,
    USER_ACTIVITY,
)
from barnabas.schemas.registry_client import RegistryClient
from bench.measure import cpu_seconds

_LOOK_SECONDS = 0.1
_TABLE_OF: Final = {
    USER_ACTIVITY: ACTIVITY_PER_MINUTE,
    CHARGING_EVENTS: ENERGY_PER_MINUTE,
    STATION_STATUS: STATION_AVAILABILITY,
}
_COUNTS: Final = {
    ACTIVITY_PER_MINUTE: ("events",),
    ENERGY_PER_MINUTE: ("readings", "charges_started", "charges_stopped", "faults"),
    STATION_AVAILABILITY: ("reports",),
}
"""The columns of a row that say how many events it has."""
_MISSING: Final = ", missing"
_STILL_COMING_SECONDS: Final = 4.0
Window = tuple[str, str, int]
"""A table, a key and the window's start."""


class Tables(threading.Thread):
    """Notes when events were published, and when rows of the tables came that have them.

    An event is published once more now and then; its first record counts.
    """

    def __init__(self, bootstrap: str, registry: str) -> None:
        super().__init__(daemon=True)
        self.published: dict[Window, list[float]] = defaultdict(list)
        self.rows: dict[Window, list[tuple[float, int]]] = defaultdict(list)
        """When a row came, and how many events it has."""
        self._known: set[str] = set()
        self._cities: dict[str, str] = {}
        self._values = AvroValues(RegistryClient((registry,)))
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self.is_over = threading.Event()
        self.start()

    def run(self) -> None:
        self._assign((STATIONS,))
        while not self._cities:
            self._take(self._consumer.consume(500, 0.5))
        self._assign((*INPUT_TOPICS, *SQL_TOPICS))
        while not self.is_over.is_set():
            self._take(self._consumer.consume(500, 0.02))
        self._consumer.close()

    def _assign(self, topics: Sequence[str]) -> None:
        self._consumer.assign(
            [TopicPartition(t, p, 0) for t in topics for p in range(TOPIC_PARTITIONS[t])]
        )

    def _take(self, messages: Sequence[Message]) -> None:
        now_s = time.time()
        for message in messages:
            topic, key, value = str(message.topic()), message.key(), message.value()
            if message.error() is not None or not isinstance(key, bytes) or value is None:
                continue
            if topic in _COUNTS:
                row = read_row(topic, key, value, self._values)
                assert row is not None, "the statements write what can be read"
                window = topic, row[WINDOWED[topic][0]], row["window_start_ms"]
                self.rows[window].append((now_s, sum(row[name] or 0 for name in _COUNTS[topic])))
                continue
            event = self._values.read(value)
            if event is None:  # the generators damage some
                continue
            if topic == STATIONS:
                self._cities[key.decode()] = event["city"]
            elif event["event_id"] not in self._known:
                self._known.add(event["event_id"])
                table = _TABLE_OF[topic]
                group = key.decode()
                if table == ACTIVITY_PER_MINUTE:
                    group = event["kind"]
                elif table == ENERGY_PER_MINUTE:
                    group = self._cities[group]
                size_ms = WINDOWED[table][1]
                start_ms = event["event_time_ms"] // size_ms * size_ms
                self.published[table, group, start_ms].append(message.timestamp()[1] / 1000)

    def latencies(self, from_s: float, until_s: float) -> dict[str, list[float]]:
        """By table, of the events that were published in a time."""
        found: dict[str, list[float]] = defaultdict(list)
        for window, times in self.published.items():
            counted = 0
            for came_s, count in self.rows[window]:
                for published_s in times[counted:count]:
                    if from_s <= published_s < until_s:
                        found[window[0]].append(came_s - published_s)
                counted = max(counted, count)
            lost = [one for one in times[counted:] if from_s <= one < until_s]
            found[window[0] + _MISSING] += lost
        return found


class Ranking(threading.Thread):
    """Notes how long after its publication the pipeline in Python has read each event."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.seconds: list[float] = []
        self._times: dict[Place, list[float]] = defaultdict(list)
        self._reached: dict[Place, int] = defaultdict(int)
        settings = {"bootstrap.servers": bootstrap, "enable.auto.commit": False, "log_level": 2}
        self._consumer = Consumer({**settings, "group.id": "bench"})
        self._group = Consumer({**settings, "group.id": RECOMMENDATIONS_GROUP})
        self._places = [
            (USER_ACTIVITY, number) for number in range(TOPIC_PARTITIONS[USER_ACTIVITY])
        ]
        self.is_over = threading.Event()
        self.start()

    def run(self) -> None:
        self._consumer.assign([TopicPartition(*place, 0) for place in self._places])
        while not self.is_over.is_set():
            for message in self._consumer.consume(500, 0.02):
                if message.error() is None:
                    place = USER_ACTIVITY, int(message.partition() or 0)
                    self._times[place].append(message.timestamp()[1] / 1000)
        self._consumer.close()
        self._group.close()

    def look(self, *, counts: bool) -> None:
        """Ask how far it has read."""
        now_s = time.time()
        for place, offset in committed_offsets(self._group, self._places).items():
            before = self._reached[place]
            self._reached[place] = max(before, offset)
            if counts:
                self.seconds += [now_s - then_s for then_s in self._times[place][before:offset]]


def measure(directory: Path, demo: subprocess.Popen[bytes], seconds: int) -> None:
    """Look at a demo from its first event on."""
    settings = json.loads(wait_for(directory / "demo.json", demo))
    bootstrap = f"127.0.0.1:{settings['broker_ports'][0]}"
    wait_for(directory / "generators" / "truth.json", demo)
    tables = Tables(bootstrap, f"http://127.0.0.1:{settings['registry_port']}")
    ranking = Ranking(bootstrap)
    began_s = time.time()
    half_s, last_s = began_s + seconds / 2, began_s + seconds * 3 / 4
    while time.time() < last_s:
        time.sleep(_LOOK_SECONDS)
        ranking.look(counts=time.time() > half_s)
    for thread in (tables, ranking):
        thread.is_over.set()
        thread.join()
    before, before_at_s = cpu_by_part(directory), time.time()
    time.sleep(max(0.0, began_s + seconds - time.time()))
    after, span_s = cpu_by_part(directory), time.time() - before_at_s
    # The last events may be in rows that came when nobody read them.
    found = tables.latencies(half_s, last_s - _STILL_COMING_SECONDS)
    for reader, latencies in sorted({**found, "recommendations": ranking.seconds}.items()):
        ordered = sorted(latencies)
        if reader.endswith(_MISSING):
            sys.stdout.write(f"{reader:32} {len(ordered)} events\n")
            continue
        shares = [ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99)]
        shown = "  ".join(f"{value:5.2f}" for value in (*shares, ordered[-1]))
        sys.stdout.write(f"{reader:22} {shown}  s (p50, p95, p99, most; {len(ordered)} events)\n")
    for part, used in sorted(after.items()):
        share = 100 * (used - before.get(part, 0.0)) / span_s
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
