"""Connectors of several workers in the console: of one group, and that know nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.console.services import connectors as service
from support.connect.herder_world import SOURCE
from support.connect.rest_world import RestWorld
from support.console_world import Console, console
from support.http_server import served

AWAY = "http://127.0.0.1:1"
CONFIG = {"connector.class": SOURCE, "topic": "t", "secret": "correct horse"}
DATAGEN = "io.confluent.kafka.connect.datagen.DatagenConnector"


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[list[RestWorld], list[str]]]:
    """Two workers that know nothing of each other."""
    settings = {"barnabas.connect.restart.enabled": "false"}
    worlds = [RestWorld(tmp_path / name, settings) for name in ("a", "b")]
    with served(worlds[0].app) as first, served(worlds[1].app) as second:
        yield worlds, [first, second]
    for world in worlds:
        world.close()


@pytest.fixture
def page(
    workers: tuple[list[RestWorld], list[str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Console]:
    monkeypatch.setattr(service, "LIST_KEPT_S", 0.0)
    with asking(*workers[1]) as found:
        yield found


def asking(*urls: str) -> Any:
    return console({"bootstrap.servers": "127.0.0.1:1", "connect.url": ", ".join(urls)})


def create(page: Console, name: str, address: str, **more: str) -> None:
    body = {"config": {**CONFIG, **more}, "is_new": True, "address": address}
    page.done("POST", f"connectors/{name}/config", body)


def names(world: RestWorld) -> set[str]:
    return set(world.herder.herder.connectors())


def test_connectors_of_all_workers_each_where_it_is(
    page: Console, workers: tuple[list[RestWorld], list[str]]
) -> None:
    worlds, urls = workers
    for name, url in zip(("one", "two"), urls, strict=True):
        create(page, name, url)
    assert [names(world) for world in worlds] == [{"one"}, {"two"}]
    found = page.get("connectors")
    told = {row["name"]: (row["address"], row["elsewhere"]) for row in found["rows"]}
    assert told == {"one": (urls[0], []), "two": (urls[1], [])}
    assert found["away"] == []
    assert page.get("connectors/two")["config"]["secret"] == "[hidden]"
    change = {**page.get("connectors/two")["config"], "wanted.tasks": "2", "tasks.max": "2"}
    page.done("POST", "connectors/two/config", {"config": change})
    saved = worlds[1].herder.herder.info("two")["config"]
    assert (saved["wanted.tasks"], saved["secret"]) == ("2", "correct horse")
    page.done("POST", "connectors/two/state", {"what": "pause"})
    assert page.get("connectors/two")["state"] == "PAUSED"
    assert page.get("connectors/one")["state"] == "RUNNING"
    page.done("DELETE", "connectors/two", {"confirm": "two"})
    assert [names(world) for world in worlds] == [{"one"}, set()]
    assert page.http.get("/api/connectors/two").status_code == 404
    new = {"config": CONFIG, "is_new": True, "address": "http://evil.example"}
    assert page.send("POST", "connectors/new/config", new).status_code == 409
    assert page.send("POST", "connectors/new/check", new).status_code == 409


def test_plugins_say_which_workers_have_them(
    page: Console, workers: tuple[list[RestWorld], list[str]]
) -> None:
    found = {one["name"]: one["addresses"] for one in page.get("connector-plugins")}
    assert found[DATAGEN] == workers[1]


def test_one_name_at_two_workers_is_said(
    page: Console, workers: tuple[list[RestWorld], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds, urls = workers
    for url in urls:
        create(page, "same", url)
    # These two report the same name; separate workers have separate addresses.
    status = worlds[1].herder.herder.status
    monkeypatch.setattr(
        worlds[1].herder.herder, "status", lambda name: renamed(status(name)), raising=True
    )
    (row,) = page.get("connectors")["rows"]
    assert (row["address"], row["elsewhere"]) == (urls[0], [urls[1]])
    page.done("POST", "connectors/same/state", {"what": "pause"})
    assert worlds[1].herder.herder.status("same")["connector"]["state"] == "RUNNING"


def renamed(status: dict[str, Any]) -> dict[str, Any]:
    return {**status, "connector": {**status["connector"], "worker_id": "elsewhere:8083"}}


def test_workers_of_one_group_are_asked_in_turn(
    workers: tuple[list[RestWorld], list[str]],
) -> None:
    url = workers[1][0]
    alias = url.replace("127.0.0.1", "localhost")
    with asking(alias, url) as page:
        create(page, "one", url)
        (row,) = page.get("connectors")["rows"]
        assert (row["name"], row["elsewhere"]) == ("one", [])


def test_a_worker_that_is_away_hides_no_other(
    workers: tuple[list[RestWorld], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LIST_KEPT_S", 0.0)
    with asking(AWAY, workers[1][1]) as page:
        create(page, "two", workers[1][1])
        found = page.get("connectors")
        assert [row["name"] for row in found["rows"]] == ["two"]
        (why,) = found["away"]
        assert AWAY in why
        assert page.get("connectors/two")["state"] == "RUNNING"
        answer = page.http.get("/api/connectors/of-the-other")
        assert (answer.status_code, AWAY in answer.text) == (503, True)
    with asking(AWAY, "http://127.0.0.1:2") as page:
        answer = page.http.get("/api/connectors")
        assert answer.status_code == 503
        assert "127.0.0.1:2" in answer.text
