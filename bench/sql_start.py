"""Where the time goes from the start of a SQL server on Spark to the first result of a statement.

    python -m bench.sql_start [--wait seconds] [--runs n] [--every seconds] [--setting key=value]…

A windowed count over a topic of 50,000 records, on a node that runs already. The statement is sent
`--wait` seconds after the server listens. A run prints when what happened, and the processor time
of each part between these events: of the server, of Spark's JVM by its threads, of the daemon that
forks Spark's Python workers, and of these. With `--every` also for each such interval: what runs
at the same time, and where a core idles. Processor time depends far less than the clock on what
else a machine does; the last lines have the medians of all runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.measure import TICKS_PER_SECOND, session_processes
from bench.queries.engines import SqlServer
from bench.queries.workloads import QuerySession, Reader, query_session
from bench.settings import Settings

_SAMPLE_SECONDS: Final = 0.05
_RECORDS: Final = 50_000
_LEAST_SECONDS: Final = 0.05
"""Parts that used less are not printed."""
_DAEMON: Final = "workers' daemon"
_WORKERS: Final = "workers"
_SERVER: Final = "server"
_OTHERS: Final = "other processes"
_JVM: Final = "JVM"
_THREADS: Final = {
    "C1 CompilerThre": "C1",
    "C2 CompilerThre": "C2",
    "VM Thread": "GC and VM",
    "stream executio": "micro-batches",
    "Executor task l": "tasks",
    "stdout writer f": "rows to Python",
    "Thread-": "calls from Python",
    "java": "main",
    "main": "main",
}
"""By the beginning of a thread's name, which Linux cuts after 15 characters, its part."""


@dataclass(slots=True, frozen=True)
class Sample:
    """The ticks of processor time that each part had used at a time."""

    at: float
    used: Counter[str]


