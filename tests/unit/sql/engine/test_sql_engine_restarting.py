"""Failed queries: whose fault it is, when they are started again, and that they then go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.spark.supervision import QueryState
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.config import restarts
from barnabas.sql.query_failures import failure_of, failure_type, shortened
from barnabas.sql.runtime.topics import TopicRecord
from support.node_process import wait_until
from support.sql_server_world import SqlWorld

TYPES: list[tuple[str, str]] = [
    ("ClusterError: Topic 's' does not exist.", "USER"),
    ("MissingTopicError: Topic s of query CTAS_T_1 is missing", "USER"),
    ("KafkaError: Broker: Unknown topic or partition", "USER"),
    ("Broker: Topic authorization failed", "USER"),
    ("CheckpointError: /state/q is the checkpoint of another plan: its state …", "USER"),
    ("java.io.IOException: No space left on device", "SYSTEM"),
    ("OSError: [Errno 27] File too large: '/state/q/plan.json.partial'", "SYSTEM"),
    ("CheckpointError: cannot read /state/q/plan.json: Expecting value", "SYSTEM"),
    ("KafkaException: Local: Broker transport failure", "SYSTEM"),
    ("org.apache.kafka.common.errors.TimeoutException: Timed out", "SYSTEM"),
    ("SparkException: Python worker exited unexpectedly (crashed)", "SYSTEM"),
    ("ZeroDivisionError: division by zero", "UNKNOWN"),
    ("AttributeError: no 'write'\n[STREAM_FAILED] … raised by the Python Proxy", "UNKNOWN"),
]


@pytest.mark.parametrize(("message", "kind"), TYPES)
def test_failures_have_ksqldb_s_types(message: str, kind: str) -> None:
    assert failure_type(message) == kind


def test_settings_may_classify_failures() -> None:
    settings = {
        "ksql.error.classifier.regex.1": "SYSTEM .*division.*",
        "ksql.error.classifier.regex.2": "USER [",
        "ksql.error.classifier.regex.3": "NOBODY .*",
    }
    assert failure_type("division by zero", settings) == "SYSTEM"
    assert failure_type("anything else", settings) == "UNKNOWN"


def test_a_message_is_without_the_frames_of_a_jvm() -> None:
    assert shortened("failed\n\tat a.b(C.java:1)\nbecause") == "failed\nbecause"


def test_the_reason_at_the_end_of_a_traceback_is_told_and_classified() -> None:
    """As Spark has it of a function of `foreachBatch`, through Py4J and our own functions."""
    frames = [f'  File "/a/b.py", line {n}, in call\n    call()\n    ^^^^^^' for n in range(8)]
    lines = ["Return Message: Traceback (most recent call last):", *frames]
    text = "\n".join((*lines, ": java.io.IOException: File too large", "\tat a.b(C.java:1)"))
    failure = failure_of(RuntimeError(text), None, 7)
    assert failure.type == "SYSTEM"
    assert failure.message.endswith("File too large")


def test_the_pauses_are_ksqldb_s() -> None:
    restarting = restarts({"ksql.query.retry.backoff.max.ms": "20000"})
    assert not restarting.is_due(QueryState.ERROR, 0)
    assert restarting.due_ms == 15_000
    assert restarting.is_due(QueryState.ERROR, 15_000)
    assert not restarting.is_due(QueryState.ERROR, 15_001)
    assert restarting.due_ms == 35_001


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    found.settings["ksql.query.retry.backoff.initial.ms"] = 1
    found.settings["ksql.query.retry.backoff.max.ms"] = 1
    await found.restart()
    yield found
    await found.close()


STORY = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
    "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k;"
)


async def test_a_failed_query_goes_on_once_its_cause_is_gone(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ksql(STORY)
    real = world.cluster.write

    def refuse(topic: str, record: TopicRecord) -> None:
        if topic == "T":
            raise ClusterError("Local: Broker transport failure")
        real(topic, record)

    monkeypatch.setattr(world.cluster, "write", refuse)
    world.write("s", "a", {"V": 1})
    (running,) = world.engine.queries.values()
    wait_until(lambda: running.restarts >= 2, "two restarts")
    assert running.failures[-1].type == "SYSTEM"
    assert len(running.failures) <= 10
    (described,) = (await world.ksql("SHOW QUERIES EXTENDED;"))[0]["queryDescriptions"]
    assert described["queryErrors"][-1]["errorMessage"] == "Local: Broker transport failure"

    monkeypatch.undo()
    wait_until(lambda: running.state is QueryState.RUNNING, "the query runs again")
    world.write("s", "a", {"V": 2})
    assert await world.rows("SELECT * FROM t;") == [["a", 3]]


async def test_a_query_waits_for_its_topic(world: SqlWorld) -> None:
    await world.ksql(STORY)
    await world.close()
    topic = world.cluster._topics.pop("s")
    follow = world.cluster.follow

    def refused(topics: Any, *given: Any, **options: Any) -> Any:
        if "s" in topics and "s" not in world.cluster.topics():
            raise ClusterError("Topic 's' does not exist.")
        return follow(topics, *given, **options)

    world.cluster.follow = refused  # type: ignore[method-assign]
    world.engine = world._engine()
    world.client = world._client()
    (running,) = world.engine.queries.values()
    assert running.state is QueryState.ERROR
    assert running.failures[-1].type == "USER"
    world.cluster._topics["s"] = topic
    wait_until(lambda: running.state is QueryState.RUNNING, "the query runs again")
    world.write("s", "a", {"V": 1})
    assert await world.rows("SELECT * FROM t;") == [["a", 1]]


async def test_a_query_that_is_terminated_is_not_started_again(world: SqlWorld) -> None:
    await world.ksql(STORY)
    (running,) = world.engine.queries.values()
    assert running.hosted is not None
    running.hosted._fail(ValueError("broken"))  # type: ignore[attr-defined]
    await world.ksql("TERMINATE ALL;")
    world.engine._running.restart(running)
    assert running.is_ended
    assert world.engine.queries == {}
    assert not any("CTAS_T_1" in group for group in world.cluster._groups if group)
