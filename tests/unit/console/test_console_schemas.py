"""Schemas in the console, over a registry in a thread: asked as the pages ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from barnabas import Cluster
from barnabas.base.errors import ConfigError
from barnabas.console.config import ConsoleConfig
from barnabas.console.pages import schemas
from barnabas.console.pages.calls import Endpoint
from barnabas.console.services.asking import RefusedError
from barnabas.console.services.rest import path
from barnabas.console.services.schemas import compare
from support.connect.web_service import Answer, WebService
from support.console_world import Console, console
from support.registry_thread import registry_of

HOSTILE = '<img src=x onerror="document.title=1">'
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}],
}
CITY = {"name": "city", "type": "string", "default": ""}
WIDER = {**ORDER, "fields": [*ORDER["fields"], CITY]}
BROKEN = {**ORDER, "fields": [{"name": "number", "type": "long"}]}
USERS = "ann: pw,viewer\nbob: pw,editor\neve: pw,shop\n"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    with Cluster() as cluster, registry_of(cluster.bootstrap_servers) as url:
        yield cluster.bootstrap_servers, url


@pytest.fixture(scope="module")
def page(servers: tuple[str, str]) -> Iterator[Console]:
    with console({"bootstrap.servers": servers[0], "schema.registry.url": servers[1]}) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(
    servers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    users = tmp_path_factory.mktemp("schemas") / "users"
    users.write_text(USERS)
    values = {
        "bootstrap.servers": servers[0],
        "schema.registry.url": servers[1],
        "console.users.file": str(users),
        "console.roles.shop.rights": "view,edit,admin",
        "console.roles.shop.subjects": "shop-*",
    }
    with console(values) as found:
        yield found


def told(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()


def at(subject: str, rest: str = "") -> str:
    return f"schemas/subjects/{quote(subject, safe='')}{rest}"


def given(schema: Any, kind: str = "AVRO", **more: Any) -> dict[str, Any]:
    return {"type": kind, "schema": json.dumps(schema), **more}


def names(page: Console, **query: Any) -> list[str]:
    return [row["name"] for row in page.get("schemas/subjects", **query)["rows"]]


def test_a_subject_is_registered_compared_and_deleted(page: Console) -> None:
    assert "registry" in page.get("me")["services"]
    assert page.get("schemas")["level"] == "BACKWARD"
    first = page.done("POST", at("orders-value", "/versions"), given(ORDER))["id"]
    assert page.done("POST", at("orders-value", "/check"), given(WIDER))["is_compatible"]
    refused = page.done("POST", at("orders-value", "/check"), given(BROKEN))
    assert not refused["is_compatible"]
    assert any("number" in text for text in refused["messages"])
    answer = told(page.send("POST", at("orders-value", "/versions"), given(BROKEN)), 409)
    assert "incompatible" in answer["error"]
    page.done("POST", at("orders-value", "/versions"), given(WIDER))
    (row,) = page.get("schemas/subjects", search="ORDERS value")["rows"]
    assert (row["type"], row["version"], row["level"]) == ("AVRO", 2, "BACKWARD")
    one = page.get(at("orders-value", "/versions/1"))
    assert (one["id"], one["type"], one["text"]) == (first, "AVRO", json.dumps(ORDER, indent=2))
    lines = page.get(at("orders-value", "/difference"), before=1, after=2)
    assert {line["text"].strip() for line in lines if line["kind"] == "added"} >= {
        '"name": "city",'
    }
    wrong = page.send("DELETE", at("orders-value"), {"confirm": "orders"})
    assert "orders-value" in told(wrong, 400)["error"]
    confirm = {"confirm": "orders-value"}
    soft = page.send("DELETE", at("orders-value"), {**confirm, "permanent": True})
    assert "was not deleted first" in told(soft, 404)["error"]
    page.done("DELETE", at("orders-value", "/versions/1"), confirm)
    states = {one["version"]: one["is_deleted"] for one in page.get(at("orders-value"))["versions"]}
    assert states == {1: True, 2: False}
    page.done("DELETE", at("orders-value", "/versions/1"), {**confirm, "permanent": True})
    page.done("DELETE", at("orders-value"), confirm)
    assert "orders-value" not in names(page)
    assert "orders-value" in names(page, deleted="1")
    page.done("DELETE", at("orders-value"), {**confirm, "permanent": True})
    assert "orders-value" not in names(page, deleted="1")
    told(page.http.get(f"/api/{at('orders-value')}"), 404)
    deeds = [one["action"] for one in page.get("audit", search="orders-value")["rows"]]
    assert deeds[0] == "delete subject for good"
    assert "register schema" in deeds


def test_references_and_who_refers(page: Console) -> None:
    user = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "long"}]}
    page.done("POST", at("user", "/versions"), given(user))
    team = {"type": "record", "name": "Team", "fields": [{"name": "lead", "type": "User"}]}
    references = [{"name": "User", "subject": "user", "version": 1}]
    made = page.done("POST", at("team", "/versions"), given(team, references=references))
    assert page.get(at("team", "/versions/1"))["references"] == references
    assert page.get(at("user", "/versions/1"))["referrers"] == [made["id"]]
    wrong = page.send("POST", at("team", "/check"), given(team, references=[{"name": "User"}]))
    assert "references are a list" in told(wrong, 400)["error"]


def test_levels_and_modes(page: Console) -> None:
    page.done("POST", at("levels", "/versions"), given(ORDER))
    page.done("POST", at("levels", "/level"), {"level": "FULL"})
    assert page.get(at("levels"))["level"] == {"value": "FULL", "is_own": True}
    page.done("POST", "schemas/level", {"level": "FORWARD"})
    assert page.get("schemas")["level"] == "FORWARD"
    page.done("POST", at("levels", "/level"), {"level": None})
    assert page.get(at("levels"))["level"] == {"value": "FORWARD", "is_own": False}
    page.done("POST", "schemas/level", {"level": "BACKWARD"})
    assert "none of" in told(page.send("POST", "schemas/level", {"level": "MOST"}), 409)["error"]
    page.done("POST", at("levels", "/mode"), {"mode": "READONLY"})
    assert page.get(at("levels"))["mode"] == {"value": "READONLY", "is_own": True}
    told(page.send("POST", at("levels", "/versions"), given(WIDER)), 409)
    page.done("POST", at("levels", "/mode"), {"mode": None})


def test_names_with_slashes_and_markup(page: Console) -> None:
    name = f"a/b?c#d%2F{HOSTILE}"
    page.done("POST", at(name, "/versions"), given(ORDER))
    assert page.get(at(name))["name"] == name
    assert name in names(page, search="a/b")
    for strange in ("..", "."):
        answer = page.http.get(f"/api/schemas/subjects/{'%2E' * len(strange)}")
        assert answer.status_code in (404, 409), answer.text
    with pytest.raises(RefusedError, match="not a name"):
        path("subjects", "..", "versions")


@pytest.mark.parametrize("number", ["1" * 5_000, "²", "-1"])
def test_versions_that_are_no_numbers(page: Console, number: str) -> None:
    answer = page.http.get(f"/api/{at('x', '/versions/')}{quote(number)}")
    assert (answer.status_code, answer.json()["error"]) == (400, "a version is a number")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"type": "AVRO"}, "schema is missing"),
        ({"type": "XML", "schema": "<a/>"}, "XML is none of AVRO, JSON, PROTOBUF"),
        ({"type": "AVRO", "schema": "{"}, "not a valid AVRO schema"),
        ({"type": "AVRO", "schema": '"long"', "references": {}}, "references are a list"),
    ],
)
def test_schemas_that_cannot_be_meant(page: Console, body: dict[str, Any], words: str) -> None:
    answer = page.send("POST", at("wrong", "/versions"), body)
    assert answer.status_code in (400, 409), answer.text
    assert words in answer.json()["error"]


def test_who_may_do_what(guarded: Console, page: Console) -> None:
    told(guarded.http.get("/api/schemas/subjects"), 401)
    for subject in ("shop-value", "bank-value"):
        page.done("POST", at(subject, "/versions"), given(ORDER))
    guarded.log_in("ann", "pw")
    for one in (one for one in schemas.ENDPOINTS if one.right != "view"):
        assert told(guarded.send(one.method, _path(one), {}), 403)["right"] == one.right
    guarded.log_in("bob", "pw")
    guarded.done("POST", at("shop-value", "/versions"), given(WIDER))
    told(guarded.send("DELETE", at("shop-value"), {"confirm": "shop-value"}), 403)
    guarded.log_in("eve", "pw")
    assert names(guarded) == ["shop-value"]
    told(guarded.http.get(f"/api/{at('bank-value')}"), 403)
    told(guarded.send("POST", "schemas/level", {"level": "NONE"}), 403)
    references = [{"name": "Order", "subject": "bank-value", "version": 1}]
    body = given(ORDER, references=references)
    told(guarded.send("POST", at("shop-other", "/versions"), body), 403)
    guarded.done("DELETE", at("shop-value"), {"confirm": "shop-value"})


def _path(endpoint: Endpoint) -> str:
    where = endpoint.path.removeprefix("/api/")
    return where.replace("{subject}", "shop-value").replace("{version}", "1")


def test_other_sites_and_forms_change_nothing(page: Console) -> None:
    body = json.dumps(given(ORDER))
    url = f"/api/{at('forged', '/versions')}"
    assert page.http.post(url, content=body).status_code == 400
    headers = {"x-console": "1", "content-type": "application/json", "origin": "http://evil"}
    assert page.http.post(url, content=body, headers=headers).status_code == 403
    assert "forged" not in names(page)


def test_a_registry_that_is_away_or_not_there_says_so() -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        assert page.get("me")["services"] == []
        answer = told(page.http.get("/api/schemas"), 404)
        assert answer["error"] == "the console has no schema registry: start it with --registry-url"
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://me:secret@127.0.0.1:1",
    }
    with console(values) as page:
        for where in ("schemas", "schemas/subjects", "schemas/subjects/a"):
            answer = told(page.http.get(f"/api/{where}"), 503)
            assert (answer["kind"], answer["service"]) == ("away", "the schema registry")
            assert "http://127.0.0.1:1" in answer["error"]
            assert "secret" not in answer["error"]


def test_a_registry_leads_nowhere_else_and_answers_nonsense() -> None:
    answers: list[Answer] = []
    with (
        WebService(lambda _: Answer(200, [])) as inner,
        WebService(lambda _: answers[-1]) as registry,
        console({"bootstrap.servers": "127.0.0.1:1", "schema.registry.url": registry.url}) as page,
    ):
        answers.append(Answer(302, b"", {"Location": f"{inner.url}/subjects"}))
        answer = told(page.http.get("/api/schemas/subjects"), 409)
        assert "points to another address; not followed" in answer["error"]
        assert inner.asked == []
        for body in (b"<html>", b"[1]", b"{}", b"null", b"7"):
            answers.append(Answer(200, body))
            for where in ("schemas", "schemas/subjects"):
                status = page.http.get(f"/api/{where}").status_code
                assert status in (200, 409), (body, where)
        answers.append(Answer(401, {"message": "who are you?"}))
        answer = told(page.http.get("/api/schemas"), 409)
        assert answer["error"].endswith("refuses the console's login: 401 who are you?")


@pytest.mark.parametrize(
    ("more", "header"),
    [
        ({"basic.auth.user.info": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({"schema.registry.basic.auth.user.info": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({"bearer.auth.token": "t0ken"}, "Bearer t0ken"),
    ],
)
def test_logins_of_registries(more: dict[str, str], header: str) -> None:
    kind = "bearer" if "bearer.auth.token" in more else "basic"
    source = "STATIC_TOKEN" if kind == "bearer" else "USER_INFO"
    with WebService(lambda _: Answer(200, {})) as registry:
        values = {
            "bootstrap.servers": "127.0.0.1:1",
            "schema.registry.url": registry.url,
            f"{kind}.auth.credentials.source": source,
            **more,
        }
        with console(values) as page:
            page.get("schemas")
        assert {one.headers["authorization"] for one in registry.asked} == {header}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"basic.auth.credentials.source": "USER_INFO"}, "UserInfo must be provided"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "Token must be provided"),
        ({"schema.registry.ssl.truststore.location": "/nowhere"}, "/nowhere"),
        ({"bearer.auth.cache.expiry.buffer.seconds": "soon"}, "not a whole number"),
    ],
)
def test_wrong_logins_are_refused(more: dict[str, str], words: str) -> None:
    values = {"bootstrap.servers": "a:1", "schema.registry.url": "http://b:1", **more}
    with pytest.raises(ConfigError, match=words):
        ConsoleConfig(values).registry()


def test_texts_are_compared_line_by_line() -> None:
    found = [(line.kind, line.before, line.after, line.text) for line in compare("a\nb", "a\nc\nd")]
    assert found == [
        ("same", 1, 1, "a"),
        ("removed", 2, None, "b"),
        ("added", None, 2, "c"),
        ("added", None, 3, "d"),
    ]
    with pytest.raises(RefusedError, match="too long to compare"):
        compare("\n" * 6_000, "\n" * 6_000)