class Sampler:
    """Looks again and again at the processes of a session, in a thread, until `end`."""

    def __init__(self, leader: int) -> None:
        self.samples: list[Sample] = []
        self.first_seen: dict[str, float] = {}
        """When a part was there for the first time."""
        self._leader = leader
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look a last time."""
        self._ended.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        at = time.monotonic()
        used: Counter[str] = Counter()
        for pid in session_processes(self._leader):
            # It may end in between.
            with suppress(FileNotFoundError, ProcessLookupError):
                self._take(pid, used)
        for part in used:
            self.first_seen.setdefault(part.partition(":")[0], at)
        self.samples.append(Sample(at, used))

    def _take(self, pid: int, used: Counter[str]) -> None:
        place = Path(f"/proc/{pid}")
        name, parent, own, of_children = _stat(place)
        if pid == self._leader:
            used[_SERVER] += own + of_children
        elif name == "java":
            used[f"{_JVM}: ended threads"] += own - self._take_threads(place, used)
            used[_OTHERS] += of_children
        elif b"worker_daemon" in (place / "cmdline").read_bytes():
            is_worker = b"worker_daemon" in Path(f"/proc/{parent}/cmdline").read_bytes()
            used[_WORKERS if is_worker else _DAEMON] += own
            used[_WORKERS] += of_children
        else:
            used[_OTHERS] += own + of_children

    @staticmethod
    def _take_threads(place: Path, used: Counter[str]) -> int:
        total = 0
        for thread in (place / "task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                name, _, ticks, _ = _stat(thread)
                parts = (part for start, part in _THREADS.items() if name.startswith(start))
                used[f"{_JVM}: {next(parts, 'other threads')}"] += ticks
                total += ticks
        return total


def _stat(place: Path) -> tuple[str, int, int, int]:
    """The name of a process or thread, its parent, and the ticks that it and its ended children
    have used."""
    before, _, after = (place / "stat").read_text().rpartition(")")
    fields = after.split()
    user, system, children_user, children_system = map(int, fields[11:15])
    name = before.partition("(")[2]
    return name, int(fields[1]), user + system, children_user + children_system


class SampledServer(SqlServer):
    """A server whose processes are looked at from its start on."""

    sampler: Sampler
    began: float

    def _start(self, command: list[str]) -> None:
        self.began = time.monotonic()
        super()._start(command)
        self.sampler = Sampler(self.pid)


@dataclass(slots=True, frozen=True)
class Run:
    """What was seen of a start: its events in their order, and the samples between them."""

    events: dict[str, float]
    samples: Sequence[Sample]

    def between(self, first: float, until: float) -> dict[str, float]:
        """The seconds that each part has used between two times."""
        before = [sample.used for sample in self.samples if sample.at <= first]
        after = [sample.used for sample in self.samples if sample.at <= until]
        used: Counter[str] = Counter(after[-1] if after else {})
        used.subtract(before[-1] if before else {})
        return {part: ticks / TICKS_PER_SECOND for part, ticks in used.most_common()}


def measure(session: QuerySession, directory: Path, wait_seconds: float) -> Run:
    """Start a server, send a statement, and end the server after its first result."""
    with SampledServer(directory, session.access) as server:
        events = {"start": server.began, "the server listens": time.monotonic()}
        time.sleep(wait_seconds)
        job = session.job(server, "count")
        reader = Reader(session, job)
        try:
            events["the statement is sent"] = time.monotonic()
            server.run(job)
            events["the statement is answered"] = time.monotonic()
            reader.await_covered(server, 1, session.settings.timeout_seconds)
            events["the first result"] = time.monotonic()
        finally:
            reader.close()
        server.sampler.end()
        for part in (_JVM, _DAEMON, _WORKERS):
            if part in server.sampler.first_seen:
                events[f"{part} started"] = server.sampler.first_seen[part]
        ordered = dict(sorted(events.items(), key=lambda event: event[1]))
        return Run(ordered, server.sampler.samples)


def _print_run(run: Run, every_seconds: float | None) -> None:
    names, times = list(run.events), list(run.events.values())
    for at in range(1, len(times)):
        sys.stdout.write(f"{times[at] - times[0]:6.2f} s  {names[at]}\n")
        _print_used(run.between(times[at - 1], times[at]))
    if every_seconds:
        first = times[0]
        while first < times[-1]:
            until = min(first + every_seconds, times[-1])
            used = run.between(first, until)
            cores = sum(used.values()) / (until - first)
            parts = ", ".join(f"{part} {of:.2f}" for part, of in list(used.items())[:6] if of)
            sys.stdout.write(f"{first - times[0]:6.2f} s  {cores:.1f} cores: {parts}\n")
            first = until
    sys.stdout.flush()


def _print_used(used: Mapping[str, float]) -> None:
    parts = (f"{part} {of:.2f}" for part, of in used.items() if of >= _LEAST_SECONDS)
    sys.stdout.write(f"          CPU {sum(used.values()):.2f} s: {', '.join(parts)}\n")


def _print_medians(runs: Sequence[Run]) -> None:
    sys.stdout.write(f"\nMedians of {len(runs)} runs, from the start to the first result:\n")
    whole = [run.between(run.events["start"], run.events["the first result"]) for run in runs]
    total = statistics.median(sum(used.values()) for used in whole)
    sys.stdout.write(f"    {'all':28} {total:6.2f} s of CPU\n")
    for part in sorted({part for used in whole for part in used}):
        seconds = statistics.median(used.get(part, 0) for used in whole)
        if seconds >= _LEAST_SECONDS:
            sys.stdout.write(f"    {part:28} {seconds:6.2f}\n")
    for name, since in (
        ("the first result", "start"),
        ("the first result", "the statement is sent"),
    ):
        took = statistics.median(run.events[name] - run.events[since] for run in runs)
        sys.stdout.write(f"    from {since} to {name}: {took:.2f} s\n")


def main() -> None:
    """Print what each run has shown, and the medians."""
    parser = argparse.ArgumentParser(prog="python -m bench.sql_start")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds, once the server listens")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", type=float, help="seconds: a line for each such interval")
    parser.add_argument("--setting", action="append", default=[], help="of the SQL server")
    arguments = parser.parse_args()
    SqlServer.settings.update(one.split("=", 1) for one in arguments.setting)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        settings = replace(Settings(), directory=directory)
        with query_session(settings) as session:
            session.append(_RECORDS)()
            runs = []
            for number in range(arguments.runs):
                run = measure(session, directory / "server", arguments.wait)
                sys.stdout.write(f"\nRun {number + 1}:\n")
                _print_run(run, arguments.every)
                runs.append(run)
        _print_medians(runs)


if __name__ == "__main__":
    main()
