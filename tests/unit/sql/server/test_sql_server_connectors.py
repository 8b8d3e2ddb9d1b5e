"""Statements about connectors, asked of a SQL server whose Connect worker is beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.connectors.client import (
    ConnectClients,
    ConnectUnavailableError,
    Headers,
)
from barnabas.sql.shell.entities import entity_lines
from barnabas.sql.syntax.masking import masked
from support.connect.herder_world import SINK, SOURCE
from support.connect.rest_world import RestWorld
from support.sql_server_world import SqlWorld

CREATE = f"CREATE SOURCE CONNECTOR c WITH ('connector.class'='{SOURCE}', 'topic'='t'"


class Asked(httpx.BaseTransport):
    """Hands requests to a Connect worker's application, or answers them itself."""

    def __init__(self, connect: RestWorld) -> None:
        self._connect = connect
        self.requests: list[httpx.Request] = []
        self.answer: Callable[[httpx.Request], httpx.Response | None] = lambda request: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        own = self.answer(request)
        if own is not None:
            return own
        return asyncio.run(self._send(request))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._connect.app)
        async with httpx.AsyncClient(transport=transport) as client:
            found = await client.request(
                request.method, request.url, content=request.read(), headers=request.headers
            )
        return httpx.Response(found.status_code, content=found.content)


class ConnectorsWorld:
    """A SQL server and a Connect worker."""

    def __init__(self, folder: Path) -> None:
        self.connect = RestWorld(folder)
        self.sql = SqlWorld()
        self.asked = Asked(self.connect)
        clients = ConnectClients(self.sql.settings, self.asked)
        self.sql.client = self.sql.client_of(KsqlApi(self.sql.engine, connect=clients))

    async def one(self, text: str) -> Any:
        (answer,) = await self.sql.ksql(text)
        return answer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ConnectorsWorld]:
    made = ConnectorsWorld(tmp_path)
    yield made
    await made.sql.close()
    made.connect.close()


async def test_a_connector_is_made_listed_described_and_dropped(world: ConnectorsWorld) -> None:
    made = await world.one(CREATE + ", 'wanted.tasks'=2, 'tasks.max'=2);")
    assert made["@type"] == "connector_info"
    assert made["info"]["name"] == "C"
    assert made["info"]["config"]["wanted.tasks"] == "2"
    assert made["info"]["type"] == "source"

    listed = await world.one("SHOW CONNECTORS;")
    assert listed["@type"] == "connector_list"
    assert listed["connectors"] == [
        {"name": "C", "type": "source", "className": SOURCE, "state": "RUNNING (2/2 tasks RUNNING)"}
    ]
    assert (await world.one("LIST SINK CONNECTORS;"))["connectors"] == []
    assert len((await world.one("LIST SOURCE CONNECTORS;"))["connectors"]) == 1

    described = await world.one("DESCRIBE CONNECTOR c;")
    assert described["@type"] == "connector_description"
    assert described["connectorClass"] == SOURCE
    assert described["status"]["connector"] == {"state": "RUNNING", "worker_id": "127.0.0.1:8083"}
    assert [task["state"] for task in described["status"]["tasks"]] == ["RUNNING", "RUNNING"]
    assert described["topics"] == []

    dropped = await world.one("DROP CONNECTOR c;")
    assert (dropped["@type"], dropped["connectorName"]) == ("drop_connector", "C")
    assert (await world.one("SHOW CONNECTORS;"))["connectors"] == []


async def test_a_sink_and_the_plugins_are_listed(world: ConnectorsWorld) -> None:
    await world.one(
        f"CREATE SINK CONNECTOR `out` WITH (\"connector.class\"='{SINK}', 'topics'='t');"
    )
    (listed,) = (await world.one("LIST SINK CONNECTORS;"))["connectors"]
    assert (listed["name"], listed["type"]) == ("out", "sink")
    plugins = (await world.one("SHOW CONNECTOR PLUGINS;"))["connectorsPlugins"]
    assert {
        "className": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "type": "source",
    }.items() <= next(p for p in plugins if "JdbcSource" in p["className"]).items()


