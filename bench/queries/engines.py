"""The two engines that are always measured, Kafka Streams and our SQL server, and what all share.

Each runs in its own process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import httpx
import pyspark

from bench.ending import end_group
from bench.kafka_jars import java, kafka_classpath
from bench.measure import cpu_seconds, memory_megabytes, session_processes, wait_until
from bench.queries.jobs import (
    AVRO,
    AVRO_SOURCE,
    END,
    ENDED,
    KINDS,
    OTHER,
    SCHEMA,
    SOURCE,
    TABLE,
    Job,
)
from bench.server import free_ports
from bench.settings import ROOT

EXACTLY_ONCE: Final = "exactly_once_v2"
COMMIT_INTERVAL_MS: Final = 100
"""Of Kafka Streams, without its cache: the setting with which its results come soonest."""
START_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class EngineAccess:
    """The cluster and the registry of an engine. `schema_id`: of the values of `AVRO_SOURCE`."""

    bootstrap: str
    registry_url: str
    schema_id: int


class Engine(ABC):
    """Runs one job after the other. A context manager, which stops its processes."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = KINDS
    """The jobs that it can run."""
    has_exactly_once: ClassVar[bool] = True

    @classmethod  # noqa: B027  most need nothing
    def fetch(cls) -> None:
        """Have what it needs on this machine. Raises RuntimeError where that is not available."""

    def __init__(self, directory: Path, access: EngineAccess, cores: int | None = None) -> None:
        """With `cores` it runs on the first so many cores."""
        self.directory = directory
        self.cores = cores
        self._access = access
        self._prefix = ["taskset", "-c", f"0-{cores - 1}"] if cores else []
        self._process: subprocess.Popen[bytes] | None = None
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)

    @abstractmethod
    def run(self, job: Job) -> None:
        """Start a job; results need not come yet when this returns."""

    @abstractmethod
    def end(self) -> None:
        """End the job that runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def check_alive(self) -> None:
        """Raises RuntimeError with the end of the process's output if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            tail = self._output.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    @property
    def pid(self) -> int:
        """The process that leads the session of all its processes."""
        assert self._process is not None, "no job runs"
        return self._process.pid

    def cpu_seconds(self) -> float:
        """The processor time of all its processes so far."""
        return self._sum(cpu_seconds)

    def memory_megabytes(self) -> float:
        """The memory of all its processes, what they share divided between them."""
        return self._sum(memory_megabytes)

    def _sum(self, of: Callable[[int], float]) -> float:
        """The sum over all its processes, without those that end during the measurement."""
        total = 0.0
        for pid in session_processes(self.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                total += of(pid)
        return total

    @property
    def _output(self) -> Path:
        return self.directory / "output.log"

    def _start(self, command: list[str]) -> None:
        self._process = self._popen(command, subprocess.DEVNULL)

    def _popen(
        self, command: list[str], stdin: int, stdout: int | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process; what it prints goes to the output's file."""
        with self._output.open("ab") as output:
            return subprocess.Popen(
                [*self._prefix, *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=stdin,
                stdout=output if stdout is None else stdout,
                stderr=output,
                start_new_session=True,
            )

    def _stop(self) -> None:
        process, self._process = self._process, None
        end_group(process)


class LineEngine(Engine):
    """A program that starts and ends jobs as lines of its standard input say; one for all jobs."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command that starts the program."""

    @abstractmethod
    def lines(self, job: Job) -> list[str]:
        """The command that starts a job."""

    def run(self, job: Job) -> None:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = self._popen(self.command(), subprocess.PIPE, subprocess.PIPE)
        for line in self.lines(job):
            self._write(line)

    def end(self) -> None:
        """Returns when the job has ended; at once if the program has."""
        if self._process is None or self._process.poll() is not None:
            return
        with suppress(BrokenPipeError):  # it has failed since
            self._write(END)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.decode().strip() == ENDED:
                return
        self._process.wait(START_SECONDS)
        self.check_alive()

    def _write(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def _stop(self) -> None:
        process = self._process
        super()._stop()
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()


class KafkaStreams(Engine):
    """An application of Kafka's library for each job."""

    name = "streams"

    def __init__(self, directory: Path, access: EngineAccess, cores: int | None = None) -> None:
        super().__init__(directory, access, cores)
        self._classes = compiled("StreamsJob.java", _classpath(), directory / "classes")

    def run(self, job: Job) -> None:
        settings = {
            "bootstrap.servers": self._access.bootstrap,
            "application.id": f"bench-{job.sink}",
            "state.dir": str(self.directory / "state"),
            "auto.offset.reset": "earliest",
            "commit.interval.ms": COMMIT_INTERVAL_MS,
            "statestore.cache.max.bytes": 0,
            "num.stream.threads": 2,
        }
        if job.is_exactly_once:
            settings["processing.guarantee"] = EXACTLY_ONCE
        schema = [f"-Dschema={SCHEMA}", f"-Dschema.id={self._access.schema_id}"]
        classpath = f"{self._classes}:{_classpath()}"
        source = AVRO_SOURCE if job.kind == AVRO else SOURCE
        other = OTHER if job.kind == "streams" else TABLE
        self._start(
            [
                *(java(), "-Xmx1g", *schema, "-cp", classpath, "StreamsJob"),
                *(job.kind, source, other, job.sink),
                *(f"{name}={value}" for name, value in settings.items()),
            ]
        )

    def end(self) -> None:
        self._stop()


def compiled(source: str, classpath: str, target: Path) -> Path:
    """Compile a program of this folder; returns `target`. Raises RuntimeError where that fails."""
    path = Path(__file__).with_name(source)
    command = ["javac", "-cp", classpath, "-d", str(target), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"javac failed:\n{done.stderr[-3000:]}")
    return target


def _classpath() -> str:
    """Kafka's libraries, and Avro, which comes with Spark."""
    (avro,) = (Path(pyspark.__file__).parent / "jars").glob("avro-[0-9]*.jar")
    return f"{kafka_classpath()}:{avro}"


class SqlServer(Engine):
    """`barnabas sql server`, which runs queries on Spark; one server for all jobs.

    Its queries share micro-batches, as several would.
    """

    name = "barnabas"
    is_shared: ClassVar[bool] = True
    settings: ClassVar[dict[str, str]] = {}
    """More settings of all servers."""

    def __init__(self, directory: Path, access: EngineAccess, cores: int | None = None) -> None:
        super().__init__(directory, access, cores)
        (port,) = free_ports(1)
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            http1=False,
            http2=True,
            trust_env=False,
            timeout=START_SECONDS,
        )
        settings = {
            "listeners": str(self.client.base_url).rstrip("/"),
            "ksql.service.id": f"bench_{port}_",
            "ksql.streams.state.dir": str(directory / "state"),
            "ksql.schema.registry.url": access.registry_url,
            "ksql.runtime.feature.shared.enabled": str(self.is_shared).lower(),
            **self.settings,
        }
        self._start(
            [
                *(sys.executable, "-m", "barnabas", "sql", "server", "-b", access.bootstrap),
                *(word for name, value in settings.items() for word in ("-o", f"{name}={value}")),
            ]
        )
        wait_until(self._answers, START_SECONDS, "the SQL server")
        self._is_declared = False
        self._query = ""

    def run(self, job: Job) -> None:
        if not self._is_declared:
            self.ask(job.declarations)
            self._is_declared = True
        guarantee = EXACTLY_ONCE if job.is_exactly_once else "at_least_once"
        (answer,) = self.ask(job.statement, **{"processing.guarantee": guarantee})
        self._query = answer["commandStatus"]["queryId"]

    def end(self) -> None:
        query, self._query = self._query, ""
        if query:
            self.ask(f"TERMINATE {query};")

    def ask(self, text: str, **properties: str) -> list[dict[str, Any]]:
        """The answers to statements. Raises RuntimeError where one is refused."""
        answer = self.client.post(
            "/ksql",
            json={
                "ksql": text,
                "streamsProperties": {"auto.offset.reset": "earliest", **properties},
            },
        )
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(f"{text}: {answer.text}")
        found: list[dict[str, Any]] = answer.json()
        return found

    def rows(self, text: str) -> list[list[Any]]:
        """The rows of a pull query. Raises RuntimeError where it is refused."""
        answer = self.client.post("/query-stream", json={"sql": text})
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(f"{text}: {answer.text}")
        _, *rows = map(json.loads, answer.text.splitlines())
        return rows

    def _answers(self) -> bool:
        self.check_alive()
        try:
            return self.client.get("/info").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def _stop(self) -> None:
        self.client.close()
        super()._stop()


class LoneQueries(SqlServer):
    """The same server with its default: each query has its own micro-batches."""

    name = "alone"
    is_shared = False
