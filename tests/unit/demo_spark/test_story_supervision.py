"""Queries that fail are started again from their checkpoints, and not for ever."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from barnabas.app.testing import Kafka
from barnabas.demo.spark import stories
from barnabas.demo.spark.queries import STORY_QUERIES, StoryQuery
from barnabas.demo.spark.stories import Stories, StoryOptions
from barnabas.pipeline.registry_schemas import RegistrySchemas
from barnabas.pipeline.topic_table import TableEmptyError

FAILING = STORY_QUERIES[1].name


class FakeStream:
    """A streaming query as Spark shows it."""

    def __init__(self, name: str, *, fails: bool = False, why: str = "") -> None:
        self.name = name
        self.why = why or "the cluster is away\nat line 1"
        self.isActive = not fails
        self.status = {"isTriggerActive": False}
        self.lastProgress: dict[str, Any] | None = None
        self.recentProgress: list[dict[str, Any]] = []

    def exception(self) -> StreamingQueryException | None:
        return None if self.isActive else StreamingQueryException(self.why)

    def stop(self) -> None:
        self.isActive = False

    def finish_batch(self, batch_id: int, topic: str) -> None:
        self.lastProgress = {
            "batchId": batch_id,
            "numInputRows": 5,
            "stateOperators": [],
            "sources": [{"endOffset": json.dumps({topic: {"0": (batch_id + 1) * 5}})}],
        }
        self.recentProgress = [*self.recentProgress, self.lastProgress][-100:]


class SuperviseFakes(Stories):
    """Stories whose streams are fakes; the failing query fails `failures` times."""

    def __init__(self, kafka: Kafka, directory: Path, failures: int) -> None:
        options = StoryOptions(
            kafka.bootstrap_servers, "http://127.0.0.1:1", str(directory), str(directory)
        )
        super().__init__(None, options, str(directory / "progress.json"))  # type: ignore[arg-type]  # no Spark here
        self.failures = failures
        self.why = ""
        self.table_is_empty_for = 0
        self.streams: dict[str, FakeStream] = {}
        self.starts: list[str] = []

    def _start(self, query: StoryQuery) -> Any:
        if self.table_is_empty_for:
            self.table_is_empty_for -= 1
            raise TableEmptyError("the table stations has no rows")
        self.starts.append(query.name)
        fails = query.name == FAILING and self.failures > 0
        self.failures -= fails
        self.streams[query.name] = FakeStream(query.name, fails=fails, why=self.why)
        return self.streams[query.name]


class RoundsThenStop(Flag):
    """A flag that lets `run` look at the queries a number of times."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds

    def wait(self, timeout: float | None = None) -> bool:
        self.rounds -= 1
        return self.rounds < 0


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories, "_RESTART_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(stories, "_EMPTY_TABLE_PAUSE_SECONDS", 0.0)


def test_a_query_that_fails_is_started_again(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = SuperviseFakes(kafka, tmp_path, failures=3)
    supervised.start()
    supervised.run(RoundsThenStop(10))
    supervised.stop()
    assert supervised.starts.count(FAILING) == 4
    assert len(supervised.starts) == len(STORY_QUERIES) + 3
    said = capsys.readouterr().out
    assert f"{FAILING} starts again from its checkpoint: the cluster is away\n" in said
    assert json.loads((tmp_path / "progress.json").read_text())["state"] == "stopped"


class OneSchema(RegistrySchemas):
    """A registry that has one Avro schema."""

    def avro_of(self, schema_id: int) -> str | None:
        return "{}" if schema_id == 7 else None


@pytest.mark.parametrize(("schema_id", "pauses"), [(7, False), (8, True)])
def test_a_query_that_meets_a_new_schema_starts_again_at_once(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema_id: int, pauses: bool
) -> None:
    """Unless nobody has that schema: what was written with it cannot be read."""
    monkeypatch.setattr(stories, "_RESTART_PAUSE_SECONDS", 1e6)
    monkeypatch.setattr(stories, "RegistrySchemas", OneSchema)
    supervised = SuperviseFakes(kafka, tmp_path, failures=1)
    unknown = "written with a schema that this query does not know yet"
    supervised.why = f"a value was {unknown}: id {schema_id}\n"
    supervised.start()
    supervised.run(RoundsThenStop(3))
    supervised.stop()
    assert supervised.starts.count(FAILING) == (1 if pauses else 2)


def test_a_query_that_fails_again_and_again_ends_the_pipeline(kafka: Kafka, tmp_path: Path) -> None:
    supervised = SuperviseFakes(kafka, tmp_path, failures=1000)
    supervised.start()
    with pytest.raises(StreamingQueryException, match="away"):
        supervised.run(RoundsThenStop(1000))
    supervised.stop()
    assert supervised.starts.count(FAILING) == stories._RESTARTS_IN_A_ROW_MAX + 1


def test_queries_wait_for_the_station_table(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    supervised = SuperviseFakes(kafka, tmp_path, failures=0)
    supervised.table_is_empty_for = len(STORY_QUERIES) * (stories._RESTARTS_IN_A_ROW_MAX + 2)
    supervised.start()
    assert json.loads((tmp_path / "progress.json").read_text())["state"] == "running"
    assert supervised.starts == []
    supervised.run(RoundsThenStop(stories._RESTARTS_IN_A_ROW_MAX + 3))
    supervised.stop()
    assert sorted(supervised.starts) == sorted(query.name for query in STORY_QUERIES)
    assert capsys.readouterr().out == ""


def test_stopping_while_the_table_is_empty_is_well(kafka: Kafka, tmp_path: Path) -> None:
    supervised = SuperviseFakes(kafka, tmp_path, failures=0)
    supervised.table_is_empty_for = 1000
    supervised.start()
    supervised.run(RoundsThenStop(2))
    supervised.stop()
    assert json.loads((tmp_path / "progress.json").read_text())["state"] == "stopped"


def test_the_reason_is_pythons_own() -> None:
    wrapped = "An exception was raised by the Python Proxy. Return Message: Traceback:\n  File x\n"
    error = f"{wrapped}barnabas.TableChangedError: the table t has changed\n\n\tat org.apache"
    assert stories._reason_of(Exception(error)).endswith(
        "TableChangedError: the table t has changed"
    )
    assert stories._reason_of(Exception("the cluster is away\nat line 1")) == "the cluster is away"
    assert stories._reason_of(ValueError()) == "ValueError"


def test_batches_finished_between_two_looks_all_count(kafka: Kafka, tmp_path: Path) -> None:
    supervised = SuperviseFakes(kafka, tmp_path, failures=0)
    supervised.start()
    query = STORY_QUERIES[0]
    stream = supervised.streams[query.name]
    stream.finish_batch(0, query.topic)
    supervised.run(RoundsThenStop(2))
    for batch_id in (1, 2, 3):
        stream.finish_batch(batch_id, query.topic)
    supervised.run(RoundsThenStop(2))
    supervised.stop()
    progress = json.loads((tmp_path / "progress.json").read_text())["queries"][query.name]
    assert (progress["batches"], progress["rows"], progress["offsets"]) == (4, 20, {"0": 20})