async def test_what_is_there_already_or_not_there_is_an_error_or_a_warning(
    world: ConnectorsWorld,
) -> None:
    await world.one(CREATE + ");")
    error = await world.sql.error(CREATE + ");")
    assert error == {
        "@type": "generic_error",
        "error_code": 40900,
        "message": "Connector C already exists",
    }
    again = await world.one(CREATE.replace("CONNECTOR c", "CONNECTOR IF NOT EXISTS c") + ");")
    assert (again["@type"], again["message"]) == ("warning_entity", "Connector C already exists")

    error = await world.sql.error("DROP CONNECTOR other;")
    assert error["error_code"] == 40400
    assert error["message"].startswith("Failed to drop connector: ")
    gone = await world.one("DROP CONNECTOR IF EXISTS other;")
    assert gone["message"] == "Connector 'OTHER' does not exist."
    error = await world.sql.error("DESCRIBE CONNECTOR other;")
    assert error["error_code"] == 40400
    assert error["message"].startswith("Failed to query connector status: ")


async def test_settings_are_checked_before_any_statement_of_the_request_is_done(
    world: ConnectorsWorld,
) -> None:
    bad = f"CREATE SOURCE CONNECTOR d WITH ('connector.class'='{SOURCE}', 'secret'='s3cret');"
    error = await world.sql.error(CREATE + ");" + bad)
    assert error["error_code"] == 40001
    assert error["message"].startswith("Validation error: topic - ")
    assert "s3cret" not in str(error)
    assert f"'connector.class'='{SOURCE}', 'secret'='[string]'" in error["statementText"]
    assert (await world.one("SHOW CONNECTORS;"))["connectors"] == []

    error = await world.sql.error("CREATE SOURCE CONNECTOR d WITH ('secret'='s3cret');")
    assert error["message"].endswith("contains no connector type")
    assert "s3cret" not in str(error)
    error = await world.sql.error("CREATE SOURCE CONNECTOR d WITH ('connector.class'=' ');")
    assert error["message"] == "Validation error: Connector type cannot be empty"
    error = await world.sql.error("CREATE SOURCE CONNECTOR d WITH ('secret'='s3cret' AND);")
    assert "s3cret" not in error["statementText"]


async def test_a_connector_tells_the_sources_over_its_topics(world: ConnectorsWorld) -> None:
    await world.sql.ksql(
        "CREATE STREAM s (v INT) WITH (kafka_topic='t', partitions=1, value_format='JSON');"
    )
    await world.one(CREATE + ");")
    for task in world.connect.herder.engine.tasks.values():
        task.listener.topics_used(["t"])
    described = await world.one("DESCRIBE CONNECTOR c;")
    assert described["topics"] == ["t"]
    assert [source["name"] for source in described["sources"]] == ["S"]
    shown = "\n".join(entity_lines(described))
    assert "WorkerId             : 127.0.0.1:8083" in shown
    assert "Related Topics" in shown
    assert "S               | t" in shown


async def test_a_worker_that_cannot_be_asked_is_a_server_error(world: ConnectorsWorld) -> None:
    def refuse(request: httpx.Request) -> httpx.Response | None:
        raise httpx.ConnectError("refused")

    world.asked.answer = refuse
    error = await world.sql.error("SHOW CONNECTORS;")
    assert error["error_code"] == 50000
    assert "http://localhost:8083" in error["message"]
    assert len(world.asked.requests) == 3
    world.asked.answer = lambda request: httpx.Response(409, text="rebalance")
    error = await world.sql.error("SHOW CONNECTORS;")
    assert error["message"] == "Failed to list connectors: rebalance"
    assert error["error_code"] == 40900


async def test_tasks_that_do_not_run_are_counted(world: ConnectorsWorld) -> None:
    await world.one(CREATE + ", 'wanted.tasks'='2', 'tasks.max'='2');")
    tasks = list(world.connect.herder.engine.tasks.values())
    tasks[0].listener.failed(ValueError("x"))
    listed = await world.one("SHOW CONNECTORS;")
    assert listed["connectors"][0]["state"] == "RUNNING (1/2 tasks RUNNING)"
    tasks[1].listener.failed(ValueError("x"))
    listed = await world.one("SHOW CONNECTORS;")
    assert listed["connectors"][0]["state"] == "WARNING (0/2 tasks RUNNING)"


