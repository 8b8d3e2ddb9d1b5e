"""The REST interface answers with Kafka's codes, JSON and texts."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas import __version__
from barnabas.connect.rest.app import RestApp
from barnabas.connect.rest.bodies import Answer, Request, Route
from barnabas.connect.tasks.base import TaskId
from barnabas.schemas.data.errors import ConnectError
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.server import WebServer
from support.connect.herder_world import RENAME, SOURCE, WORKER
from support.connect.rest_world import RestWorld
from support.patience import PATIENCE_S


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    made = RestWorld(tmp_path)
    yield made
    made.close()


async def test_the_life_of_a_connector(world: RestWorld) -> None:
    config = {"connector.class": SOURCE, "topic": "t", "tasks.max": 1}
    made = await world.send("POST", "/connectors", {"name": " c\x07", "config": config})
    assert made.status_code == 201
    assert made.headers["location"] == "http://localhost:8083/connectors/c"
    info = {
        "name": "c",
        "config": {"connector.class": SOURCE, "topic": "t", "tasks.max": "1", "name": "c"},
        "tasks": [{"connector": "c", "task": 0}],
        "type": "source",
    }
    assert made.json() == info
    status = {
        "name": "c",
        "connector": {"state": "RUNNING", "worker_id": WORKER, "version": __version__},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": WORKER, "version": __version__}],
        "type": "source",
    }
    table: list[tuple[str, str, Any, int, Any]] = [
        ("GET", "/connectors", None, 200, ["c"]),
        ("GET", "/connectors/", None, 200, ["c"]),
        ("GET", "/connectors?expand=info&expand=status", None, 200,
         {"c": {"info": info, "status": status}}),
        ("GET", "/connectors?expand=else", None, 200, {"c": {}}),
        ("GET", "/connectors/c", None, 200, info),
        ("GET", "/connectors/c/config", None, 200, info["config"]),
        ("GET", "/connectors/c/status", None, 200, status),
        ("GET", "/connectors/c/tasks/0/status", None, 200, status["tasks"][0]),  # type: ignore[index]
        ("POST", "/connectors/c/tasks/0/restart", None, 204, None),
        ("POST", "/connectors/c/restart", None, 204, None),
        ("PUT", "/connectors/c/pause", None, 202, None),
        ("PUT", "/connectors/c/resume", None, 202, None),
        ("GET", "/connectors/c/topics", None, 200, {"c": {"topics": []}}),
        ("PUT", "/connectors/c/topics/reset", None, 202, None),
        ("GET", "/connectors/c/offsets", None, 200, {"offsets": []}),
        ("PUT", "/connectors/c/stop", None, 204, None),
        ("PATCH", "/connectors/c/offsets",
         {"offsets": [{"partition": {"f": "x"}, "offset": {"position": 3}}]}, 200,
         {"message": "The offsets for this connector have been altered successfully"}),
        ("GET", "/connectors/c/offsets", None, 200,
         {"offsets": [{"partition": {"f": "x"}, "offset": {"position": 3}}]}),
        ("DELETE", "/connectors/c/offsets", None, 200,
         {"message": "The offsets for this connector have been reset successfully"}),
        ("PATCH", "/connectors/c/config", {"topic": "u"}, 200,
         {**info, "config": {**info["config"], "topic": "u"}, "tasks": []}),  # type: ignore[dict-item]
        ("PUT", "/connectors/c/config", config, 200, {**info, "tasks": []}),
        ("DELETE", "/connectors/c", None, 204, None),
        ("GET", "/connectors", None, 200, []),
    ]  # fmt: skip
    for method, path, body, status_code, expected in table:
        assert await world.ask(method, path, body) == (status_code, expected), (method, path)


async def test_put_makes_connectors_too(world: RestWorld) -> None:
    answer = await world.send(
        "PUT", "/connectors/a%2Fb%20c/config", {"connector.class": SOURCE, "topic": "t"}
    )
    assert answer.status_code == 201
    assert answer.headers["location"] == "http://localhost:8083/connectors/a%2Fb%20c"
    assert answer.json()["name"] == "a/b c"
    assert (await world.ask("GET", "/connectors/a%2Fb%20c/status"))[0] == 200


@pytest.mark.parametrize(
    ("initial", "state"), [("PAUSED", "PAUSED"), ("stopped", "STOPPED"), ("RUNNING", "RUNNING")]
)
async def test_initial_states(world: RestWorld, initial: str, state: str) -> None:
    config = {"connector.class": SOURCE, "topic": "t"}
    body = {"name": "c", "config": config, "initial_state": initial}
    assert (await world.ask("POST", "/connectors", body))[0] == 201
    assert (await world.ask("GET", "/connectors/c/status"))[1]["connector"]["state"] == state


ERRORS: list[tuple[str, str, Any, int, str]] = [
    ("GET", "/nothing", None, 404, "HTTP 404 Not Found"),
    ("GET", "/connectors/c/tasks-config", None, 404, "HTTP 404 Not Found"),
    ("GET", "/connectors/c/tasks/x/status", None, 404, "HTTP 404 Not Found"),
    ("DELETE", "/connectors", None, 405, "HTTP 405 Method Not Allowed"),
    ("GET", "/connectors/x", None, 404, "Connector x not found"),
    ("GET", "/connectors/x/config", None, 404, "Connector x not found"),
    ("GET", "/connectors/x/status", None, 404, "No status found for connector x"),
    ("GET", "/connectors/x/tasks", None, 404, "Connector x not found"),
    ("GET", "/connectors/c/tasks/7/status", None, 404, "No status found for task c-7"),
    ("POST", "/connectors/c/tasks/7/restart", None, 404, "Task c-7 not found"),
    ("POST", "/connectors/x/restart", None, 404, "Connector x not found"),
    ("POST", "/connectors/x/restart?includeTasks=true", None, 404, "Unknown connector: x"),
    ("PUT", "/connectors/x/pause", None, 404, "Unknown connector x"),
    ("PUT", "/connectors/x/resume", None, 404, "Unknown connector x"),
    ("DELETE", "/connectors/x", None, 404, "Connector x not found"),
    ("GET", "/connectors/x/offsets", None, 404, "Connector x not found"),
    ("PATCH", "/connectors/c/offsets", {"offsets": []}, 400,
     "Partitions / offsets need to be provided for an alter offsets request"),
    ("DELETE", "/connectors/c/offsets", None, 400,
     ("Connectors must be in the STOPPED state before their offsets can be modified. This can be "
     "done for the specified connector by issuing a 'PUT' request to the '/connectors/c/stop' "
     "endpoint")),
    ("PUT", "/connectors/c/config", {"name": "d"}, 400,
     "Connector name configuration (d) doesn't match connector name in the URL (c)"),
    ("PATCH", "/connectors/c/config", {"name": "d"}, 400,
     "Connector name configuration (d) doesn't match connector name in the URL (c)"),
    ("PATCH", "/connectors/x/config", {"name": "d"}, 404, "Connector x not found"),
    ("PUT", "/admin/loggers/a", {"level": " loud "}, 404, "invalid log level 'loud'."),
    ("POST", "/connectors", {"name": "c", "config": {"connector.class": SOURCE, "topic": "t"}}, 409,
     "Connector c already exists"),
    ("PUT", "/connector-plugins/Other/config/validate", {"connector.class": SOURCE}, 400,
     f"Included connector type {SOURCE} does not match request type Other"),
    ("GET", "/connector-plugins/Other/config", None, 404, "Unknown plugin Other."),
    ("GET", "/admin/loggers/no.such", None, 404, "Logger no.such not found."),
    ("PUT", "/admin/loggers/a", {}, 400,
     "Desired 'level' parameter was not specified in request."),
    ("PUT", "/admin/loggers/a", {"level": "loud"}, 404, "invalid log level 'loud'."),
    ("PUT", "/connectors/c/fence", None, 500,
     "Kafka Connect in standalone mode does not support exactly-once source connectors."),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), ERRORS)
async def test_errors(
    world: RestWorld, method: str, path: str, body: Any, status: int, message: str
) -> None:
    await world.create()
    found = await world.ask(method, path, body)
    assert found == (status, {"error_code": status, "message": message})


@pytest.mark.parametrize(
    ("body", "kind", "accept", "status"),
    [
        (b"{", "application/json", "*/*", 500),
        (b"[]", "application/json", "*/*", 500),
        (b'{"a": {}}', "application/json", "*/*", 500),
        (b'{"a": NaN}', "application/json", "*/*", 500),
        (rb'{"a": "\ud800"}', "application/json", "*/*", 500),
        (b"", "application/json", "*/*", 400),
        (b"{}", "text/plain", "*/*", 415),
        (b"{}", "application/json; charset=utf-8", "application/json", 400),
        (b"{}", "application/json", "text/html", 406),
        (b" " * (17 << 20), "application/json", "*/*", 413),
    ],
)
async def test_bodies_that_are_no_configuration(
    world: RestWorld, body: bytes, kind: str, accept: str, status: int
) -> None:
    headers = {"content-type": kind, "accept": accept}
    path = "/connectors/c/config"
    answer = await world.send("PUT", path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    if status == 500:
        assert "JSON" in answer.json()["message"] or "text" in answer.json()["message"]


async def test_numbers_stay_as_they_are_written(world: RestWorld) -> None:
    body = b'{"connector.class": "%s", "topic": 1.50, "path": 1e2}' % SOURCE.encode()
    headers = {"content-type": "application/json"}
    await world.send("PUT", "/connectors/c/config", content=body, headers=headers)
    config = (await world.ask("GET", "/connectors/c/config"))[1]
    assert (config["topic"], config["path"]) == ("1.50", "1e2")
    removed = await world.ask("PATCH", "/connectors/c/config", {"name": None, "path": None})
    assert removed[1]["config"] == {"connector.class": SOURCE, "topic": "1.50", "name": "c"}


async def test_a_connector_that_cannot_start_answers_500(world: RestWorld) -> None:
    status, error = await world.create(path="broken")
    assert status == 500
    assert error["message"] == "Failed to transition connector c to state STARTED"
    assert (await world.ask("GET", "/connectors/c/status"))[1]["connector"]["state"] == "FAILED"


async def test_restarts_of_what_failed(world: RestWorld) -> None:
    await world.create()
    world.herder.engine.tasks[TaskId("c", 0)].listener.failed(ConnectError("lost"))
    status, answer = await world.ask(
        "POST", "/connectors/c/restart?includeTasks=true&onlyFailed=TRUE"
    )
    assert status == 202
    assert (answer["connector"]["state"], answer["tasks"][0]["state"]) == ("RUNNING", "RESTARTING")
    assert "trace" in answer["tasks"][0]


async def test_validation_and_plugins(world: RestWorld) -> None:
    path = f"/connector-plugins/{SOURCE}/config/validate"
    status, answer = await world.ask("PUT", path, {"connector.class": SOURCE, "tasks.max": "0"})
    assert (status, answer["error_count"]) == (200, 3)
    plugins = (await world.ask("GET", "/connector-plugins"))[1]
    assert {plugin["type"] for plugin in plugins} == {"source", "sink"}
    plugins = (await world.ask("GET", "/connector-plugins?connectorsOnly=false"))[1]
    assert {"converter", "header_converter"} <= {plugin["type"] for plugin in plugins}
    settings = (await world.ask("GET", f"/connector-plugins/{RENAME}/config"))[1]
    assert [setting["name"] for setting in settings] == ["field", "size"]


async def test_root_health_and_loggers(world: RestWorld) -> None:
    status, root = await world.ask("GET", "/")
    assert (status, root["version"], root["kafka_cluster_id"]) == (200, "4.3.1", "kafka-cluster")
    assert (await world.ask("GET", "/health"))[1]["status"] == "healthy"
    world.herder.herder.is_ready = False
    assert (await world.ask("GET", "/health"))[0] == 503
    changed = await world.ask("PUT", "/admin/loggers/a.test.logger", {"level": "debug"})
    assert changed == (200, [])  # none of that name has logged yet
    level = (await world.ask("GET", "/admin/loggers/a.test.logger"))[1]
    assert level["level"] == "DEBUG"
    assert "a.test.logger" in (await world.ask("GET", "/admin/loggers"))[1]
    scoped = await world.ask("PUT", "/admin/loggers/a.test.logger?scope=cluster", {"level": "INFO"})
    assert scoped == (204, None)


async def test_topic_tracking_may_be_off(tmp_path: Path) -> None:
    world = RestWorld(tmp_path, {"topic.tracking.allow.reset": "false"})
    await world.create()
    reset = await world.ask("PUT", "/connectors/c/topics/reset")
    assert reset == (403, {"error_code": 403, "message": "Topic tracking reset is disabled."})
    world.close()


async def test_secrets_are_resolved_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("path=broken\npassword=hush-hush\n")
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    settings = {"config.providers": "file", "config.providers.file.class": provider}
    world = RestWorld(tmp_path, settings)
    reference = f"${{file:{tmp_path}/secrets.properties:password}}"
    assert (await world.create(secret=reference, path=reference))[0] == 201
    assert world.herder.engine.tasks[TaskId("c", 0)].plan.task_settings["path"] == "hush-hush"
    assert world.herder.engine.tasks[TaskId("c", 0)].plan.secrets == {"hush-hush"}
    for path in ("/connectors/c", "/connectors/c/config", "/connectors/c/tasks"):
        text = (await world.send("GET", path)).text
        assert "hush" not in text
        assert "${file:" in text
    config = {"connector.class": SOURCE, "topic": "t", "name": "d", "wanted.tasks": reference}
    path = f"/connector-plugins/{SOURCE}/config/validate"
    answer = await world.send("PUT", path, {**config, "path": reference})
    assert "hush" not in answer.text
    for name in ("transforms", "predicates", "topic.creation.groups"):
        named = await world.send("PUT", path, {**config, name: reference, "path": reference})
        assert named.status_code == 200
        assert "hush" not in named.text, name
    refused = await world.ask("POST", "/connectors", {"name": "d", "config": config})
    assert refused[0] == 400
    assert "Invalid value [hidden] for configuration wanted.tasks" in refused[1]["message"]
    world.herder.engine.tasks[TaskId("c", 0)].listener.failed(ConnectError("no hush-hush"))
    status = (await world.ask("GET", "/connectors/c/status"))[1]
    assert "no [hidden]" in status["tasks"][0]["trace"]
    world.close()


async def test_a_request_to_a_worker_that_ends_may_be_tried_again_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = RestWorld(tmp_path)
    world.herder.herder.close()
    config = {"connector.class": SOURCE, "topic": "t"}
    code, found = await world.ask("POST", "/connectors", {"name": "c", "config": config})
    assert (code, found) == (503, {"error_code": 503, "message": "Worker is shutting down"})
    assert [one.getMessage() for one in caplog.records if one.exc_info] == []
    world.close()


async def test_a_request_that_outlasts_the_worker_gets_an_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A worker that still starts keeps requests waiting."""
    asked, ended = threading.Event(), threading.Event()

    def wait(_: Request) -> Answer:
        asked.set()
        ended.wait()
        return Answer(body={})

    app = RestApp([Route("POST", "/connectors", wait)])
    bound = BoundListener(ListenAddress("127.0.0.1", 0))
    server = WebServer(app, [bound], stop_s=0.1)
    await server.start()
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
        url = f"{bound.listener}/connectors"
        answer = asyncio.create_task(client.post(url, json={"name": "c"}))
        await asyncio.to_thread(asked.wait)
        await server.stop()
        found = await answer
    ended.set()
    assert found.status_code == 503
    assert found.json() == {"error_code": 503, "message": "Worker is shutting down"}
    (line,) = [record for record in caplog.records if record.levelno > logging.INFO]
    assert line.getMessage() == "POST /connectors: not answered before the server stopped"
    assert line.exc_info is None
