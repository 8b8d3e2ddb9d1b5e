"""SQL in the console, over a SQL server in memory: asked as the pages ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from barnabas.console.services.asking import RefusedError
from barnabas.console.services.rest import Rest
from barnabas.console.services.sql import (
    EVERYTHING,
    SqlService,
    stages_of,
    weigh,
    without_secrets,
)
from barnabas.console.services.topics import Asked
from barnabas.sql.engine.local_runner import LocalQuery
from barnabas.sql.engine.queries import MicroBatch
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.peers import Peers
from barnabas.sql.server.protection import protected
from support.connect.web_service import Answer, WebService
from support.console_world import Console, console
from support.http_server import served
from support.node_process import wait_until
from support.sql_server_world import SqlWorld

ORDERS = (
    "CREATE STREAM orders (id VARCHAR KEY, amount INT) "
    "WITH (kafka_topic='orders', value_format='JSON', partitions=1);"
)
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"
USERS = "ann: pw,viewer\nbob: pw,editor\neve: pw,shop\nroot: pw,admin\n"


@pytest.fixture
def server() -> Iterator[tuple[SqlWorld, str]]:
    world = SqlWorld()
    api = KsqlApi(world.engine)
    with served(protected(api.app(), {}, watch=api.watch())) as url:
        yield world, url
    asyncio.run(world.close())


@pytest.fixture
def page(server: tuple[SqlWorld, str]) -> Iterator[Console]:
    with console({"bootstrap.servers": "127.0.0.1:1", "sql.url": server[1]}) as found:
        yield found


@pytest.fixture
def guarded(server: tuple[SqlWorld, str], tmp_path: Path) -> Iterator[Console]:
    users = tmp_path / "users"
    users.write_text(USERS)
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "sql.url": server[1],
        "console.users.file": str(users),
        "console.masked.fields": "email",
        "console.roles.shop.rights": "view,read,unmasked,edit,admin",
        "console.roles.shop.topics": "shop-*",
        "console.roles.shop.queries": "CTAS_*",
    }
    with console(values) as found:
        yield found


def told(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def run(page: Console, text: str, **more: str) -> Any:
    return page.done("POST", "sql/statements", {"sql": text, **more})


def test_statements_lists_and_plans(page: Console) -> None:
    assert page.get("me")["services"] == ["sql"]
    assert run(page, ORDERS)[0]["commandStatus"]["message"] == "Stream created"
    assert "CTAS_TOTALS_1" in run(page, TOTALS)[0]["commandStatus"]["message"]
    rows = page.get("sql/sources")["rows"]
    assert [(row["name"], row["kind"], row["topic"]) for row in rows] == [
        ("ORDERS", "STREAM", "orders"),
        ("TOTALS", "TABLE", "TOTALS"),
    ]
    assert page.get("sql/sources", search="tot")["total"] == 1
    (query,) = page.get("sql/queries", search="ctas")["rows"]
    assert (query["state"], query["sinks"]) == ("RUNNING", ["TOTALS"])
    found = page.get("sql/queries/CTAS_TOTALS_1")
    assert (found["sources"], found["sinks"]) == (["ORDERS"], ["TOTALS"])
    assert "Store: Aggregate-1" in found["topology"]
    assert [step["kind"] for step in found["plan"]][:: len(found["plan"]) - 1] == ["source", "sink"]
    assert found["plan"][-1]["detail"] == "TOTALS"
    wrong = told(page.send("POST", "sql/statements", {"sql": "CREATE NOTHING;"}), 409)
    assert "NOTHING" in wrong["error"]
    told(page.http.get("/api/sql/queries/a%3B%20DROP"), 409)
    told(page.send("DELETE", "sql/queries/CTAS_TOTALS_1", {"confirm": "CTAS"}), 400)
    page.done("DELETE", "sql/queries/CTAS_TOTALS_1", {"confirm": "CTAS_TOTALS_1"})
    assert page.get("sql/queries")["rows"] == []
    body = {"kind": "TABLE", "confirm": "TOTALS"}
    page.done("DELETE", "sql/sources/TOTALS", body)
    strange = {"kind": "TABLE", "confirm": "a`b"}
    told(page.send("DELETE", "sql/sources/a%60b", strange), 409)
    assert page.get("sql/sources")["total"] == 1
    told(page.send("POST", "sql/statements", {"sql": "DROP STREAM orders;"}), 400)
    run(page, "DROP STREAM orders;", confirm="orders")
    assert page.get("sql/sources")["total"] == 0
    deeds = [one["action"] for one in page.get("audit")["rows"]]
    assert deeds.count("run SQL") == 4
    assert "drop table" in deeds


def test_lag_and_micro_batches_of_a_query(
    page: Console, server: tuple[SqlWorld, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(page, ORDERS)
    run(page, TOTALS)
    server[0].write("orders", "a", {"amount": 3})

    def lag() -> Any:
        return page.get("sql/queries/CTAS_TOTALS_1/activity")["lag"]

    wait_until(lambda: lag() == [{"topic": "orders", "lag": 0, "partitions": 1}], "it reads", 60)
    found = page.get("sql/queries/CTAS_TOTALS_1/activity")
    assert found["group"].endswith("query_CTAS_TOTALS_1")
    assert found["batches"] is None  # only Spark has batches
    batch = MicroBatch(3, 1_000, 55, 7, {"addBatch": 40})
    monkeypatch.setattr(LocalQuery, "batches", lambda _: [batch])
    monkeypatch.setattr(LocalQuery, "positions", lambda _: {("orders", 0): (0, 1)})
    found = page.get("sql/queries/CTAS_TOTALS_1/activity")
    assert found["batches"] == [{"id": 3, "began_ms": 1_000, "duration_ms": 55, "input_rows": 7}]
    assert found["lag"] == [{"topic": "orders", "lag": 1, "partitions": 1}]
    told(page.http.get("/api/sql/queries/NOTHING_1/activity"), 409)


def test_the_progress_of_a_query_that_another_server_runs(
    page: Console, server: tuple[SqlWorld, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(page, ORDERS)
    run(page, TOTALS)
    world, url = server
    for amount in range(3):
        world.write("orders", "a", {"amount": amount})
    with monkeypatch.context() as there:
        batch = MicroBatch(3, 1_000, 55, 7, {"addBatch": 40})
        there.setattr(LocalQuery, "batches", lambda _: [batch])
        there.setattr(LocalQuery, "positions", lambda _: {("orders", 0): (1, 3)})
        theirs = {
            text: httpx.post(f"{url}/ksql", json={"ksql": text}, timeout=60).json()
            for text in ("EXPLAIN CTAS_TOTALS_1;", "DESCRIBE `TOTALS` EXTENDED;")
        }
    # Here nothing runs; the other server's answers are those from above.
    monkeypatch.setattr(world.engine.queries["CTAS_TOTALS_1"], "is_here", False)
    monkeypatch.setattr(LocalQuery, "positions", lambda _: {})
    none = page.get("sql/queries/CTAS_TOTALS_1/activity")
    assert (none["lag"], none["batches"]) == ([], None)
    monkeypatch.setattr(
        Peers,
        "ask_all",
        lambda _, body: {"away:8088": None, "there:8088": theirs[body["ksql"]]},
    )
    found = page.get("sql/queries/CTAS_TOTALS_1/activity")
    assert found["batches"] == [{"id": 3, "began_ms": 1_000, "duration_ms": 55, "input_rows": 7}]
    assert found["lag"] == [{"topic": "orders", "lag": 2, "partitions": 1}]


def test_words_for_completion(page: Console, guarded: Console) -> None:
    run(page, ORDERS)
    assert {"SUM", "UCASE"} <= set(page.get("sql/functions"))
    assert page.get("sql/sources/ORDERS/columns") == [
        {"name": "ID", "type": "STRING"},
        {"name": "AMOUNT", "type": "INTEGER"},
    ]
    assert "NOTHING" in told(page.http.get("/api/sql/sources/NOTHING/columns"), 409)["error"]
    told(page.http.get("/api/sql/sources/a%60b/columns"), 409)
    guarded.log_in("eve", "pw")
    for path in ("functions", "sources/ORDERS/columns"):
        assert "everywhere" in told(guarded.http.get(f"/api/sql/{path}"), 403)["error"]


@pytest.mark.parametrize("body", [b'[{"queryDescription": []}]', b'[{"queryDescription": {}}]'])
def test_a_server_that_says_less_is_understood(body: bytes) -> None:
    with (
        WebService(lambda _: Answer(200, body)) as server,
        console({"bootstrap.servers": "127.0.0.1:1", "sql.url": server.url}) as page,
    ):
        answer = page.http.get("/api/sql/queries/CTAS_A_1/activity")
        if answer.status_code == 200:
            assert answer.json() == {"group": "", "lag": None, "batches": None}
        else:
            assert "instead of an object" in told(answer, 409)["error"]
        assert page.http.get("/api/sql/queries/CTAS_A_1").status_code in (200, 409)


def test_a_push_query_is_live_until_nobody_reads(
    page: Console, server: tuple[SqlWorld, str]
) -> None:
    run(page, ORDERS)
    server[0].write("orders", "a", {"amount": 3})
    found = page.lines("sql/rows", sql="SELECT * FROM orders EMIT CHANGES;")
    assert next(found)["columns"] == ["ID", "AMOUNT"]
    assert next(found) == {"rows": [["a", 3]]}
    server[0].write("orders", "<img>", {"amount": 4})
    assert next(found) == {"rows": [["<img>", 4]]}
    (row,) = page.get("sql/queries")["rows"]
    assert row["kind"] == "PUSH"
    found.close()  # type: ignore[attr-defined]
    wait_until(lambda: page.get("sql/queries")["rows"] == [], "the query ends")


def test_a_query_that_ends_and_wrong_ones(page: Console, server: tuple[SqlWorld, str]) -> None:
    run(page, ORDERS)
    server[0].write("orders", "a", {"amount": 3})
    rows = list(page.lines("sql/rows", sql="SELECT * FROM orders EMIT CHANGES LIMIT 1;"))
    assert rows[1:] == [{"rows": [["a", 3]]}]
    for text, words in (("SELECT * FROM nothing;", "NOTHING"), ("LIST STREAMS;", "not supported")):
        (line,) = page.lines("sql/rows", sql=text)
        assert (line["kind"], words in line["error"]) == ("refused", True)
    told(page.http.get("/api/sql/rows"), 400)


def test_who_may_do_what(guarded: Console, page: Console) -> None:
    told(guarded.http.get("/api/sql/sources"), 401)
    run(page, ORDERS)
    run(page, TOTALS)
    select = "/api/sql/rows?sql=SELECT%20*%20FROM%20orders%20EMIT%20CHANGES%20LIMIT%201;"
    guarded.log_in("ann", "pw")
    assert len(run(guarded, "LIST STREAMS;")) == 1
    for text in (ORDERS, "DROP STREAM orders;", "LIST STREAMS; DROP STREAM orders;"):
        told(guarded.send("POST", "sql/statements", {"sql": text, "confirm": "orders"}), 403)
    assert told(guarded.http.get(select), 403)["right"] == "unmasked"
    guarded.log_in("bob", "pw")
    answer = told(guarded.send("POST", "sql/statements", {"sql": ORDERS}), 403)
    assert answer["right"] == "unmasked"
    weighed = guarded.done("POST", "sql/weigh", {"sql": "TERMINATE CTAS_TOTALS_1;"})
    assert weighed == {"right": "admin", "confirm": "CTAS_TOTALS_1", "may": False}
    guarded.log_in("eve", "pw")
    for path in ("sources", "rows?sql=SELECT"):
        assert "everywhere" in told(guarded.http.get(f"/api/sql/{path}"), 403)["error"]
    told(guarded.send("POST", "sql/statements", {"sql": "LIST STREAMS;"}), 403)
    assert [row["id"] for row in guarded.get("sql/queries")["rows"]] == ["CTAS_TOTALS_1"]
    told(guarded.http.get("/api/sql/queries/OTHER_1"), 403)
    guarded.done("DELETE", "sql/queries/CTAS_TOTALS_1", {"confirm": "CTAS_TOTALS_1"})


@pytest.mark.parametrize(
    ("text", "right", "confirm"),
    [
        ("list streams;", "view", None),
        (" EXPLAIN CTAS_A_1 ; ", "view", None),
        ("CREATE STREAM a (b INT) WITH (kafka_topic='a');", "edit", None),
        ("LIST STREAMS; DROP STREAM a;", "admin", EVERYTHING),
        ("/* list */ DROP STREAM a;", "admin", EVERYTHING),
        ("-- list\nDROP STREAM a;", "admin", EVERYTHING),
        ("DROP STREAM IF EXISTS `a b` DELETE TOPIC;", "admin", "a b"),
        ("TERMINATE ALL;", "admin", EVERYTHING),
        ("TERMINATE CTAS_A_1;", "admin", "CTAS_A_1"),
        ("", "admin", EVERYTHING),
        ("LISTEN", "admin", EVERYTHING),
    ],
)
def test_the_right_of_a_statement(text: str, right: str, confirm: str | None) -> None:
    found = weigh(text)
    assert (found.right, found.confirm) == (right, confirm)


@pytest.mark.parametrize("value", ["hunter2", "it''s hunter2", "hunter2, = '' x"])
def test_passwords_of_connectors_are_not_in_the_audit_log(value: str) -> None:
    text = f"create source connector c with ('url'='jdbc:x', \"password\" = '{value}');"
    hidden = "create source connector c with ('url'='[hidden]', \"password\" = '[hidden]');"
    assert without_secrets(text) == hidden
    assert "hunter2" not in without_secrets(text.removesuffix("');"))
    assert without_secrets(ORDERS) == ORDERS


def test_statements_are_audited_without_passwords(page: Console) -> None:
    text = "CREATE SOURCE CONNECTOR c WITH ('connection.password'='hunter2');"
    page.send("POST", "sql/statements", {"sql": text})
    (deed,) = page.get("audit")["rows"]
    assert deed["target"] == text.replace("hunter2", "[hidden]")


def test_stages_say_what_they_run() -> None:
    text = (
        "Topologies:\n   Source: orders -> stage 0\n"
        "   Operator: 0, stages [0], stores []\n"
        "   Operator: 1, stages [1, 2], stores ['Aggregate-1']\n"
        "   As columns: stages [0, 1]; record by record: stages [2]\n   Sink: TOTALS"
    )
    found = [(one.number, one.operator, one.form, one.stores) for one in stages_of(text)]
    assert found == [
        (0, 0, "columns", ""),
        (1, 1, "columns", "Aggregate-1"),
        (2, 1, "rows", "Aggregate-1"),
    ]
    assert stages_of("Sub-topology: 0") == ()


def test_other_sites_and_forms_change_nothing(page: Console) -> None:
    body = json.dumps({"sql": ORDERS})
    assert page.http.post("/api/sql/statements", content=body).status_code == 400
    headers = {"x-console": "1", "content-type": "application/json", "origin": "http://evil"}
    answer = page.http.post("/api/sql/statements", content=body, headers=headers)
    assert answer.status_code == 403
    assert page.get("sql/sources")["total"] == 0


def test_a_server_that_is_away_or_leads_elsewhere_says_so() -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        assert "--sql-url" in told(page.http.get("/api/sql/sources"), 404)["error"]
    away = {"bootstrap.servers": "127.0.0.1:1", "sql.url": "http://me:pw@127.0.0.1:1"}
    with console(away) as page:
        answer = told(page.http.get("/api/sql/sources"), 503)
        assert (answer["kind"], answer["service"]) == ("away", "the SQL server")
        (line,) = page.lines("sql/rows", sql="SELECT 1;")
        assert (line["kind"], "pw" in line["error"]) == ("away", False)
    answers = [Answer(307, b"", {"Location": "http://127.0.0.1:1/"})]
    with (
        WebService(lambda _: answers[-1]) as server,
        console({"bootstrap.servers": "127.0.0.1:1", "sql.url": server.url}) as page,
    ):
        assert "not followed" in told(page.http.get("/api/sql/sources"), 409)["error"]
        (line,) = page.lines("sql/rows", sql="SELECT 1;")
        assert "not followed" in line["error"]
        for body in (b"<html>", b"{}", b"[1]", b"null"):
            answers.append(Answer(200, body))
            told(page.http.get("/api/sql/sources"), 409)


@pytest.mark.parametrize("odd", [7, True, "x", {"a": 1}], ids=str)
def test_members_that_are_no_lists_are_an_odd_answer_and_no_fault_of_the_console(odd: Any) -> None:
    answer: dict[str, Any] = {}
    service = SqlService(cast("Rest", SimpleNamespace(ask=lambda *_: [answer])))
    asked: dict[Callable[[], object], list[tuple[str, ...]]] = {
        lambda: service.sources(Asked()): [("streams",), ("tables",)],
        lambda: service.queries(Asked()): [("queries",)],
        service.functions: [("functions",)],
        lambda: service.columns("s"): [("sourceDescription", "fields")],
        lambda: service.explain("q"): [
            ("queryDescription", name) for name in ("queryErrors", "sources", "sinks")
        ],
        lambda: service.activity("q"): [("queryDescription", "sinks")],
    }
    for ask, places in asked.items():
        for place in places:
            answer.clear()
            answer.update(queryDescription={}, sourceDescription={})
            (answer[place[0]] if len(place) > 1 else answer)[place[-1]] = odd
            with pytest.raises(RefusedError, match="instead of a list"):
                ask()