async def test_a_connector_that_cannot_be_described_is_listed_with_a_warning(
    world: ConnectorsWorld,
) -> None:
    await world.one(CREATE + ");")
    world.asked.answer = lambda request: (
        httpx.Response(404, text="gone") if request.url.path == "/connectors/C" else None
    )
    listed = await world.one("SHOW CONNECTORS;")
    assert listed["connectors"] == [{"name": "C", "type": "unknown"}]
    assert listed["warnings"] == [{"message": "Could not describe connector C: gone"}]


async def test_the_key_of_a_jdbc_source_becomes_transforms(world: ConnectorsWorld) -> None:
    found: list[Any] = []

    def keep(request: httpx.Request) -> httpx.Response | None:
        found.append(request.read().decode())
        return httpx.Response(200, json=[] if request.method == "GET" else {"configs": []})

    world.asked.answer = keep
    await world.sql.error(
        "CREATE SOURCE CONNECTOR j WITH ('connector.class'="
        "'io.confluent.connect.jdbc.JdbcSourceConnector', 'key'='id');"
    )
    assert '"transforms":"ksqlCreateKey,ksqlExtractString"' in found[1].replace(" ", "")
    assert '"key":' not in found[1].replace(" ", "")


class Extra:
    """Headers of an operator's own."""

    def uses_own_auth(self) -> bool:
        return True

    def auth(self, headers: Headers) -> str | None:
        return "Bearer " + dict(headers)["x-user"]

    def headers(self) -> dict[str, str]:
        return {"x-tenant": "7"}


def headers_sent(settings: dict[str, Any], headers: Headers) -> httpx.Headers:
    sent: list[httpx.Headers] = []

    def keep(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers)
        return httpx.Response(200, json=[])

    with ConnectClients(settings, httpx.MockTransport(keep)).client(headers) as client:
        client.connectors()
    return sent[0]


def test_a_worker_that_is_away_is_told_in_words() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    with (
        ConnectClients({}, httpx.MockTransport(refuse)).client([]) as client,
        pytest.raises(ConnectUnavailableError, match=r"localhost:8083: Connection refused$"),
    ):
        client.connectors()


def test_the_login_is_the_client_s_or_of_a_file_or_of_a_plugin(tmp_path: Path) -> None:
    incoming = [("authorization", "Basic YTpi"), ("x-user", "ann")]
    assert headers_sent({}, incoming)["authorization"] == "Basic YTpi"
    file = tmp_path / "login"
    file.write_text("username=u\npassword=p\n")
    settings: dict[str, Any] = {
        "ksql.connect.basic.auth.credentials.source": "FILE",
        "ksql.connect.basic.auth.credentials.file": str(file),
    }
    assert headers_sent(settings, incoming)["authorization"] == "Basic dTpw"
    file.write_text("username=u\n")
    with pytest.raises(ConnectUnavailableError, match="does not have username and password"):
        headers_sent(settings, incoming)
    plugin = {"ksql.connect.request.headers.plugin": f"{__name__}:Extra"}
    found = headers_sent(plugin, incoming)
    assert (found["authorization"], found["x-tenant"]) == ("Bearer ann", "7")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CREATE STREAM s WITH (a='b');", "CREATE STREAM s WITH (a='b');"),
        (
            "create sink connector c with ('connector.class'='X', \"p\" = 'it''s', n = 5);",
            "create sink connector c with ('connector.class'='X', \"p\"='[string]', n='[string]');",
        ),
        (
            "CREATE SOURCE CONNECTOR c WITH ('p'='not ended",
            "CREATE SOURCE CONNECTOR c WITH ('p'='[string]'",
        ),
    ],
)
def test_texts_show_no_settings(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_the_shell_says_what_became_of_a_connector() -> None:
    made = entity_lines({"@type": "connector_info", "info": {"name": "C"}})
    assert "Created connector C" in "\n".join(made)
    dropped = entity_lines({"@type": "drop_connector", "connectorName": "C"})
    assert 'Dropped connector "C"' in "\n".join(dropped)
