"""A query on Spark as the engine sees it, with a query that only says it ran."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from barnabas.spark.session import SparkStartError
from barnabas.spark.supervision import QueryState, SupervisedStream
from barnabas.sql.engine import spark_runner
from barnabas.sql.engine.queries import BATCH_MS, MicroBatch, PersistentQuery
from barnabas.sql.engine.spark_runner import SparkHosted, SparkQueryRunner
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.query import QueryStatus, SparkQuery
from barnabas.sql.spark.results import Figures
from support.patience import PATIENCE_S
from support.sql_queries import plans_of

(PLAN,) = plans_of(
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');"
    "CREATE STREAM c AS SELECT * FROM s;",
    {"s": 1, "C": 1},
)


class FakeStream:
    """A streaming query as Spark shows it."""

    ends = False
    is_lost = False
    why: Exception | None = None
    recentProgress: Sequence[dict[str, Any]] = ()  # noqa: N815  Spark's name

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        if self.is_lost:
            raise ConnectionRefusedError("the JVM does not answer")
        return not self.ends

    def exception(self) -> Exception | None:
        return self.why

    def stop(self) -> None:
        self.ends = self.isActive


class FakeQuery:
    def __init__(self) -> None:
        self.refusal: Exception | None = None
        self.figures = Figures()
        self.life = SupervisedStream("q", self._begin)
        self.sessions: list[Any] = []
        self.read_of_batches: dict[int, int] = {}

    def _begin(self) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.figures = Figures()
        return FakeStream()

    def fail(self, message: str) -> None:
        stream: Any = self.life.stream
        stream.why, stream.ends = ValueError(message), True

    def move(self, session: Any) -> None:
        self.sessions.append(session)

    def stop(self) -> None:
        self.life.stop()

    def status(self) -> QueryStatus:
        positions = {("s", 0): (1, 2)}
        return QueryStatus(
            self.life.state, (), self.figures, {"s": 1}, positions, 3, 300, {"addBatch": 40}
        )


def hosted(query: FakeQuery, **settings: Any) -> SparkHosted:
    asked = PersistentQuery(PLAN, "", "group", settings)
    sessions = iter(range(100))
    return SparkHosted(asked, cast("SparkQuery", query), lambda: cast("Any", next(sessions)))


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/state/q/plan.json.partial")


def test_a_start_on_a_full_disk_is_a_failure_until_there_is_room() -> None:
    query = FakeQuery()
    query.refusal = FULL
    found = hosted(query)
    found.resume()
    assert found.state is QueryState.ERROR
    found.restart()
    assert [failure.type for failure in found.failures] == ["SYSTEM"] * 2
    assert "No space left on device" in found.failures[-1].message
    query.refusal = None
    found.restart()
    assert found.state is QueryState.RUNNING


def test_counts_go_on_over_restarts() -> None:
    query = FakeQuery()
    found = hosted(query)
    found.resume()
    query.figures = Figures(batches=2, read=10, written=5, failed=1, latest_ms=7)
    query.fail("gone")
    assert found.state is QueryState.ERROR
    assert found.figures["stream_time_ms"] == 7
    found.restart()
    query.figures = Figures(batches=1, read=1, written=1)
    figures = found.figures
    assert {name: figures[name] for name in ("batches", "rows_in", "rows_out", "errors")} == {
        "batches": 3,
        "rows_in": 11,
        "rows_out": 6,
        "errors": 1,
    }
    assert figures["stream_time_ms"] == 7
    assert (figures["state_bytes"], figures["state_rows"]) == (300, 3)
    assert figures[f"{BATCH_MS}addBatch"] == 40


def test_the_last_micro_batches_are_those_that_ran() -> None:
    query = FakeQuery()
    found = hosted(query)
    assert found.batches() == []  # before it starts
    found.resume()
    stream: Any = query.life.stream
    began = {"timestamp": "2026-01-02T03:04:05.678Z", "numInputRows": 7}
    phases = {"addBatch": 40, "triggerExecution": 55}
    idle = {"timestamp": began["timestamp"], "numInputRows": 0, "batchId": 30}
    stream.recentProgress = [
        *({**began, "batchId": number, "durationMs": phases} for number in range(29)),
        {**idle, "durationMs": {"latestOffset": 3, "triggerExecution": 3}},
    ]
    query.read_of_batches[28] = 500  # Spark's source gives ranges, and counts these
    batches = found.batches()
    assert [one.batch_id for one in batches] == list(range(10, 29))
    assert batches[-2:] == [
        MicroBatch(27, 1_767_323_045_678, 55, 7, phases),
        MicroBatch(28, 1_767_323_045_678, 55, 500, phases),
    ]


def test_a_query_starts_again_in_the_session_of_a_new_jvm() -> None:
    query = FakeQuery()
    found = hosted(query)
    found.resume()
    stream: Any = query.life.stream
    stream.is_lost = True
    assert found.state is QueryState.ERROR
    assert "JVM" in found.failures[0].message
    found.restart()
    assert (found.state, query.sessions) == (QueryState.RUNNING, [0, 1])


def test_settings_say_whose_fault_a_failure_is() -> None:
    query = FakeQuery()
    found = hosted(query, **{"ksql.error.classifier.regex.own": "USER no such thing"})
    found.resume()
    query.fail("no such thing")
    assert found.failures[0].type == "USER"


def test_a_query_that_is_ended_or_paused_is_not_started_again() -> None:
    query = FakeQuery()
    found = hosted(query)
    found.resume()
    query.fail("gone")
    found.pause()
    found.restart()
    assert found.state is QueryState.PAUSED
    found.resume()
    assert found.state is QueryState.RUNNING
    query.fail("gone")
    found.stop()
    found.restart()
    assert query.life.state is QueryState.PAUSED


def test_queries_that_start_at_once_share_one_session() -> None:
    starts: list[int] = []
    both = threading.Barrier(2)

    def start() -> Any:
        starts.append(1)
        # If two threads get here, they meet at the barrier.
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return object()

    runner = SparkQueryRunner(SparkQueryOptions("a:1", "/none"), start)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: runner._session(), range(2))
    assert (first is second, len(starts)) == (True, 1)


class Session:
    """A session whose start ends when it is let."""

    def __init__(self) -> None:
        self.starts = 0
        self.asked, self.let = threading.Event(), threading.Event()

    def __call__(self) -> Any:
        self.starts += 1
        self.asked.set()
        assert self.let.wait(PATIENCE_S)
        return self


class Warmed:
    """Stands for the query over nothing; ends when it is let, or with the runner."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.sessions: list[Any] = []
        self.asked, self.end, self.is_closed = threading.Event(), threading.Event(), False
        self.is_wanted = threading.Event()
        self.topics: list[str | None] = []
        self._refusal = refusal

    def __call__(
        self,
        session: Any,
        _options: SparkQueryOptions,
        is_closing: threading.Event,
        is_wanted: threading.Event,
        read_topic: str | None,
    ) -> bool:
        self.sessions.append(session)
        self.topics.append(read_topic)
        self.is_wanted = is_wanted
        self.asked.set()
        if self._refusal is not None:
            raise self._refusal
        until = time.monotonic() + PATIENCE_S
        while not (self.is_closed or self.end.is_set()) and time.monotonic() < until:
            self.is_closed = is_closing.wait(0.01)
        return not self.is_closed


