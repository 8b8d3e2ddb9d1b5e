"""Connectors in the console, over a Connect worker's REST interface in a thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from barnabas.base.errors import ConfigError
from barnabas.connect.tasks.base import TaskId
from barnabas.console.config import ConsoleConfig
from barnabas.console.pages import connectors
from barnabas.console.pages.calls import Endpoint
from barnabas.console.services import connectors as service
from barnabas.console.services.asking import RefusedError
from barnabas.console.services.rest import Rest
from support.connect.herder_world import SOURCE
from support.connect.rest_world import RestWorld
from support.connect.web_service import Answer, WebService
from support.console_world import Console, console
from support.http_server import served

HOSTILE = '<img src=x onerror="document.title=1">'
SECRET = "correct horse battery staple"
CONFIG = {
    "connector.class": SOURCE,
    "topic": "t",
    "tasks.max": "2",
    "wanted.tasks": "2",
    "secret": SECRET,
}
USERS = "ann: pw,viewer\nbob: pw,editor\neve: pw,shop\n"


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[tuple[RestWorld, str]]:
    world = RestWorld(tmp_path, {"barnabas.connect.restart.enabled": "false"})
    with served(world.app) as url:
        yield world, url
    world.close()


@pytest.fixture
def page(worker: tuple[RestWorld, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(service, "LIST_KEPT_S", 0.0)
    with console({"bootstrap.servers": "127.0.0.1:1", "connect.url": worker[1]}) as found:
        yield found


@pytest.fixture
def guarded(worker: tuple[RestWorld, str], tmp_path: Path) -> Iterator[Console]:
    users = tmp_path / "users"
    users.write_text(USERS)
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "connect.url": worker[1],
        "console.users.file": str(users),
        "console.roles.shop.rights": "view,edit,admin",
        "console.roles.shop.connectors": "shop-*",
    }
    with console(values) as found:
        yield found


def told(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def create(page: Console, name: str, **more: str) -> None:
    body = {"config": {**CONFIG, **more}, "is_new": True}
    page.done("POST", f"connectors/{httpx.URL('', path=name).raw_path.decode()}/config", body)


def states(page: Console, name: str) -> tuple[str, list[str]]:
    found = page.get(f"connectors/{name}")
    return found["state"], [task["state"] for task in found["tasks"]]


def test_a_connector_from_its_start_to_its_end(page: Console) -> None:
    assert page.get("me")["services"] == ["connect"]
    assert SOURCE not in {one["name"] for one in page.get("connector-plugins")}
    create(page, "copy")
    (row,) = page.get("connectors", search="COPY source")["rows"]
    assert (row["state"], row["tasks"], row["reason"]) == ("RUNNING", {"RUNNING": 2}, None)
    for what, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
        page.done("POST", "connectors/copy/state", {"what": what})
        assert states(page, "copy") == (state, [state, state])
    page.done("POST", "connectors/copy/state", {"what": "stop"})
    assert states(page, "copy") == ("STOPPED", [])
    page.done("POST", "connectors/copy/state", {"what": "resume"})
    told(page.send("POST", "connectors/copy/state", {"what": "delete"}), 409)
    again = {"config": CONFIG, "is_new": True}
    assert "copy" in told(page.send("POST", "connectors/copy/config", again), 409)["error"]
    assert told(page.send("DELETE", "connectors/copy", {"confirm": "cop"}), 400)
    page.done("DELETE", "connectors/copy", {"confirm": "copy"})
    told(page.http.get("/api/connectors/copy"), 404)
    told(page.send("POST", "connectors/copy/config", {"config": CONFIG}), 404)
    assert page.get("connectors")["rows"] == []
    actions = [one["action"] for one in page.get("audit", search="copy")["rows"]]
    assert actions[1] == "delete connector"
    assert actions[-1] == "create connector"


def test_of_two_that_change_a_configuration_the_second_is_told(page: Console) -> None:
    create(page, "copy", topic="first")
    before = page.get("connectors/copy")["config"]
    mine, theirs = {**before, "topic": "mine"}, {**before, "topic": "theirs", "wanted.tasks": "1"}
    page.done("POST", "connectors/copy/config", {"config": theirs, "before": before})
    body = {"config": mine, "before": before}
    refused = told(page.send("POST", "connectors/copy/config", body), 409)
    assert refused["kind"] == "changed"
    assert refused["error"] == "copy has changed since it was read: topic, wanted.tasks"
    assert refused["config"] == page.get("connectors/copy")["config"] == theirs
    assert SECRET not in json.dumps(refused)
    again = {"config": {**mine, "wanted.tasks": "1"}, "before": refused["config"]}
    page.done("POST", "connectors/copy/config", again)
    page.done("POST", "connectors/copy/config", {"config": mine})  # a script that does not ask
    del mine["wanted.tasks"]
    removed = {"config": mine, "before": {**mine, "new": "1"}}
    refused = told(page.send("POST", "connectors/copy/config", removed), 409)
    assert refused["error"] == "copy has changed since it was read: new, wanted.tasks"
    told(page.send("POST", "connectors/copy/config", {"config": mine, "before": [1]}), 400)
    assert page.get("connectors/copy")["config"]["topic"] == "mine"
    deeds = page.get("audit", search="change copy")["rows"]
    assert "failed: copy has changed since it was read" in deeds[0]["outcome"]


def test_of_many_that_change_a_configuration_at_once_one_is_served(page: Console) -> None:
    create(page, "copy", topic="first")
    before = page.get("connectors/copy")["config"]

    def change(number: int) -> int:
        body = {"config": {**before, "topic": f"t{number}"}, "before": before}
        return page.send("POST", "connectors/copy/config", body).status_code

    with ThreadPoolExecutor(8) as threads:
        found = sorted(threads.map(change, range(8)))
    assert found == [200, *[409] * 7]


@pytest.mark.parametrize(
    ("before", "now", "differing"),
    [
        ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, set()),
        ({"a": "1"}, {"a": "2"}, {"a"}),
        ({"a": "1"}, {"a": "[hidden]"}, set()),
        ({"a": "[hidden]"}, {"a": "1"}, set()),
        ({"a": "[hidden]"}, {}, {"a"}),
        ({}, {"a": "[hidden]"}, {"a"}),
    ],
)
def test_what_differs_in_two_configurations(
    before: dict[str, str], now: dict[str, str], differing: set[str]
) -> None:
    assert service._differing(before, now) == differing


TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n"
    "\tat org.apache.kafka.Operator.execAndHandleError(Operator.java:260)\n"
    "Caused by: ann@b.example is no Exception: \n"
    "ann@b.example: Exception\n"
    "Caused by: org.apache.kafka.connect.errors.DataException: Value (ann@b.example)\n"
    "ann@b.example\n"
    "\tat ann@b.example(Cast.java:1)\n"
    "\t... 14 more\n"
    "Caused by: ValueError\n"
)


def test_errors_that_may_quote_masked_fields_show_their_classes_alone(
    worker: tuple[RestWorld, str], tmp_path: Path
) -> None:
    users = tmp_path / "users"
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "connect.url": worker[1],
        "console.users.file": str(users),
        "console.masked.fields": "email",
        "console.roles.shop.rights": "view,unmasked",
        "console.roles.shop.connectors": "shop-*",
        "console.roles.see.rights": "view",
        "console.roles.see.connectors": "copy",
    }
    users.write_text("root: pw,admin\nann: pw,viewer\neve: pw,shop,see\n")
    with console(values) as page:
        page.log_in("root", "pw")
        create(page, "copy")
        create(page, "shop-copy")
        for name in ("copy", "shop-copy"):
            engine = worker[0].herder.engine.tasks[TaskId(name, 1)]
            engine.listener.failed(RuntimeError(f"for ann@b.example\n{TRACE}"))
            waiting = worker[0].herder.engine.tasks[TaskId(name, 0)]
            waiting.listener.waits("Spark has not started yet")
        seen = {"root": ["copy", "shop-copy"], "ann": [], "eve": ["shop-copy"]}
        for user, names in seen.items():
            page.log_in(user, "pw")
            rows = {row["name"]: row["reason"] for row in page.get("connectors")["rows"]}
            for name in ("copy", "shop-copy"):
                waits, fails = page.get(f"connectors/{name}")["tasks"]
                assert "Spark has not started yet" in waits["trace"]
                is_shown = name in names
                assert ("ann@b.example" in fails["trace"]) is is_shown
                assert (rows[name] == "ValueError: •••") is not is_shown
                if not is_shown:
                    assert fails["trace"].splitlines() == [
                        "RuntimeError: •••",
                        "Caused by: org.apache.kafka.connect.errors.DataException: •••",
                        "Caused by: ValueError: •••",
                    ]


@pytest.mark.parametrize(
    ("trace", "shown"),
    [
        (None, None),
        ("", "•••"),
        ("ann@b.example", "•••"),
        ("java.lang.NullPointerException", "java.lang.NullPointerException: •••"),
        ("ann@b.example\nCaused by: a.B$Error: ann", "Caused by: a.B$Error: •••"),
    ],
)
def test_the_classes_of_an_error(trace: str | None, shown: str | None) -> None:
    assert service._classes(trace) == shown


def test_what_failed_says_why_and_is_restarted(
    page: Console, worker: tuple[RestWorld, str]
) -> None:
    create(page, "copy")
    create(page, "whole")
    task = worker[0].herder.engine.tasks[TaskId("copy", 1)]
    task.listener.failed(RuntimeError(f"no {HOSTILE} for {SECRET}"))
    assert [row["name"] for row in page.get("connectors")["rows"]] == ["copy", "whole"]
    (row,) = page.get("connectors", state="FAILED")["rows"]
    assert row["tasks"] == {"RUNNING": 1, "FAILED": 1}
    found = page.get("connectors/copy")["tasks"][1]
    assert HOSTILE in found["trace"]
    assert "[hidden]" in found["trace"]
    shown = page.http.get("/api/connectors").text + page.http.get("/api/connectors/copy").text
    assert SECRET not in shown
    page.done("POST", "connectors/copy/tasks/1/restart")
    assert states(page, "copy") == ("RUNNING", ["RUNNING", "RUNNING"])
    worker[0].herder.engine.tasks[TaskId("copy", 1)].listener.failed(RuntimeError("again"))
    started = len(worker[0].herder.engine.started)
    page.done("POST", "connectors/copy/restart", {"tasks": True, "only_failed": True})
    assert states(page, "copy") == ("RUNNING", ["RUNNING", "RUNNING"])
    assert worker[0].herder.engine.started[started:] == [TaskId("copy", 1)]
    page.done("POST", "connectors/copy/restart", {"tasks": True})
    assert len(worker[0].herder.engine.started) == started + 3
    told(page.send("POST", "connectors/copy/tasks/7/restart"), 404)
    told(page.send("POST", "connectors/copy/tasks/x/restart"), 400)


def test_secrets_are_never_shown_and_stay_when_others_change(
    page: Console, worker: tuple[RestWorld, str]
) -> None:
    url = "jdbc:postgresql://me:pw@db/shop"
    create(page, "copy", path=url, **{"producer.override.sasl.jaas.config": SECRET})
    found = page.get("connectors/copy")["config"]
    hidden = {key for key, value in found.items() if value == "[hidden]"}
    assert hidden == {"secret", "path", "producer.override.sasl.jaas.config"}
    change = {**found, "wanted.tasks": "1"}
    page.done("POST", "connectors/copy/config", {"config": change})
    saved = worker[0].herder.herder.info("copy")["config"]
    assert (saved["secret"], saved["path"], saved["wanted.tasks"]) == (SECRET, url, "1")
    body = {"config": {**found, "other": "[hidden]"}}
    assert (
        "other: there is no secret"
        in told(page.send("POST", "connectors/copy/config", body), 409)["error"]
    )
    assert SECRET not in page.http.get("/api/audit").text


@pytest.mark.parametrize(
    "change",
    [
        {"database.hostname": "evil.example"},
        {"database.hostname": None},
        {"database.port": "5433"},
        {"connector.class": "org.apache.kafka.connect.tools.MockSinkConnector"},
        {"value.converter": "io.confluent.connect.avro.AvroConverter"},
        {"note": "http://evil.example"},
        {"producer.override.bootstrap.servers": "evil.example:9092"},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("request_of", ["config", "check"])
def test_a_kept_secret_goes_nowhere_else(
    page: Console, worker: tuple[RestWorld, str], change: dict[str, str | None], request_of: str
) -> None:
    """Who may edit must not read: a server that they choose would be sent the password."""
    create(page, "copy", **{"database.hostname": "db.example", "database.port": "5432"})
    found = page.get("connectors/copy")["config"]
    changed = {key: value for key, value in {**found, **change}.items() if value is not None}
    body = {"config": changed}
    error = told(page.send("POST", f"connectors/copy/{request_of}", body), 409)["error"]
    assert "secret: write the secret again" in error
    assert next(iter(change)) in error
    assert SECRET not in error
    assert worker[0].herder.herder.info("copy")["config"]["secret"] == SECRET


def test_a_secret_that_is_written_again_goes_where_it_is_sent(
    page: Console, worker: tuple[RestWorld, str]
) -> None:
    create(page, "copy", **{"database.hostname": "db.example", "database.password": SECRET})
    found = page.get("connectors/copy")["config"]
    assert {key for key, value in found.items() if value == "[hidden]"} == {
        "secret",
        "database.password",
    }
    # Another secret changes nothing about where this one goes.
    change = {**found, "database.password": "a new one", "topic": "other"}
    page.done("POST", "connectors/copy/config", {"config": change})
    saved = worker[0].herder.herder.info("copy")["config"]
    assert (saved["secret"], saved["database.password"]) == (SECRET, "a new one")
    moved = {**found, "database.hostname": "other", "database.password": "x", "secret": "written"}
    page.done("POST", "connectors/copy/config", {"config": moved})
    saved = worker[0].herder.herder.info("copy")["config"]
    assert (saved["secret"], saved["database.hostname"]) == ("written", "other")


def test_a_plugin_that_is_gone_shows_no_setting(
    page: Console, worker: tuple[RestWorld, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(page, "copy")

    def refuse(*_: Any) -> Any:
        raise RefusedError("no such plugin")

    monkeypatch.setattr(service.ConnectorService, "_validated", refuse)
    found = page.get("connectors/copy")["config"]
    assert (found["connector.class"], found["topic"]) == (SOURCE, "[hidden]")


def test_errors_are_those_of_the_settings(page: Console) -> None:
    body = {"config": {"connector.class": SOURCE, "wanted.tasks": "many", "secret": SECRET}}
    fields = {one["name"]: one for one in page.done("POST", "connectors/new/check", body)}
    wrong = {name for name, one in fields.items() if one["errors"]}
    assert wrong == {"topic", "wanted.tasks"}
    assert "many" in fields["wanted.tasks"]["errors"][0]
    assert (fields["topic"]["is_required"], fields["secret"]["type"]) == (True, "PASSWORD")
    assert fields["path"]["doc"] == "Where to read."
    answer = told(page.send("POST", "connectors/new/config", {**body, "is_new": True}), 409)
    assert "2 error(s)" in answer["error"]
    for config, words in (({}, "connector.class is missing"), ({"connector.class": "No"}, "No")):
        answer = told(page.send("POST", "connectors/new/check", {"config": config}), 409)
        assert words in answer["error"]
    told(page.send("POST", "connectors/new/check", {"config": {"a": 1}}), 400)
    told(page.send("POST", "connectors/new/check", {"config": []}), 400)


def test_who_may_do_what(guarded: Console, page: Console) -> None:
    told(guarded.http.get("/api/connectors"), 401)
    for name in ("shop-copy", "bank-copy"):
        create(page, name)
    guarded.log_in("ann", "pw")
    for one in (one for one in connectors.ENDPOINTS if one.right != "view"):
        assert told(guarded.send(one.method, _path(one), {}), 403)["right"] == one.right
    guarded.log_in("bob", "pw")
    guarded.done("POST", "connectors/bank-copy/restart")
    told(guarded.send("DELETE", "connectors/bank-copy", {"confirm": "bank-copy"}), 403)
    guarded.log_in("eve", "pw")
    assert [row["name"] for row in guarded.get("connectors")["rows"]] == ["shop-copy"]
    told(guarded.http.get("/api/connectors/bank-copy"), 403)
    told(guarded.send("POST", "connectors/bank-copy/state", {"what": "stop"}), 403)
    guarded.done("DELETE", "connectors/shop-copy", {"confirm": "shop-copy"})


def _path(endpoint: Endpoint) -> str:
    where = endpoint.path.removeprefix("/api/")
    return where.replace("{connector}", "shop-copy").replace("{task}", "0")


def test_other_sites_and_forms_change_nothing(page: Console) -> None:
    create(page, "copy")
    body = json.dumps({"what": "stop"})
    assert page.http.post("/api/connectors/copy/state", content=body).status_code == 400
    headers = {"x-console": "1", "content-type": "application/json", "origin": "http://evil"}
    answer = page.http.post("/api/connectors/copy/state", content=body, headers=headers)
    assert answer.status_code == 403
    assert states(page, "copy")[0] == "RUNNING"


def test_a_worker_that_is_away_or_leads_elsewhere_says_so() -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        assert "--connect-url" in told(page.http.get("/api/connectors"), 404)["error"]
    values = {"bootstrap.servers": "127.0.0.1:1", "connect.url": "http://me:pw@127.0.0.1:1"}
    with console(values) as page:
        answer = told(page.http.get("/api/connectors"), 503)
        assert (answer["kind"], answer["service"]) == ("away", "the Connect worker")
        assert "pw" not in answer["error"]
    answers = [Answer(302, b"", {"Location": "http://127.0.0.1:1/connectors"})]
    with (
        WebService(lambda _: answers[-1]) as worker,
        console(
            {
                "bootstrap.servers": "127.0.0.1:1",
                "connect.url": worker.url,
                "connect.basic.auth.user.info": "me:secret",
            }
        ) as page,
    ):
        assert "not followed" in told(page.http.get("/api/connectors"), 409)["error"]
        assert worker.asked[0].headers["authorization"] == "Basic bWU6c2VjcmV0"
        for body in (b"<html>", b"[1]", b'{"a": 1}', b'{"a": {"status": 7}}', b"null"):
            answers.append(Answer(200, body))
            for where in ("connectors", "connectors/a", "connector-plugins"):
                status = page.http.get(f"/api/{where}").status_code
                assert status in (200, 409), (body, where)


def test_settings_of_tls_and_addresses() -> None:
    servers = {"bootstrap.servers": "a:1"}
    with pytest.raises(ConfigError, match=r"connect\.url"):
        ConsoleConfig({**servers, "connect.url": "localhost:8083"})
    values = {**servers, "connect.url": "https://a:1", "connect.ssl.truststore.location": "/no"}
    with pytest.raises(ConfigError, match="/no"):
        ConsoleConfig(values).tls("connect")
    assert ConsoleConfig({**servers, "connect.url": "https://a:1"}).tls("connect") is None


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        (7, "instead of a list"),
        ({"a": 1}, "instead of a list"),
        ([7], "instead of an object"),
        ([{"id": "x"}], "instead of a whole number"),
        ([{"id": None}], "instead of a whole number"),
        ([{}], "instead of a whole number"),
    ],
    ids=str,
)
def test_tasks_of_odd_kinds_are_an_odd_answer_and_no_fault_of_the_console(
    tasks: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = SimpleNamespace(urls=["http://w"], ask=lambda *_: {"tasks": tasks, "connector": {}})
    asked = service.ConnectorService(cast("Rest", rest))
    monkeypatch.setattr(asked, "_config", lambda _: {})
    monkeypatch.setattr(asked, "_at", lambda _: rest)
    monkeypatch.setattr(asked, "_secret_names", lambda *_: frozenset())
    with pytest.raises(RefusedError, match=words):
        asked.one("c")
