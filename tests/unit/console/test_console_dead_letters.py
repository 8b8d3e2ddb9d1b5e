"""Dead letters of connectors in the console, over a cluster and a worker's REST interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.connect.record import RawRecord
from barnabas.console.services import connectors as service
from barnabas.console.services import dead_letters
from support.connect.dead_letters import write_dead_letter
from support.connect.herder_world import SINK, SOURCE
from support.connect.rest_world import RestWorld
from support.console_world import Console, console
from support.http_server import served

HOSTILE = '<img src=x onerror="document.title=1">'
USERS = "ann: pw,viewer\neve: pw,shop\nlou: pw,list\n"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Cluster() as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        yield kafka


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    world = RestWorld(tmp_path, {"barnabas.connect.restart.enabled": "false"})
    with served(world.app) as url:
        yield url
    world.close()


@pytest.fixture
def page(kafka: Kafka, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(service, "LIST_KEPT_S", 0.0)
    values = {"bootstrap.servers": kafka.bootstrap_servers, "connect.url": url}
    with console(values) as found:
        yield found


def sink(page: Console, name: str, **more: str) -> None:
    given = {key.replace("__", "."): value for key, value in more.items()}
    config = {"connector.class": SINK, "topics": "orders", **given}
    page.done("POST", f"connectors/{name}/config", {"config": config, "is_new": True})


def fail(kafka: Kafka, queue: str, connector: str, why: str, **more: Any) -> None:
    original = RawRecord(topic="orders", partition=3, key=b"k", value=b"\xff\x00", offset=11)
    error = ValueError(why)
    write_dead_letter(kafka.producer(), queue, connector, error, original=original, **more)


def test_how_many_there_are_and_why(page: Console, kafka: Kafka) -> None:
    queue = kafka.topic("dead", partitions=2)
    headers = "errors__deadletterqueue__context__headers__enable"
    sink(page, "lake", errors__deadletterqueue__topic__name=queue, **{headers: "true"})
    found = page.get("connectors/lake/dead-letters")
    assert (found["topic"], found["records"], found["has_reason"]) == (queue, 0, True)
    fail(kafka, queue, "lake", f"no {HOSTILE}")
    fail(kafka, queue, "search", "of another connector")
    fail(kafka, queue, "lake", "", has_context=False)
    found = page.get("connectors/lake/dead-letters")
    assert (found["records"], found["exists"]) == (3, True)
    assert found["may"] == {"view": True, "read": True}
    found = page.get(f"topics/{queue}/dead-letters", connector="lake")
    assert (found["others"], found["is_complete"], found["has_more"]) == (1, True, False)
    by_name = {one["reason"]["connector"]: one for one in found["letters"]}
    assert set(by_name) == {"lake", None}
    trace = by_name["lake"]["reason"].pop("trace")
    assert f"ValueError: no {HOSTILE}" in trace
    assert by_name["lake"]["reason"] == {
        "connector": "lake",
        "task": "2",
        "stage": "VALUE_CONVERTER",
        "class_name": "my.Converter",
        "exception": "ValueError",
        "message": f"no {HOSTILE}",
        "topic": "orders",
        "partition": 3,
        "offset": 11,
    }
    assert by_name["lake"]["record"]["value"]["form"] == "bytes"
    assert set(by_name[None]["reason"].values()) == {None}


def test_what_other_programs_write_into_the_headers_is_shown(page: Console, kafka: Kafka) -> None:
    queue = kafka.topic("dead")
    producer = kafka.producer()
    told: list[tuple[str, Any]] = [
        ("connector.name", b"lake"),
        ("exception.message", b'{"at": 1}'),
        ("exception.stacktrace", b"x" * (dead_letters.TRACE_CHARS_MAX + 1)),
        ("partition", b"one"),
        ("offset", "٣".encode()),
        ("task.id", None),
        ("stage", b"\xff"),
    ]
    headers = [(dead_letters.HEADER_PREFIX + name, data) for name, data in told]
    producer.produce(queue, b"v", headers=headers)
    assert producer.flush(60) == 0
    (found,) = page.get(f"topics/{queue}/dead-letters", connector="lake")["letters"]
    reason = found["reason"]
    assert (reason["message"], reason["stage"], reason["task"]) == ('{"at": 1}', "ff", None)
    assert (reason["partition"], reason["offset"]) == (None, None)
    assert len(reason["trace"]) == dead_letters.TRACE_CHARS_MAX


def test_a_connector_without_a_queue_says_so(page: Console, kafka: Kafka) -> None:
    sink(page, "plain")
    found = page.get("connectors/plain/dead-letters")
    assert (found["kind"], found["topic"]) == ("sink", None)
    config = {"connector.class": SOURCE, "topic": "t"}
    page.done("POST", "connectors/source/config", {"config": config, "is_new": True})
    assert page.get("connectors/source/dead-letters") == {"kind": "source"}
    sink(page, "early", errors__deadletterqueue__topic__name="not-yet-there")
    found = page.get("connectors/early/dead-letters")
    assert (found["topic"], found["exists"], found["records"]) == ("not-yet-there", False, 0)
    assert page.http.get("/api/connectors/nowhere/dead-letters").status_code == 404


def test_rights_on_the_queue_are_those_of_the_topic(
    page: Console, kafka: Kafka, url: str, tmp_path: Path
) -> None:
    queue = kafka.topic("dead")
    fail(kafka, queue, "lake", "no")
    sink(page, "lake", errors__deadletterqueue__topic__name=queue)
    users = tmp_path / "users"
    users.write_text(USERS)
    values = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "connect.url": url,
        "console.users.file": str(users),
        "console.masked.fields": "email",
        "console.roles.shop.rights": "view,read",
        "console.roles.shop.topics": "shop-*",
        "console.roles.shop.connectors": "lake",
        "console.roles.list.rights": "view",
    }
    with console(values) as guarded:
        guarded.log_in("eve", "pw")
        found = guarded.get("connectors/lake/dead-letters")
        assert found["may"] == {"view": False, "read": False}
        assert "records" not in found
        assert guarded.http.get(f"/api/topics/{queue}/dead-letters").status_code == 403
        guarded.log_in("lou", "pw")
        found = guarded.get("connectors/lake/dead-letters")
        assert (found["records"], found["may"]["read"]) == (1, False)
        assert guarded.http.get(f"/api/topics/{queue}/dead-letters").status_code == 403
        guarded.log_in("ann", "pw")
        (letter,) = guarded.get(f"topics/{queue}/dead-letters")["letters"]
        assert letter["record"]["value"]["text"] == "•••"
