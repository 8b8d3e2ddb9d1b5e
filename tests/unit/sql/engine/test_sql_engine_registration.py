"""Schemas that statements register."""

import json

import pytest

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.engine.applying import register_columns
from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import Column
from barnabas.sql.types import INTEGER

COLUMNS = [Column("A", INTEGER)]


def register(store, format_name="AVRO", columns=COLUMNS, *, wrapping=None, is_sink=True, **given):
    return register_columns(
        format_name, given, columns, "t-value", store, wrapping=wrapping, is_sink=is_sink
    )


def test_registered_as_the_statement_writes_it() -> None:
    store = MemoryRegistry()
    assert register(store) == 1
    assert register(store, wrapping=False) == 2
    assert register(store, "JSON_SR") == 3
    assert [store.by_id(i).type for i in (1, 2, 3)] == ["AVRO", "AVRO", "JSON"]
    assert json.loads(store.by_id(1).text)["type"] == "record"
    assert store.by_id(2).text == '"int"'
    assert store.subjects == {"t-value": [1, 2, 3]}


def test_nothing_to_register() -> None:
    assert register(None, "JSON") is None
    assert register(MemoryRegistry(), columns=[]) is None
    with pytest.raises(AnalysisError, match="Cannot create topic 't' with format AVRO"):
        register(None)


def test_a_source_keeps_the_schema_that_is_there() -> None:
    store = MemoryRegistry()
    store.add("t-value", "AVRO", '"string"')
    assert register(store, is_sink=False) == 1
    assert register(store) == 2


def test_a_schema_by_its_id(monkeypatch) -> None:
    store = MemoryRegistry()
    store.add("other-value", "AVRO", '"string"')
    assert register(store, schemaId="1") == 1
    assert store.subjects["t-value"] == [1]
    store.add("other-value", "AVRO", '"Far"', (("far", "{}"),))
    assert register(store, schemaId="2") == 2
    assert store.subjects["t-value"] == [1]
    monkeypatch.setattr(store, "register", lambda subject, schema_type, text: 9)
    assert register(store, schemaId="1") == 1
    store.subjects["t-value"] = []
    with pytest.raises(AnalysisError, match="is 9 which is different from provided 1"):
        register(store, schemaId="1")
    with pytest.raises(AnalysisError, match="Could not register schema for topic"):
        register(store, schemaId="7")


@pytest.mark.parametrize("retriable", [True, False])
def test_a_registry_that_refuses(monkeypatch, retriable) -> None:
    store = MemoryRegistry()

    def refuse(subject, schema_type, text) -> int:
        raise FormatError("no", retriable=retriable)

    monkeypatch.setattr(store, "register", refuse)
    with pytest.raises(AnalysisError, match="Could not register schema for topic t: no"):
        register(store)
