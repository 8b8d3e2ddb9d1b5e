"""ASSERT: waits until a topic or a schema is there, or is not."""

from __future__ import annotations

import time
from collections.abc import Callable

from barnabas.schemas.errors import FormatError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.server.entities import Entity, entity
from barnabas.sql.server.errors import ASSERTION_FAILED, ApiError
from barnabas.sql.syntax import tree

_TIMEOUT_MS = 1_000
_PAUSE_S = 0.1


class Assertions:
    """Asks the cluster and the schema registry of an engine."""

    def __init__(self, engine: KsqlEngine) -> None:
        self._engine = engine

    def answer(self, statement: tree.AssertTopic | tree.AssertSchema, text: str) -> Entity:
        """The answer once it is so; raises ApiError if it is not so in time."""
        if isinstance(statement, tree.AssertTopic):
            return self._assert_topic(statement, text)
        return self._assert_schema(statement, text)

    def _assert_topic(self, statement: tree.AssertTopic, text: str) -> Entity:
        _wait_for(lambda: self._topic_problem(statement), statement.timeout_ms)
        return entity("assert_topic", text, topicName=statement.topic, exists=statement.exists)

    def _topic_problem(self, statement: tree.AssertTopic) -> str:
        topic = self._engine.cluster.topics().get(statement.topic)
        if not statement.exists:
            return "" if topic is None else f"Topic {statement.topic} exists"
        if topic is None:
            return f"Topic {statement.topic} does not exist"
        actual = {"partitions": topic.partitions, "replicas": topic.replicas[0]}
        problems = []
        for name, wanted in statement.properties.items():
            if name.lower() not in actual:
                problems.append(f"Cannot assert unknown topic property: {name}")
            elif actual[name.lower()] != wanted:
                problems.append(
                    f"Mismatched configuration for topic {statement.topic}: For config "
                    f"{name.lower()}, expected {wanted} got {actual[name.lower()]}"
                )
        return "\n".join(problems)

    def _assert_schema(self, statement: tree.AssertSchema, text: str) -> Entity:
        _wait_for(lambda: self._schema_problem(statement), statement.timeout_ms)
        return entity(
            "assert_schema",
            text,
            subject=statement.subject,
            id=statement.schema_id,
            exists=statement.exists,
        )

    def _schema_problem(self, statement: tree.AssertSchema) -> str:
        subject, schema_id = statement.subject, statement.schema_id
        named = (f" subject name {subject}" if subject else "") + (
            f" id {schema_id}" if schema_id is not None else ""
        )
        exists = self._has_schema(subject, schema_id)
        if exists == statement.exists:
            return ""
        return f"Schema with{named} {'exists' if exists else 'does not exist'}"

    def _has_schema(self, subject: str | None, schema_id: int | None) -> bool:
        schemas = self._engine.schemas
        if schemas is None:
            return False
        try:
            if subject is None:
                assert schema_id is not None
                schemas.by_id(schema_id)
                return True
            latest = schemas.latest(subject)
            return latest is not None and schema_id in (None, latest.id)
        except FormatError as error:
            if error.retriable:
                raise ApiError(
                    ASSERTION_FAILED, f"Cannot check schema existence: {error}"
                ) from error
            return False


def _wait_for(problem: Callable[[], str], timeout_ms: int | None) -> None:
    """Wait until there is no problem; raises ApiError if there still is one at the end."""
    given = _TIMEOUT_MS if timeout_ms is None else timeout_ms
    deadline = time.monotonic() + given / 1000
    while message := problem():
        if time.monotonic() >= deadline:
            raise ApiError(ASSERTION_FAILED, message)
        time.sleep(_PAUSE_S)
