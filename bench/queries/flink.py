"""Flink SQL: its settings and statements, and the engine that runs them in one JVM.

Flink's own windows give results when they end. So the count is an aggregate by key and start of the
window, which gives a result for each change, as Kafka Streams and our queries do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.kafka_jars import fetch_jars, java
from bench.queries.engines import COMMIT_INTERVAL_MS, EngineAccess, LineEngine, compiled
from bench.queries.jobs import SOURCE, WINDOW_SECONDS, Job
from bench.settings import CACHE, ROOT

FLINK_VERSION: Final = "2.2.1"
LIBS: Final = CACHE / f"flink-{FLINK_VERSION}" / "libs"
POM: Final = ROOT / "tools" / "flink" / "pom.xml"
CHECKPOINT_MS: Final = 1_000
"""Between checkpoints, unless results wait for them."""
_LOG: Final = """\
status=error
rootLogger.level=warn
rootLogger.appenderRef.err.ref=err
appender.err.type=Console
appender.err.name=err
appender.err.target=SYSTEM_ERR
appender.err.layout.type=PatternLayout
appender.err.layout.pattern=%d %p %m (%c)%n
"""
_OPENED: Final = (
    *(
        "java.lang",
        "java.lang.reflect",
        "java.net",
        "java.io",
        "java.nio",
        "java.text",
        "java.time",
    ),
    *("java.util", "java.util.concurrent", "sun.nio.ch"),
)

_SOURCE: Final = (
    "CREATE TABLE source_{name} (k STRING, V INT, "
    "ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL) WITH ({options})"
)
_SINKS: Final = {
    "filter": "CREATE TABLE {name} (k STRING, V INT) WITH ({options})",
    "count": "CREATE TABLE {name} (k STRING, w BIGINT, N BIGINT, PRIMARY KEY (k, w) NOT ENFORCED) "
    "WITH ({options})",
}
_QUERIES: Final = {
    "filter": "INSERT INTO {name} SELECT k, V FROM source_{name} WHERE MOD(V, 2) = 0",
    # Another key than that of the aggregate would have Flink write a tombstone before each result.
    "count": "INSERT INTO {name} SELECT k, w, COUNT(*) FROM (SELECT k, "
    "CAST(s - MOD(s, {window}) AS BIGINT) * 1000 AS w FROM (SELECT k, "
    "TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', CAST(ts AS TIMESTAMP(3))) AS s "
    "FROM source_{name})) GROUP BY k, w",
}


def settings(directory: Path, parallelism: int) -> dict[str, str]:
    """Of Flink, for all jobs; checkpoints are in `directory`."""
    return {
        "execution.target": "local",
        "parallelism.default": str(parallelism),
        "pipeline.object-reuse": "true",
        "restart-strategy.type": "none",
        "execution.checkpointing.dir": (directory / "checkpoints").as_uri(),
        "execution.checkpointing.incremental": "true",
        "state.backend.type": "rocksdb",
        "io.tmp.dirs": str(directory),
        "taskmanager.memory.managed.size": "256m",
        "table.local-time-zone": "UTC",
        "table.exec.state.ttl": "24 h",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": f"{COMMIT_INTERVAL_MS} ms",
        "table.exec.mini-batch.size": "10000",
    }


def statements(job: Job, bootstrap: str) -> list[str]:
    """What starts a job: the checkpoints' settings, two tables, and the query."""
    name = job.sink.replace("-", "_")
    common = {
        "properties.bootstrap.servers": bootstrap,
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    source = {
        "connector": "kafka",
        "topic": SOURCE,
        "properties.group.id": f"bench-{job.sink}",
        "scan.startup.mode": "earliest-offset",
        "key.fields": "k",
        "key.format": "raw",
    }
    sink = {"connector": "upsert-kafka", "topic": job.sink, "key.format": "json"}
    if job.kind == "filter":
        sink |= {"connector": "kafka", "key.fields": "k", "key.format": "raw"}
    if job.is_exactly_once:
        sink |= {
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": job.sink,
            "properties.transaction.timeout.ms": "60000",
        }
    interval_ms = COMMIT_INTERVAL_MS if job.is_exactly_once else CHECKPOINT_MS
    mode = "EXACTLY_ONCE" if job.is_exactly_once else "AT_LEAST_ONCE"
    return [
        f"set execution.checkpointing.interval={interval_ms} ms",
        f"set execution.checkpointing.mode={mode}",
        _SOURCE.format(name=name, options=_options(source | common)),
        _SINKS[job.kind].format(name=name, options=_options(sink | common)),
        _QUERIES[job.kind].format(name=name, window=WINDOW_SECONDS),
    ]


def _options(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}'='{value}'" for name, value in options.items())


class FlinkSql(LineEngine):
    """Flink's cluster within one process, which has the planner too."""

    name = "flink"
    kinds = tuple(_QUERIES)

    def __init__(self, directory: Path, access: EngineAccess, cores: int | None = None) -> None:
        super().__init__(directory, access, cores)
        self._classes = compiled("FlinkSql.java", f"{LIBS}/*", directory / "classes")

    @classmethod
    def fetch(cls) -> None:
        if not (LIBS / f"flink-table-runtime-{FLINK_VERSION}.jar").exists():
            fetch_jars(f"Apache Flink {FLINK_VERSION}", POM, LIBS, CACHE / "maven")

    def command(self) -> list[str]:
        log = self.directory / "log4j2.properties"
        log.write_text(_LOG)
        opened = [f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in _OPENED]
        given = settings(self.directory, self.cores or 2)
        return [
            *(java(), "-Xmx1g", f"-Dlog4j2.configurationFile={log.as_uri()}", *opened),
            *("-cp", f"{self._classes}:{LIBS}/*", "FlinkSql"),
            *(f"{name}={value}" for name, value in given.items()),
        ]

    def lines(self, job: Job) -> list[str]:
        return statements(job, self._access.bootstrap)
