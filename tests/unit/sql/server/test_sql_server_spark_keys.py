"""The keys that fit Spark to a server's load, and pipelines in Python beside the statements."""

from __future__ import annotations

import pytest

from barnabas.sql.server.config import (
    MARK_RESULTS,
    PIPELINES,
    RUNNER,
    TASKS,
    TRIGGER,
    ServerConfig,
    ServerConfigError,
)
from barnabas.sql.server.spark_session import python_pipelines


def test_keys_that_are_given() -> None:
    values = {TASKS: "1", TRIGGER: "1000", MARK_RESULTS: "TRUE", PIPELINES: "a:b, c"}
    config = ServerConfig({**values, "ksql.streams.processing.guarantee": "exactly_once_v2"})
    assert (config.spark_tasks, config.spark_trigger_ms) == (1, 1000)
    assert config.is_set(MARK_RESULTS)
    assert config.pipelines == ("a:b", "c")
    assert config.is_exactly_once


def test_keys_that_are_not() -> None:
    config = ServerConfig()
    assert (config.spark_tasks, config.spark_trigger_ms, config.pipelines) == (None, 100, ())
    assert not config.is_set(MARK_RESULTS)
    assert not config.is_exactly_once
    assert python_pipelines(config) is None


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_numbers_are_whole_and_from_one(value: str) -> None:
    with pytest.raises(ServerConfigError, match=f"{TASKS} is a whole number"):
        _ = ServerConfig({TASKS: value}).spark_tasks


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
