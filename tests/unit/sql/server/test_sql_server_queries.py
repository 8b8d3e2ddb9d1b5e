"""Pull and push queries, inserts and PRINT, in each form that clients ask for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from starlette.testclient import TestClient

from barnabas.sql.server.app import KsqlApi
from support.eventually import eventually
from support.sql_server_world import SqlWorld

STATEMENTS = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
    "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k;"
    "CREATE TABLE w AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY k;"
)


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    await found.ksql(STATEMENTS)
    for number, key in enumerate("abca"):
        found.write("s", key, {"V": number + 1}, number * 700)
    yield found
    await found.close()


PULLS: list[tuple[str, list[list[object]]]] = [
    ("SELECT * FROM t;", [["a", 5], ["b", 2], ["c", 3]]),
    ("SELECT * FROM t WHERE k = 'a';", [["a", 5]]),
    ("SELECT * FROM t WHERE k IN ('c', 'a', 'x');", [["c", 3], ["a", 5]]),
    ("SELECT * FROM t WHERE k > 'a';", [["b", 2], ["c", 3]]),
    ("SELECT * FROM t WHERE k >= 'b' AND total < 3;", [["b", 2]]),
    ("SELECT * FROM t WHERE k BETWEEN 'a' AND 'b';", [["a", 5], ["b", 2]]),
    ("SELECT total * 2 AS twice, k FROM t WHERE total > 4;", [[10, "a"]]),
    ("SELECT * FROM t WHERE k LIKE '%b%';", [["b", 2]]),
    ("SELECT * FROM t LIMIT 2;", [["a", 5], ["b", 2]]),
    ("SELECT * FROM t LIMIT 0;", []),
    ("SELECT k, ROWTIME FROM t WHERE k = 'a';", [["a", 2100]]),
    ("SELECT * FROM w WHERE k = 'a';", [["a", 0, 1000, 1], ["a", 2000, 3000, 1]]),
    ("SELECT n FROM w WHERE k = 'a' AND WINDOWSTART > 0;", [[1]]),
    ("SELECT k FROM w WHERE WINDOWSTART < '1970-01-01T00:00:01';", [["a"], ["b"]]),
    ("SELECT * FROM s;", [["a", 1], ["b", 2], ["c", 3], ["a", 4]]),
    ("SELECT v FROM s WHERE k = 'a' LIMIT 1;", [[1]]),
]


@pytest.mark.parametrize(("text", "rows"), PULLS, ids=[text for text, _ in PULLS])
async def test_pull_queries(world: SqlWorld, text: str, rows: list[list[object]]) -> None:
    assert await world.rows(text) == rows


async def test_a_deleted_row_is_gone(world: SqlWorld) -> None:
    await world.ksql(
        "CREATE TABLE base (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='base', "
        "value_format='JSON', partitions=1); CREATE TABLE copy AS SELECT * FROM base;"
    )
    world.write("base", "a", {"V": 1})
    world.write("base", "b", {"V": 2})
    world.write("base", "a", None)
    assert await world.rows("SELECT * FROM copy;") == [["b", 2]]


async def test_a_table_that_no_query_makes_is_not_queryable(world: SqlWorld) -> None:
    await world.ksql(
        "CREATE TABLE base (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='base', "
        "value_format='JSON', partitions=1);"
    )
    error = await world.error("SELECT * FROM base;", "/query")
    assert error["message"].startswith("The `BASE` table isn't queryable.")
    await world.ksql(
        "CREATE SOURCE TABLE kept (k STRING PRIMARY KEY, v INT) WITH "
        "(kafka_topic='base', value_format='JSON');"
    )
    world.write("base", "a", {"V": 1})
    assert await world.rows("SELECT * FROM kept;") == [["a", 1]]


async def test_scans_can_be_switched_off(world: SqlWorld) -> None:
    off = {"ksql.query.pull.table.scan.enabled": False}
    error = await world.error("SELECT * FROM t WHERE total = 1;", "/query", streamsProperties=off)
    assert error["message"].startswith("WHERE clause missing key column for disjunct: (TOTAL = 1)")
    assert await world.rows("SELECT * FROM t WHERE k = 'b';", **off) == [["b", 2]]


FORMS = {
    "application/vnd.ksql.v1+json": (
        '[{"header": {"queryId": "ID", "schema": "`K` STRING KEY, `TOTAL` INTEGER"}},\n'
        '{"row":{"columns":["b",2]}}]'
    ),
    "application/json": (
        '[{"queryId": "ID", "columnNames": ["K", "TOTAL"], "columnTypes": ["STRING", "INTEGER"]},\n'
        '["b",2]]'
    ),
    "application/vnd.ksqlapi.delimited.v1": (
        '{"queryId": "ID", "columnNames": ["K", "TOTAL"], "columnTypes": ["STRING", "INTEGER"]}\n'
        '["b",2]\n'
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_forms_of_rows(world: SqlWorld, form: str) -> None:
    body = {"sql": "SELECT * FROM t WHERE k = 'b';"}
    answer = await world.client.post("/query-stream", json=body, headers={"accept": form})
    assert answer.headers["content-type"].startswith(form)
    query_id = answer.text.split('"queryId": "')[1].split('"')[0]
    assert answer.text.replace(query_id, "ID") == FORMS[form]


async def test_a_push_query_ends_at_its_limit(world: SqlWorld) -> None:
    body = {"ksql": "SELECT k, v FROM s EMIT CHANGES LIMIT 2;"}
    answer = await world.post("/query", body)
    header, *rows, last = answer.json()
    assert header["header"]["schema"] == "`K` STRING, `V` INTEGER"
    assert rows == [{"row": {"columns": ["a", 1]}}, {"row": {"columns": ["b", 2]}}]
    assert last == {"finalMessage": "Limit Reached"}
    # Each row's line ends with the row: who reads lines has it at once.
    assert answer.text.splitlines()[1] == '{"row":{"columns":["a",1]}},'


async def test_a_push_query_is_listed_and_terminated(world: SqlWorld) -> None:
    body = {"sql": "SELECT * FROM s EMIT CHANGES;"}
    running = asyncio.create_task(world.post("/query-stream", body))
    await eventually(lambda: bool(world.engine.asking.push_queries), "the query is listed")
    (query_id,) = world.engine.asking.push_queries
    listed = (await world.ksql("SHOW QUERIES;"))[0]["queries"]
    assert (query_id, "PUSH") in [(query["id"], query["queryType"]) for query in listed]
    (answer,) = await world.ksql(f"TERMINATE {query_id};")
    assert (answer["@type"], answer["wasTerminated"]) == ("terminate_query", True)
    assert (await running).status_code == 200
    assert world.engine.asking.push_queries == {}


async def test_push_queries_are_limited(world: SqlWorld) -> None:
    world.engine.settings["ksql.max.push.queries"] = 0
    answer = await world.post("/query", {"ksql": "SELECT * FROM s EMIT CHANGES;"})
    assert (answer.status_code, answer.json()["error_code"]) == (429, 42900)


async def test_a_failing_query_tells_so_in_its_answer(world: SqlWorld) -> None:
    world.cluster.delete_topic("s")
    world.cluster.records["s"] = "no log"  # type: ignore[assignment]  # reading it fails
    answer = await world.post("/query", {"ksql": "SELECT * FROM s EMIT CHANGES;"})
    assert answer.status_code == 200
    assert answer.json()[-1]["errorMessage"]["error_code"] == 50000


async def test_inserts_are_acknowledged_in_order(world: SqlWorld) -> None:
    rows = [{"target": "s"}, {"K": "x", "V": 7}, {"`K`": "y", "v": 8}, {"nope": 1}, {"k": "z"}]
    text = "\n".join(map(json.dumps, rows)) + "\n"
    answer = await world.client.post("/inserts-stream", content=text)
    acknowledged = [json.loads(line) for line in answer.text.splitlines()]
    assert acknowledged[:2] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert acknowledged[2]["status"] == "error"
    assert "`NOPE` does not exist" in acknowledged[2]["message"]
    assert await world.rows("SELECT v FROM s WHERE k = 'y';") == [[8]]
    unknown = await world.client.post("/inserts-stream", content='{"target": "none"}\n')
    assert unknown.status_code == 400


async def test_a_topic_is_printed(world: SqlWorld) -> None:
    answer = await world.post("/query-stream", {"sql": "PRINT 's' FROM BEGINNING LIMIT 2;"})
    assert answer.text.splitlines() == [
        "Key format: KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 1970/01/01 00:00:00.000 Z, key: a, value: {"V": 1}, partition: 0',
        'rowtime: 1970/01/01 00:00:00.700 Z, key: b, value: {"V": 2}, partition: 0',
    ]
    missing = await world.post("/query-stream", {"sql": "PRINT 'S';"})
    assert "Did you mean" in missing.json()["message"]


async def test_the_web_socket_sends_schema_and_rows(world: SqlWorld) -> None:
    def talk(text: str) -> list[object]:
        with (
            TestClient(KsqlApi(world.engine).app()) as client,
            client.websocket_connect("/ws/query?request=" + json.dumps({"ksql": text})) as socket,
        ):
            return [json.loads(socket.receive_text()) for _ in range(2)]

    schema, row = await asyncio.to_thread(talk, "SELECT k FROM t WHERE k = 'b';")
    assert schema == [
        {
            "name": "K",
            "schema": {"type": "STRING", "fields": None, "memberSchema": None},
            "type": "KEY",
        }
    ]
    assert row == {"row": {"columns": ["b"]}}
    _, pushed = await asyncio.to_thread(talk, "SELECT v FROM s EMIT CHANGES LIMIT 1;")
    assert pushed == {"row": {"columns": [1]}}


async def test_the_server_tells_of_itself(world: SqlWorld) -> None:
    info = (await world.client.get("/info")).json()["KsqlServerInfo"]
    assert (info["ksqlServiceId"], info["serverStatus"]) == ("default_", "RUNNING")
    health = (await world.client.get("/healthcheck")).json()
    assert health["isHealthy"] is True
    status = (await world.client.get("/clusterStatus")).json()["clusterStatus"]
    assert status["localhost:8088"]["hostAlive"] is True
    assert (await world.client.get("/is_valid_property/auto.offset.reset")).json() is True
    denied = await world.client.get("/is_valid_property/ksql.service.id")
    assert denied.json()["error_code"] == 40000
    assert (await world.client.get("/nowhere")).json()["error_code"] == 40400


async def test_values_of_every_type_are_written(world: SqlWorld) -> None:
    rows = await world.rows(
        "SELECT CAST('2020-01-31' AS DATE), CAST('12:30' AS TIME), "
        "CAST('2020-01-31T12:30:00.5' AS TIMESTAMP), CAST(1.50 AS DECIMAL(4, 2)), "
        "ARRAY[1, NULL], MAP('a' := TRUE), STRUCT(x := 1.5E0), TO_BYTES('!', 'ascii') "
        "FROM s LIMIT 1;"
    )
    dates = ["2020-01-31", "12:30", "2020-01-31T12:30:00.500"]
    assert rows == [[*dates, 1.5, [1, None], {"a": True}, {"X": 1.5}, "IQ=="]]
