"""The keys that fit Spark to a server's load, and pipelines in Python beside the statements."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from barnabas.sql.server import spark_session
from barnabas.sql.server.config import (
    MARK_RESULTS,
    PIPELINES,
    RUNNER,
    STARTS_COLD,
    TASKS,
    TRIGGER,
    WORKERS_READ,
    ServerConfig,
    ServerConfigError,
)
from barnabas.sql.server.spark_session import ServerSession, python_pipelines
from support.patience import PATIENCE_S

COMMIT_INTERVAL = "ksql.streams.commit.interval.ms"


def test_keys_that_are_given() -> None:
    values = {TASKS: "1", TRIGGER: "1000", MARK_RESULTS: "TRUE", PIPELINES: "a:b, c"}
    values |= {WORKERS_READ: "false"}
    config = ServerConfig({**values, "ksql.streams.processing.guarantee": "exactly_once_v2"})
    assert (config.spark_tasks, config.spark_trigger_ms) == (1, 1000)
    assert config.is_set(MARK_RESULTS)
    assert not config.is_set(WORKERS_READ)
    assert config.pipelines == ("a:b", "c")
    assert config.is_exactly_once
    assert ServerConfig({COMMIT_INTERVAL: "500"}).commit_interval_ms == 500


def test_keys_that_are_not() -> None:
    config = ServerConfig()
    assert (config.spark_tasks, config.spark_trigger_ms, config.pipelines) == (None, 100, ())
    assert not config.is_set(MARK_RESULTS)
    assert config.is_set(WORKERS_READ)
    assert not config.is_exactly_once
    assert config.commit_interval_ms == 2_000
    assert python_pipelines(config) is None


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_numbers_are_whole_and_from_one(value: str) -> None:
    with pytest.raises(ServerConfigError, match=f"{TASKS} is a whole number"):
        _ = ServerConfig({TASKS: value}).spark_tasks
    with pytest.raises(ServerConfigError, match=f"{COMMIT_INTERVAL} is a whole number"):
        _ = ServerConfig({COMMIT_INTERVAL: value}).commit_interval_ms


def test_what_is_neither_true_nor_false() -> None:
    with pytest.raises(ServerConfigError, match="true or false, not yes"):
        ServerConfig({MARK_RESULTS: "yes"}).is_set(MARK_RESULTS)


def test_pipelines_need_spark() -> None:
    with pytest.raises(ServerConfigError, match="needs the runner spark"):
        python_pipelines(ServerConfig({PIPELINES: "a:b", RUNNER: "local"}))


def test_a_pipeline_that_is_not_there_is_named() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(ServerConfigError, match="there is no pipeline no_module:run"):
        python_pipelines(ServerConfig({PIPELINES: "no_module:run"}))


class Starts:
    """Stands for what starts a session: the first start fails if it is to."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.begun, self.let, self.count = threading.Event(), threading.Event(), 0
        self._refusal = refusal

    def __call__(self, _config: ServerConfig, told: Any, _before_launch: Any) -> Any:
        self.count += 1
        told(f"start {self.count}")
        self.begun.set()
        assert self.let.wait(PATIENCE_S)
        if self._refusal is not None and self.count == 1:
            raise self._refusal
        return self.count


def test_a_session_starts_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts()
    monkeypatch.setattr(spark_session, "spark_session", starts)
    session = ServerSession(ServerConfig())
    session.begin()
    assert starts.begun.wait(PATIENCE_S)
    assert session.line == "start 1"
    starts.let.set()
    assert [session(), session()] == [1, 2], "once that one is lost, another is started"


def test_the_server_reads_its_modules_once_the_jvm_is_launched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = threading.Event()
    did = []

    def start(_config: ServerConfig, _told: Any, before_launch: Any) -> Any:
        checked.wait(0.2)  # nobody sets it: a `begin` that does not wait is over before
        did.append("launched")
        before_launch()
        assert let.wait(PATIENCE_S)
        return "session"

    let = threading.Event()
    monkeypatch.setattr(spark_session, "spark_session", start)
    session = ServerSession(ServerConfig())
    session.begin()
    did.append("begun")
    assert did == ["launched", "begun"]
    let.set()
    assert session() == "session"


def test_the_session_s_start_reads_few_modules() -> None:
    """Spark's JVM starts after them; all others are read while it does."""
    code = (
        "import sys, barnabas.sql.server.config, barnabas.sql.server.spark_session;"
        "print(*sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    read = set(done.stdout.split())
    assert "barnabas.kafka.security" in read
    for name in (
        "pyspark",
        "httpx",
        "starlette",
        "barnabas.sql.syntax",
        "barnabas.sql.engine.engine",
    ):
        assert name not in read


def test_a_start_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(OSError("no Java"))
    starts.let.set()
    monkeypatch.setattr(spark_session, "spark_session", starts)
    session = ServerSession(ServerConfig())
    session.begin()
    with pytest.raises(OSError, match="no Java"):
        session()
    assert session() == 2


@pytest.mark.parametrize(
    ("values", "is_optimised"),
    [({}, False), ({WORKERS_READ: "false"}, True), ({PIPELINES: "a:b"}, True)],
)
def test_the_jvm_optimises_where_it_reads_records(
    values: dict[str, str], is_optimised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    from barnabas.spark import forking, session

    asked = []
    monkeypatch.setattr(session, "start_session", lambda options, *_: asked.append(options))
    monkeypatch.setattr(forking, "fork_driver_processes", lambda _session: None)
    spark_session.spark_session(ServerConfig(values))
    assert [one.optimises_hot_code for one in asked] == [is_optimised]


@pytest.mark.parametrize("settings", [{STARTS_COLD: "true"}, {RUNNER: "local"}])
def test_no_session_starts_unasked(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    starts = Starts()
    starts.let.set()
    monkeypatch.setattr(spark_session, "spark_session", starts)
    session = ServerSession(ServerConfig(settings))
    session.begin()
    assert starts.count == 0
    assert session() == 1
