"""What an event costs in a SQL query, or in another engine: processor time of all processes.

    python -m bench.query_cpu [filter|count|…]… [--engine barnabas|streams|spark|flink]
                              [--records n] [--rounds n] [--exactly-once] [--threads]
                              [--setting key=value]…

The jobs of `make bench ARGS="--only query"`, records from a topic to a topic. A round appends its
records at once, waits until the results cover them, and divides what each process has used by
their number. Processor time depends far less than the clock on what else a machine does. The median
of the rounds counts; the first one, in which the JVM compiles, does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.measure import TICKS_PER_SECOND, session_processes
from bench.queries.engines import Engine, SqlServer
from bench.queries.jobs import KINDS
from bench.queries.run import ENGINES, RIVALS, engine_of
from bench.queries.workloads import COMMITTED_SECONDS, QuerySession, Reader, query_session
from bench.settings import Settings

_JAVA: Final = "java"
_DIGITS: Final = "0123456789-#"


def ticks_by_part(broker: int, engine: int, *, threads: bool) -> Counter[str]:
    """Ticks that the broker and each kind of process of the engine have used so far."""
    found: Counter[str] = Counter()
    for pid in session_processes(broker):
        found["broker"] += _used(Path(f"/proc/{pid}"))[1]
    for pid in session_processes(engine):
        with suppress(FileNotFoundError, ProcessLookupError):
            name, ticks = _used(Path(f"/proc/{pid}"))
            part = "JVM" if name == _JAVA else "server" if pid == engine else "Python workers"
            found[part] += ticks
            if threads and part == "JVM":
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    name, ticks = _used(thread)
                    found[f"{part}: {name.split('.')[0].rstrip(_DIGITS).strip()}"] += ticks
    return found


def _used(path: Path) -> tuple[str, int]:
    """The name of a process or thread, and the ticks that it and its ended children have used."""
    before, _, after = (path / "stat").read_text().rpartition(")")
    ticks = after.split()[11:15]
    return before.partition("(")[2], sum(map(int, ticks[:2] if "task" in path.parts else ticks))


def microseconds_by_part(
    kind: str, engine: Engine, session: QuerySession, arguments: argparse.Namespace
) -> dict[str, float]:
    """The processor time of an event, by part: the median of the rounds."""
    job = session.job(engine, kind, is_exactly_once=arguments.exactly_once)
    timeout = session.settings.timeout_seconds
    session.append(arguments.records, kind)()
    reader = Reader(session, job)
    found: dict[str, list[float]] = defaultdict(list)
    try:
        engine.run(job)
        reader.await_covered(engine, session.total(kind), timeout)
        time.sleep(COMMITTED_SECONDS)
        for _ in range(arguments.rounds):
            write = session.append(arguments.records, kind)
            before = ticks_by_part(session.broker_pid, engine.pid, threads=arguments.threads)
            write()
            reader.await_covered(engine, session.total(kind), timeout)
            time.sleep(COMMITTED_SECONDS)
            after = ticks_by_part(session.broker_pid, engine.pid, threads=arguments.threads)
            for part, ticks in after.items():
                used = (ticks - before[part]) / TICKS_PER_SECOND
                found[part].append(used / arguments.records * 1e6)
    finally:
        reader.close()
        engine.end()
    return {part: statistics.median(values) for part, values in found.items()}


def main() -> None:
    """Print a table for each job."""
    parser = argparse.ArgumentParser(prog="python -m bench.query_cpu")
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(KINDS)}; without any all that it has")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="barnabas")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--exactly-once", action="store_true")
    parser.add_argument("--threads", action="store_true", help="of the JVM, by their names")
    parser.add_argument("--setting", action="append", default=[], help="of the SQL server")
    arguments = parser.parse_args()
    SqlServer.settings.update(one.split("=", 1) for one in arguments.setting)
    kinds = ENGINES[arguments.engine].kinds
    if unknown := set(arguments.kinds) - set(kinds):
        parser.error(f"{arguments.engine} has no job {min(unknown)}")
    if arguments.exactly_once and not ENGINES[arguments.engine].has_exactly_once:
        parser.error(f"{arguments.engine} does not write exactly once")
    if arguments.engine in RIVALS:
        RIVALS[arguments.engine].fetch()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        settings = replace(Settings(), directory=directory)
        with (
            query_session(settings) as session,
            engine_of(arguments.engine, directory / "engine", session) as engine,
        ):
            for kind in arguments.kinds or kinds:
                _print(kind, microseconds_by_part(kind, engine, session, arguments))


def _print(kind: str, found: dict[str, float]) -> None:
    parts = [part for part in found if ":" not in part]
    sys.stdout.write(f"{kind}: {sum(found[part] for part in parts):.2f} us of CPU an event\n")
    for part, used in sorted(found.items()):
        if ":" not in part or used >= 0.01:
            sys.stdout.write(f"    {part:30} {used:6.2f}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
