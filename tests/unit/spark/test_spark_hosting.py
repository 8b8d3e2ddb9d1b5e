"""Queries in Python beside others: started again when they fail, and as far as their groups say."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition
from pyspark.errors import StreamingQueryException

from barnabas.app.testing import Kafka
from barnabas.spark import hosting
from barnabas.spark.hosting import (
    PipelineContext,
    PipelineError,
    PipelineHost,
    PythonQuery,
    load_pipeline,
    queries_of,
)
from support.node_process import wait_until
from support.patience import PATIENCE_S


class FakeStream:
    """A streaming query as Spark shows it."""

    def __init__(self) -> None:
        self.isActive = True
        self.why: StreamingQueryException | None = None
        self.lastProgress: dict[str, Any] | None = None

    def fail(self, why: str) -> None:
        self.why, self.isActive = StreamingQueryException(why), False

    def exception(self) -> StreamingQueryException | None:
        return self.why

    def stop(self) -> None:
        self.isActive = False


class FakeQuery:
    """A query that cannot be started `failures` times; `streams` are those that were."""

    def __init__(self, name: str, failures: int = 0) -> None:
        self.failures = failures
        self.attempts = 0
        self.streams: list[FakeStream] = []
        self.query = PythonQuery(name, self._start)

    def _start(self) -> Any:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise ValueError("the registry is away")
        self.streams.append(FakeStream())
        return self.streams[-1]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(hosting, "_PAUSE_MS_MAX", 1)


@pytest.fixture
def queries(kafka: Kafka) -> Iterator[list[FakeQuery]]:
    """Two of them, hosted: the second cannot be started at first."""
    made = [FakeQuery(kafka.name("first")), FakeQuery(kafka.name("second"), failures=3)]
    host = PipelineHost(kafka.bootstrap_servers, [fake.query for fake in made])
    host.start()
    yield made
    host.close()
    assert not any(stream.isActive for fake in made for stream in fake.streams)


def test_what_cannot_be_started_is_tried_again(queries: list[FakeQuery]) -> None:
    wait_until(lambda: all(fake.streams for fake in queries), "two streams")
    assert [fake.attempts for fake in queries] == [1, 4]


def test_what_has_failed_is_started_again(
    queries: list[FakeQuery], caplog: pytest.LogCaptureFixture
) -> None:
    wait_until(lambda: bool(queries[0].streams), "a stream")
    queries[0].streams[0].fail("the cluster is away")
    wait_until(lambda: len(queries[0].streams) == 2, "a second stream")
    assert "the cluster is away" in caplog.text


def test_groups_say_how_far_queries_have_read(kafka: Kafka, queries: list[FakeQuery]) -> None:
    topic, other = kafka.topic(partitions=2), kafka.topic(partitions=1)
    wait_until(lambda: bool(queries[0].streams), "a stream")
    consumer = kafka.consumer(group_id=queries[0].query.name)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(other, 0)]

    def committed() -> list[int]:
        return [place.offset for place in consumer.committed(places, timeout=PATIENCE_S)]

    for batch_id in range(2):
        ends = {topic: {"0": 5 + batch_id, "1": 0}}, {other: {"0": 7}}
        queries[0].streams[0].lastProgress = {
            "batchId": batch_id,
            "sources": [{"endOffset": end} for end in ends],
        }
        expected = [5 + batch_id, 0, 7]
        wait_until(lambda expected=expected: committed() == expected, "the offsets of a batch")
    consumer.close()


def test_only_what_is_wanted_runs(kafka: Kafka) -> None:
    first, second = FakeQuery("first"), FakeQuery("second")
    host = PipelineHost(kafka.bootstrap_servers, [first.query, second.query])
    host.run_only(())
    host.start()
    assert host.names == ("first", "second")
    host.run_only(["second"])
    wait_until(lambda: bool(second.streams), "a stream")
    host.run_only(["first"])
    assert not second.streams[0].isActive
    wait_until(lambda: bool(first.streams), "a stream")
    assert (len(first.streams), len(second.streams)) == (1, 1)
    host.close()


def test_offsets_are_committed_with_the_cluster_s_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, Any]] = []

    class FakeConsumer:
        def __init__(self, settings: dict[str, Any]) -> None:
            given.append(settings)

        def commit(self, **options: Any) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(hosting, "Consumer", FakeConsumer)
    fake = FakeQuery("first")
    login = {"security.protocol": "SASL_SSL", "sasl.username": "ann"}
    host = PipelineHost("a:1", [fake.query], login)
    host.start()
    wait_until(lambda: bool(fake.streams), "a stream")
    fake.streams[0].lastProgress = {"batchId": 0, "sources": [{"endOffset": {"t": {"0": 1}}}]}
    wait_until(lambda: bool(given), "a consumer")
    host.close()
    assert given[0].items() >= {**login, "bootstrap.servers": "a:1"}.items()


def test_a_host_that_never_started_closes(kafka: Kafka) -> None:
    PipelineHost(kafka.bootstrap_servers, [FakeQuery("a").query]).close()


def test_two_queries_of_one_name_are_refused(kafka: Kafka) -> None:
    with pytest.raises(PipelineError, match="one name: a, a"):
        PipelineHost(kafka.bootstrap_servers, [FakeQuery("a").query, FakeQuery("a").query])


@pytest.mark.parametrize("name", ["no_such_module", "json:no_such_function", "json:__name__"])
def test_a_name_that_leads_nowhere_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match=name):
        load_pipeline(name)


def test_a_pipeline_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(context: Any) -> Any:
        raise LookupError("no table")

    with pytest.raises(PipelineError, match=r"pipeline own:run fails: LookupError\('no table'\)"):
        queries_of("own:run", fail, cast(PipelineContext, None))
    (tmp_path / "broken_pipelines.py").write_text("run(:")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PipelineError, match="module of pipeline broken_pipelines:run fails"):
        load_pipeline("broken_pipelines:run")


def test_a_pipeline_is_a_function_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("own_pipelines")
    module.pipeline = module.other = itertools.repeat
    monkeypatch.setitem(sys.modules, "own_pipelines", module)
    assert load_pipeline("own_pipelines") is load_pipeline("own_pipelines:other")
