"""POST /ksql: statements, their answers, what a restart brings back, and errors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.sql.engine.command_log import CommandLogError
from barnabas.sql.engine.local_runner import LocalQuery
from barnabas.sql.engine.queries import MicroBatch
from support.sql_server_world import SqlWorld

STREAM = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
)
TABLE = "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k;"


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    yield found
    await found.close()


async def test_commands_are_answered_with_their_ids_and_numbers(world: SqlWorld) -> None:
    answers = await world.ksql(STREAM + TABLE)
    assert [a["@type"] for a in answers] == ["currentStatus"] * 2
    assert [a["commandId"] for a in answers] == ["stream/`S`/create", "table/`T`/create"]
    assert [a["commandSequenceNumber"] for a in answers] == [0, 1]
    assert answers[1]["commandStatus"] == {
        "status": "SUCCESS",
        "message": "Created query with ID CTAS_T_1",
        "queryId": "CTAS_T_1",
    }
    status = await world.client.get("/status/stream/`S`/create")
    assert status.json()["message"] == "Stream created"
    missing = await world.client.get("/status/stream/`X`/create")
    assert (missing.status_code, missing.json()["error_code"]) == (404, 40400)


async def test_the_command_topic_holds_what_ksqldb_s_holds(world: SqlWorld) -> None:
    await world.ksql(STREAM, streamsProperties={"auto.offset.reset": "earliest"})
    (entry,) = world.entries
    assert json.loads(entry.key) == "stream/`S`/create"
    value = json.loads(entry.value)
    assert value["statement"] == STREAM
    assert value["streamsProperties"] == {"ksql.streams.auto.offset.reset": "earliest"}
    assert value.keys() >= {"originalProperties", "plan", "version"}


async def test_a_restart_resumes_queries_and_their_state(world: SqlWorld) -> None:
    await world.ksql(STREAM + TABLE + "CREATE TYPE money AS DECIMAL(9, 2);")
    world.write("s", "a", {"V": 1})
    await world.restart()
    assert len(world.cluster.records["T"]) == 1
    world.write("s", "a", {"V": 2})
    assert await world.rows("SELECT * FROM t;") == [["a", 3]]
    assert len(world.cluster.records["T"]) == 2
    assert list((await world.ksql("SHOW TYPES;"))[0]["types"]) == ["MONEY"]
    (query,) = (await world.ksql("SHOW QUERIES;"))[0]["queries"]
    assert (query["id"], query["state"], query["sinks"]) == ("CTAS_T_1", "RUNNING", ["T"])


async def test_a_paused_query_stays_paused_and_misses_nothing(world: SqlWorld) -> None:
    await world.ksql(STREAM + TABLE + "PAUSE ctas_t_1;")
    world.write("s", "a", {"V": 1})
    await world.restart()
    (query,) = (await world.ksql("SHOW QUERIES;"))[0]["queries"]
    assert query["state"] == "PAUSED"
    assert await world.rows("SELECT * FROM t;") == []
    await world.ksql("RESUME ctas_t_1;")
    assert await world.rows("SELECT * FROM t;") == [["a", 1]]


async def test_a_replaced_query_goes_on(world: SqlWorld) -> None:
    await world.ksql(STREAM + "CREATE STREAM c AS SELECT * FROM s;")
    world.write("s", "a", {"V": 1})
    (answer,) = await world.ksql("CREATE OR REPLACE STREAM c AS SELECT * FROM s WHERE v > 1;")
    (warning,) = answer["warnings"]
    assert "Its state is rebuilt from its topics" in warning["message"]
    world.write("s", "b", {"V": 1})
    world.write("s", "c", {"V": 2})
    assert [record.key for record in world.cluster.records["C"]] == [b"a", b"c"]
    assert len(world.engine.queries) == 1
    error = await world.error("CREATE OR REPLACE STREAM c AS SELECT * FROM s PARTITION BY v;")
    assert "Cannot upgrade data source" in error["message"] or "upgrade" in error["message"]
    assert len(world.engine.queries) == 1


async def test_a_source_in_use_is_not_dropped(world: SqlWorld) -> None:
    await world.ksql(STREAM + TABLE)
    error = await world.error("DROP STREAM s;")
    assert error["@type"] == "statement_error"
    assert error["error_code"] == 40001
    assert error["message"].startswith("Cannot drop S.")
    answers = await world.ksql("DROP TABLE t DELETE TOPIC; DROP STREAM s;")
    assert answers[0]["commandStatus"]["message"] == "Source `T` (topic: T) was dropped."
    assert "T" not in world.cluster.topics()
    assert world.engine.queries == {}
    await world.restart()
    assert world.engine.metastore.sources == {}


async def test_nothing_is_done_if_one_statement_of_a_request_is_wrong(world: SqlWorld) -> None:
    error = await world.error(STREAM + "CREATE STREAM c AS SELECT missing FROM s;")
    assert error["statementText"] == "CREATE STREAM c AS SELECT missing FROM s;"
    assert error["entities"] == []
    assert world.entries == []


ERRORS: list[tuple[str, int, str]] = [
    ("SELECT * FROM s;", 40002, "/query"),
    ("PRINT 's';", 40002, "/query"),
    ("nonsense;", 40001, "line 1:1: Syntax Error"),
    ("TERMINATE none_1;", 40001, "Unknown queryId: NONE_1"),
    ("DESCRIBE missing;", 40001, "Could not find STREAM/TABLE 'MISSING' in the Metastore"),
    ("DESCRIBE FUNCTION missing;", 40001, "Can't find any functions with the name 'missing'"),
    ("EXPLAIN missing;", 40001, "Query with id:MISSING does not exist"),
    ("", 40000, '"ksql" field must be populated'),
    ("ASSERT TOPIC missing TIMEOUT 0 SECONDS;", 41700, "Topic missing does not exist"),
    ("SET 'no.such.property'='1';", 40000, "Not recognizable as ksql"),
]


@pytest.mark.parametrize(("text", "code", "message"), ERRORS)
async def test_errors_have_ksqldb_s_codes(
    world: SqlWorld, text: str, code: int, message: str
) -> None:
    await world.ksql(STREAM)
    error = await world.error(text)
    assert (error["error_code"], message in error["message"]) == (code, True), error


async def test_variables_and_settings_hold_for_their_request(world: SqlWorld) -> None:
    text = "DEFINE name = 'made'; " + STREAM.replace(" s ", " ${name} ", 1)
    (answer,) = await world.ksql(text)
    assert answer["commandId"] == "stream/`MADE`/create"
    (answer,) = await world.ksql("DROP STREAM ${given};", sessionVariables={"given": "made"})
    assert answer["commandId"] == "stream/`MADE`/drop"
    answers = await world.ksql("SET 'auto.offset.reset'='latest'; SHOW PROPERTIES;")
    assert "ksql.streams.auto.offset.reset" in answers[-1]["overwrittenProperties"]
    error = await world.error(STREAM, streamsProperties={"ksql.service.id": "x"})
    assert error["error_code"] == 40000


async def test_sources_are_described(world: SqlWorld) -> None:
    await world.ksql(STREAM + TABLE)
    described = (await world.ksql("DESCRIBE t EXTENDED;"))[0]["sourceDescription"]
    assert described["fields"] == [
        {"name": "K", "schema": _plain("STRING"), "type": "KEY"},
        {"name": "TOTAL", "schema": _plain("INTEGER")},
    ]
    assert [query["id"] for query in described["writeQueries"]] == ["CTAS_T_1"]
    assert (described["partitions"], described["replication"]) == (1, 1)
    assert described["statement"] == TABLE
    streams = (await world.ksql("SHOW STREAMS;"))[0]["streams"]
    assert streams == [
        {
            "type": "STREAM",
            "name": "S",
            "topic": "s",
            "keyFormat": "KAFKA",
            "valueFormat": "JSON",
            "isWindowed": False,
        }
    ]
    topics = (await world.ksql("SHOW TOPICS;"))[0]["topics"]
    assert topics == [{"name": "T", "replicaInfo": [1]}, {"name": "s", "replicaInfo": [1]}]


async def test_plans_and_functions_are_explained(world: SqlWorld) -> None:
    await world.ksql(STREAM + TABLE)
    running = (await world.ksql("EXPLAIN ctas_t_1;"))[0]["queryDescription"]
    assert running["state"] == "RUNNING"
    assert running["ksqlHostQueryStatus"] == {"localhost:8088": "RUNNING"}
    asked = (await world.ksql("EXPLAIN SELECT k FROM s EMIT CHANGES;"))[0]["queryDescription"]
    assert [field["name"] for field in asked["fields"]] == ["K"]
    assert asked["sources"] == ["S"]
    function = (await world.ksql("DESCRIBE FUNCTION ucase;"))[0]
    assert (function["@type"], function["type"]) == ("describe_function", "SCALAR")
    names = {f["name"] for f in (await world.ksql("SHOW FUNCTIONS;"))[0]["functions"]}
    assert {"UCASE", "COUNT", "EXPLODE"} <= names


async def test_a_query_that_runs_in_micro_batches_shows_the_last(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ksql(STREAM + TABLE)
    explained = (await world.ksql("EXPLAIN ctas_t_1;"))[0]["queryDescription"]
    assert "microBatches" not in explained  # it runs record by record
    batch = MicroBatch(3, 1_000, 55, 7, {"addBatch": 40})
    monkeypatch.setattr(LocalQuery, "batches", lambda _: [batch])
    explained = (await world.ksql("EXPLAIN ctas_t_1;"))[0]["queryDescription"]
    assert explained["microBatches"] == [
        {
            "batchId": 3,
            "timestamp": 1_000,
            "durationMs": 55,
            "inputRows": 7,
            "phasesMs": {"addBatch": 40},
        }
    ]
    asked = (await world.ksql("EXPLAIN SELECT k FROM s EMIT CHANGES;"))[0]["queryDescription"]
    assert "microBatches" not in asked


def _plain(kind: str) -> dict[str, Any]:
    return {"type": kind, "fields": None, "memberSchema": None}


async def test_schemas_are_registered(world: SqlWorld) -> None:
    await world.ksql(
        "CREATE STREAM a (k STRING KEY, v INT) WITH (kafka_topic='a', value_format='AVRO', "
        "partitions=1);"
    )
    assert list(world.schemas.subjects) == ["a-value"]
    await world.ksql("ASSERT SCHEMA SUBJECT 'a-value';")


async def test_a_schema_that_a_statement_names_by_its_id_is_registered(world: SqlWorld) -> None:
    text = (
        '{"type": "record", "name": "V", "fields": [{"name": "V", "type": ["null", "int"], '
        '"default": null}]}'
    )
    schema_id = world.schemas.add("other-value", "AVRO", text)
    await world.ksql(
        "CREATE STREAM a (k STRING KEY) WITH (kafka_topic='a', value_format='AVRO', "
        f"value_schema_id={schema_id}, partitions=1); CREATE STREAM b "
        f"WITH (value_format='AVRO', value_schema_id={schema_id}) AS SELECT * FROM a;"
    )
    for subject in ("a-value", "B-value"):
        assert world.schemas.subjects[subject] == [schema_id]


async def test_columns_of_the_registry_are_those_that_an_earlier_statement_has_registered(
    world: SqlWorld,
) -> None:
    await world.ksql(
        "CREATE STREAM a (k STRING KEY, v INT) WITH (kafka_topic='a', value_format='AVRO', "
        "partitions=1); CREATE STREAM wide (k STRING KEY, v INT, w INT) "
        "WITH (kafka_topic='wide', value_format='JSON', partitions=1);"
    )
    await world.ksql(
        "CREATE STREAM b WITH (kafka_topic='a', value_format='AVRO') AS SELECT * FROM wide; "
        "CREATE STREAM c (k STRING KEY) WITH (kafka_topic='a', value_format='AVRO'); "
        "CREATE STREAM d AS SELECT * FROM c; "
        "INSERT INTO c (k, v) VALUES ('x', 1);"
    )
    for name in ("C", "D"):
        columns = world.engine.metastore.must(name).schema.columns
        assert [column.name for column in columns] == ["K", "V", "W"]


async def test_a_command_that_cannot_be_read_stops_changes(world: SqlWorld) -> None:
    await world.ksql(STREAM)
    world.entries.append(world.entries[0]._replace(sequence=1, value=b"{}"))
    error = await world.error(TABLE)
    assert "The command log cannot be followed" in error["message"]
    health = await world.client.get("/healthcheck")
    assert (health.status_code, health.json()["isHealthy"]) == (503, False)


async def test_a_command_topic_that_cannot_be_read_is_told_of(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent() -> None:
        raise CommandLogError("cannot read the command topic")

    monkeypatch.setattr(world.engine._log, "read_new", silent)
    error = await world.error(STREAM)
    assert (error["error_code"], error["message"]) == (50000, "cannot read the command topic")
