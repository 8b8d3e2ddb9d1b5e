"""Persistent queries that cannot be stopped, asked or started, beside others that can."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from barnabas.spark.supervision import QueryState
from barnabas.sql.engine import asking
from barnabas.sql.engine.ownership import ALL_SLOTS
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.server.entities import running_query
from barnabas.sql.shell.entities import entity_lines
from support.eventually import eventually
from support.sql_server_world import SqlWorld

STORY = (
    "CREATE STREAM s (k STRING KEY, v INT) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
    "CREATE STREAM a AS SELECT * FROM s; CREATE STREAM b AS SELECT * FROM s;"
)


def broken(*given: object, **options: object) -> Any:
    raise ConnectionError("Spark is away")


async def test_a_query_that_does_not_stop_keeps_no_other_running(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    first, second = world.engine.queries.values()
    monkeypatch.setattr(first.hosted, "stop", broken)
    hosted: Any = second.hosted
    world.engine.own(())
    assert hosted.is_ended
    assert (first.is_here, second.is_here) == (False, False)
    assert f"query {first.query.query_id} could not be stopped" in caplog.text
    monkeypatch.undo()
    await world.close()


async def test_what_a_query_left_is_deleted_by_who_gets_its_slot() -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    first, second = world.engine.queries.values()
    world.engine.own(())
    await world.ksql(f"TERMINATE {first.query.query_id};")
    assert {first.query.group, second.query.group} <= world.cluster._groups.keys()
    world.engine.own(ALL_SLOTS)
    assert first.query.group not in world.cluster._groups
    assert second.query.group in world.cluster._groups
    await world.close()


async def test_what_a_killed_server_left_of_a_terminated_query_is_deleted_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    first, second = world.engine.queries.values()
    monkeypatch.setattr(first.hosted, "stop", broken)
    await world.ksql(f"TERMINATE {first.query.query_id};")
    monkeypatch.undo()
    assert first.query.group in world.cluster._groups
    await world.restart()
    assert first.query.group not in world.cluster._groups
    assert second.query.group in world.cluster._groups
    await world.close()


async def test_what_runs_again_under_its_name_is_not_deleted() -> None:
    world = SqlWorld()
    insert = "INSERT INTO a WITH (QUERY_ID='MINE') SELECT * FROM b;"
    await world.ksql(STORY + insert)
    world.engine.own(())
    await world.ksql("TERMINATE MINE;")
    await world.ksql(insert)
    world.engine.own(ALL_SLOTS)
    assert world.engine.queries["MINE"].query.group in world.cluster._groups
    await world.close()


async def test_the_rows_of_a_table_are_kept_until_its_query_is_terminated() -> None:
    world = SqlWorld()
    before = len(world.cluster._followers)
    await world.ksql(
        "CREATE STREAM s (k STRING KEY, v INT) "
        "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
        "CREATE TABLE one AS SELECT k, COUNT(*) n FROM s GROUP BY k;"
        "CREATE TABLE two AS SELECT k, COUNT(*) n FROM s GROUP BY k;"
    )
    running = list(world.engine.queries)
    assert len(world.engine._views.all()) == 2
    for query_id, kept in zip(running, (["TWO"], []), strict=True):
        await world.ksql(f"TERMINATE {query_id};")
        assert list(world.engine._views.all()) == kept
    await eventually(lambda: len(world.cluster._followers) == before, "the end of the followers")
    await world.close()


async def test_a_query_that_has_ended_takes_no_memory() -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    runner: Any = world.engine.runner
    for _ in range(3):
        world.engine.own(())
        world.engine.own(ALL_SLOTS)
    assert len(runner._running) == 2
    await world.close()


async def test_a_pause_ends_the_attempts_to_start_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    running, _ = world.engine.queries.values()
    query_id = running.query.query_id
    world.engine.own(())
    start = world.engine.runner.start
    monkeypatch.setattr(world.engine.runner, "start", broken)
    world.engine.own(ALL_SLOTS)
    assert running.state is QueryState.ERROR
    await world.ksql(f"PAUSE {query_id};")
    assert (running.state, running.hosted) == (QueryState.PAUSED, None)
    monkeypatch.setattr(world.engine.runner, "start", start)
    await world.ksql(f"RESUME {query_id};")
    assert (running.state, running.hosted is not None) == (QueryState.RUNNING, True)
    await world.close()


async def test_a_query_may_be_given_up_while_it_is_looked_at() -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    running, _ = world.engine.queries.values()

    class GivenUp(RunningQuery):
        """Is hosted at the first look, and not at the next."""

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name == "hosted":
                self.hosted = None
            return found

    def given_up() -> RunningQuery:
        return GivenUp(running.query, hosted=running.hosted)

    assert given_up().state is QueryState.RUNNING
    assert given_up().failures == ()
    assert given_up().figures["rows_in"] == 0
    assert given_up().positions() == {("s", 0): (0, 0)}
    await world.close()


async def test_a_query_that_cannot_be_asked_does_not_hide_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SqlWorld()
    await world.ksql(STORY)
    first, second = world.engine.queries.values()
    told: list[str] = []
    running: Any = world.engine._running
    monkeypatch.setattr(running, "_on_failure", lambda query_id, failure: told.append(query_id))
    hosted: Any = second.hosted
    hosted._fail(ValueError("broken"))
    monkeypatch.setattr(first, "restarting", None)
    running._supervisor.step(0)
    assert told == [second.query.query_id]
    monkeypatch.undo()
    await world.close()


async def test_lists_say_what_a_query_failed_of_and_what_its_start_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SqlWorld()
    listed: list[Any] = []
    runner: Any = world.engine.runner
    start = runner.start

    def slow(query: Any, **options: Any) -> Any:
        (running,) = world.engine.queries.values()
        listed.append(running_query(running, {}))
        return start(query, **options)

    monkeypatch.setattr(type(runner), "progress", "Spark is being started: downloaded 12 MB")
    monkeypatch.setattr(runner, "start", slow)
    stream, _, _ = STORY.partition("CREATE STREAM a")
    await world.ksql(stream + "CREATE STREAM a AS SELECT * FROM s;")
    assert (listed[0]["state"], listed[0]["message"]) == (
        "RUNNING",
        "Spark is being started: downloaded 12 MB",
    )
    (shown,) = (await world.ksql("SHOW QUERIES;"))[0]["queries"]
    assert "message" not in shown
    (running,) = world.engine.queries.values()
    hosted: Any = running.hosted
    hosted._fail(ConnectionError("no Maven Central\nat line 2"))
    answer = (await world.ksql("SHOW QUERIES;"))[0]
    assert answer["queries"][0]["statusCount"] == {"ERROR": 1}
    assert answer["queries"][0]["message"] == "no Maven Central"
    lines = entity_lines(answer)
    assert f"{running.query.query_id}: no Maven Central" in lines
    described = (await world.ksql("DESCRIBE s;"))[0]["sourceDescription"]
    assert described["readQueries"][0]["message"] == "no Maven Central"
    await world.close()


TABLE = "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
PULL = "SELECT * FROM t;"


async def test_a_pull_query_says_that_the_table_is_not_filled_and_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SqlWorld()
    runner: Any = world.engine.runner
    start = runner.start
    waiting, go_on = threading.Event(), threading.Event()

    def slow(query: Any, **options: Any) -> Any:
        waiting.set()
        assert go_on.wait(20)
        return start(query, **options)

    stream, _, _ = STORY.partition("CREATE STREAM a")
    await world.ksql(stream + TABLE)
    world.write("s", "a", {"V": 1})
    world.engine.own(())
    monkeypatch.setattr(type(runner), "progress", "Spark is being started: downloading a:b:1")
    monkeypatch.setattr(runner, "start", slow)
    monkeypatch.setattr(asking, "LOCK_WAIT_S", 0.01)
    owning = threading.Thread(target=world.engine.own, args=(ALL_SLOTS,))
    owning.start()
    assert await asyncio.to_thread(waiting.wait, 20)
    (query_id,) = world.engine.queries
    assert await world.error(PULL, "/query") == {
        "@type": "generic_error",
        "error_code": 50000,
        "message": "Unable to execute pull query: Materialized data for table `T` is not available "
        f"yet. Please try again later. {query_id}: Spark is being started: downloading a:b:1",
    }
    go_on.set()
    await asyncio.to_thread(owning.join)
    assert await world.rows(PULL) == [["a", 1]]
    (running,) = world.engine.queries.values()
    await world.ksql(f"PAUSE {query_id};")
    assert await world.rows(PULL) == [["a", 1]]
    hosted: Any = running.hosted
    hosted._fail(ConnectionError("no broker answers\nat line 2"))
    answer = await world.post("/query-stream", {"sql": PULL})
    assert answer.status_code == 500
    assert answer.json()["message"] == (
        "Unable to execute pull query: The query was not in a running state. state: ERROR. "
        f"{query_id}: no broker answers"
    )
    described = (await world.ksql(f"EXPLAIN {query_id};"))[0]["queryDescription"]
    assert described["message"] == "no broker answers"
    await world.close()
