"""Servers that write into one command log at the same time, and logs that cannot be followed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.sql.engine import engine
from barnabas.sql.engine.applying import apply_to
from barnabas.sql.engine.command_log import LogEntry
from barnabas.sql.engine.engine import EngineError, KsqlEngine
from barnabas.sql.engine.local_runner import LocalQueryRunner
from barnabas.sql.engine.session import Session
from barnabas.sql.functions.built_in import functions
from barnabas.sql.syntax.tree import ParsedStatement
from support.memory_cluster import MemoryCluster
from support.memory_command_log import MemoryCommandLog
from support.sql_server_world import SqlWorld

STREAM = (
    "CREATE STREAM s (k STRING KEY, v INT) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
)


class Log(MemoryCommandLog):
    """Lets something happen before a record is written."""

    before: list[Callable[[], object]]

    def append(self, key: bytes, value: bytes) -> int:
        if self.before:
            self.before.pop(0)()
        return super().append(key, value)


class Server:
    def __init__(self, cluster: MemoryCluster, entries: list[LogEntry]) -> None:
        self.log = Log(entries)
        self.log.before = []
        catalog = functions()
        runner = LocalQueryRunner(cluster, catalog, None)
        self.engine = KsqlEngine(cluster, self.log, runner, catalog)
        self.engine.start()

    def run(self, text: str, **overrides: str) -> None:
        session = Session(self.engine.settings, overrides)
        for parsed, own in self.engine.parse(text, session):
            self.engine.execute(parsed, own)


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """Two of them, of one service."""
    cluster, entries = MemoryCluster(), list[LogEntry]()
    both = [Server(cluster, entries) for _ in range(2)]
    yield both
    for server in both:
        server.engine.close()


def test_a_server_that_is_overtaken_tries_its_statement_anew(servers: list[Server]) -> None:
    first, second = servers
    second.run(STREAM)
    first.log.before = [lambda: second.run("CREATE STREAM a AS SELECT * FROM s;")]
    first.run("CREATE STREAM b AS SELECT * FROM s;")
    second.engine.read_log()
    assert list(first.engine.queries) == list(second.engine.queries)
    assert len(first.engine.queries) == 2
    first.log.before = [lambda: second.run("CREATE STREAM c AS SELECT * FROM s;")]
    with pytest.raises(Exception, match="A stream with the same name already exists"):
        first.run("CREATE STREAM c AS SELECT * FROM s;")
    first.log.before = [lambda: second.run("DROP STREAM a;")]
    first.run("PAUSE ALL;")
    assert len(first.engine.queries) == 2


def test_a_server_that_is_always_overtaken_says_so(servers: list[Server]) -> None:
    first, second = servers
    first.log.before = [
        lambda number=number: second.run(f"CREATE TYPE t{number} AS INT;")  # type: ignore[misc]
        for number in range(20)
    ]
    with pytest.raises(EngineError, match="try again"):
        first.run(STREAM)


def test_the_end_of_all_queries_is_of_those_of_other_servers_too(servers: list[Server]) -> None:
    first, second = servers
    second.run(STREAM + "CREATE STREAM a AS SELECT * FROM s;")
    first.engine.terminate_cluster(["A"])
    second.engine.read_log()
    assert first.engine.queries == second.engine.queries == {}
    assert "A" not in first.engine.cluster.topics()


def test_a_command_that_cannot_be_done_is_not_passed_over(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = servers
    second.run(STREAM + "CREATE STREAM a AS SELECT * FROM s;")

    def broken(*given: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(first.engine._running, "add", broken)
    first.engine.read_log()
    assert first.engine.degraded == "no memory"
    with pytest.raises(EngineError, match="no memory"):
        first.run("DROP STREAM a;")


def test_secrets_of_a_session_are_not_in_the_log(servers: list[Server]) -> None:
    first, _ = servers
    first.run(STREAM, **{"ksql.streams.ssl.key.password": "hush", "ksql.x": "y"})
    (entry,) = first.log.entries
    assert json.loads(entry.value)["streamsProperties"] == {"ksql.x": "y"}


async def test_a_statement_is_analysed_once_and_applied_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SqlWorld()
    analysed, applied = [], []
    analyse = world.engine._context.analyse

    def counted(parsed: ParsedStatement, *given: Any) -> Any:
        analysed.append(parsed.text)
        return analyse(parsed, *given)

    def counted_too(*given: Any) -> str:
        applied.append(given)
        return apply_to(*given)

    monkeypatch.setattr(world.engine._context, "analyse", counted)
    monkeypatch.setattr(engine, "apply_to", counted_too)
    stories = (STREAM, "CREATE STREAM t AS SELECT * FROM s;", "DROP STREAM t;")
    await world.ksql("".join(stories[:2]) + "INSERT INTO s VALUES ('a', 1);" + stories[2])
    assert (len(analysed), len(applied)) == (4, 3)
    assert set(world.engine.metastore.sources) == {"S"}
    assert world.engine.queries == {}
    await world.close()