def warmed(
    monkeypatch: pytest.MonkeyPatch, session: Any, refusal: Exception | None = None
) -> tuple[SparkQueryRunner, Warmed]:
    """A runner that warms its session, and what it warms it with."""
    query = Warmed(refusal)
    monkeypatch.setattr(spark_runner, "warm", query)
    runner = SparkQueryRunner(SparkQueryOptions("a:1", "/none"), session)
    runner.warm("commands")
    return runner, query


def join_warming(runner: SparkQueryRunner) -> None:
    assert runner._warming is not None
    runner._warming.join(PATIENCE_S)
    assert not runner._warming.is_alive()


def test_a_query_that_comes_while_the_session_warms_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    made: list[Any] = []

    def spark_query(_plan: Any, _options: Any, given: Any) -> FakeQuery:
        made.append(given)
        return FakeQuery()

    monkeypatch.setattr(spark_runner, "SparkQuery", spark_query)
    runner, query = warmed(monkeypatch, session)
    assert session.asked.wait(PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(runner.start, PersistentQuery(PLAN, "", "group"), is_paused=True)
        session.let.set()
        assert query.asked.wait(PATIENCE_S)
        assert (started.done(), made) == (False, []), "while the query over nothing runs"
        assert query.is_wanted.wait(PATIENCE_S), "and it is told that one waits"
        query.end.set()
        started.result(PATIENCE_S)
    assert (session.starts, query.sessions, made) == (1, [session], [session])
    assert query.topics == ["commands"]


def test_closing_ends_the_warming(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    session.let.set()
    runner, query = warmed(monkeypatch, session)
    assert query.asked.wait(PATIENCE_S)
    runner.close()
    join_warming(runner)
    assert query.is_closed


def test_closing_does_not_wait_for_a_start_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_runner, "_CLOSE_SECONDS", 0.01)
    session = Session()
    runner, query = warmed(monkeypatch, session)
    assert session.asked.wait(PATIENCE_S)
    runner.close()
    session.let.set()
    join_warming(runner)
    assert query.sessions == []


def test_a_session_that_cannot_be_warmed_is_logged_once_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    starts: list[int] = []

    def start() -> Any:
        starts.append(1)
        if len(starts) == 1:
            raise SparkStartError("Spark needs a Java runtime")
        return object()

    runner, query = warmed(monkeypatch, start)
    join_warming(runner)
    assert [record.getMessage() for record in caplog.records] == [
        "Spark was not started ahead of the first query: Spark needs a Java runtime"
    ]
    assert query.sessions == []
    assert runner._session() is not None, "the first query tries again"


def test_a_warming_query_that_fails_is_logged_and_leaves_the_session(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session()
    session.let.set()
    runner, _ = warmed(monkeypatch, session, PySparkException("a worker ended"))
    join_warming(runner)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "a worker ended" in caplog.text
    assert (runner._session(), session.starts) == (session, 1)


def test_what_a_terminated_query_left_is_deleted(tmp_path: Path) -> None:
    options = SparkQueryOptions("a:1", str(tmp_path))
    left, other = (tmp_path / name for name in (PLAN.query_id, "OTHER"))
    for directory in (left, other):
        directory.mkdir()
    SparkQueryRunner(options, lambda: cast("Any", None)).forget(PersistentQuery(PLAN, "", "group"))
    assert list(tmp_path.iterdir()) == [other]
