"""What only workers of Apache Kafka answer: in a rebalance, for a new connector, of a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.console.services import connectors as service
from support.connect.web_service import Answer, Asked, WebService
from support.console_world import Console, console

_MOMENTARILY = "Cannot complete request momentarily due to "
BUSY = [
    f"{_MOMENTARILY}stale configuration (typically caused by a concurrent config change)",
    f"{_MOMENTARILY}no known leader URL, likely because a rebalance was underway.",
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
]
CONFIG = {"name": "lines", "connector.class": "org.apache.kafka.connect.file.FileStreamSink"}
TRACE = """\
org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler
\tat org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator.execAndHandleError(x:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data
\tat org.apache.kafka.connect.json.JsonConverter.toConnectData(JsonConverter.java:334)
\t... 15 more
\tSuppressed: java.io.IOException: Caused by: nothing
Caused by: org.apache.kafka.common.errors.SerializationException: Unrecognized token 'nonsense'
\t... 12 more
"""


def refused(status: int, message: str) -> Answer:
    return Answer(status, {"error_code": status, "message": message})


@contextmanager
def worker(answer: Callable[[Asked], Answer]) -> Iterator[tuple[WebService, Console]]:
    with (
        WebService(answer) as web,
        console({"bootstrap.servers": "127.0.0.1:1", "connect.url": web.url}) as page,
    ):
        yield web, page


@pytest.mark.parametrize("words", BUSY)
def test_a_rebalance_is_waited_for(words: str) -> None:
    later: list[Answer] = []

    def answer(_: Asked) -> Answer:
        return later.pop(0)

    with worker(answer) as (web, page):
        later += [refused(409, words), refused(409, words), Answer(200, {})]
        assert page.get("connectors")["rows"] == []
        assert [asked.path for asked in web.asked] == ["/connectors"] * 3
        later += [refused(409, words), Answer(202)]
        page.done("POST", "connectors/lines/state", {"what": "pause"})
        assert [asked.method for asked in web.asked[3:]] == ["PUT"] * 2
    assert later == []


def test_what_a_worker_refuses_for_good_is_not_asked_again() -> None:
    with worker(lambda _: refused(409, "Connector lines already exists")) as (web, page):
        body = {"config": CONFIG, "is_new": True}
        answer = page.send("POST", "connectors/lines/config", body)
        assert (answer.status_code, "already exists" in answer.text) == (409, True)
        assert len(web.asked) == 1


def test_a_rebalance_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait_s in (0.2, 2.0, 20.0):  # a slow machine's first answer comes after the shorter ones
        monkeypatch.setattr(service, "REBALANCE_S", wait_s)
        with worker(lambda _: refused(409, BUSY[0])) as (web, page):
            answer = page.http.get("/api/connectors")
            assert (answer.status_code, BUSY[0] in answer.text) == (409, True)
        if len(web.asked) > 1:
            break
    assert len(web.asked) > 1


def test_a_connector_that_has_no_status_yet_is_shown() -> None:
    """Workers learn of states from a topic: they know a new connector before its first state."""

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith("/status"):
            return refused(404, "No status found for connector lines")
        if asked.path.endswith("/validate"):
            return Answer(200, {"configs": []})
        return Answer(200, CONFIG)

    with worker(answer) as (_, page):
        found = page.get("connectors/lines")
        assert (found["state"], found["type"], found["tasks"]) == ("UNASSIGNED", "unknown", [])
        assert found["config"]["connector.class"] == CONFIG["connector.class"]
        assert page.get("connectors/lines/dead-letters")["topic"] is None


def test_a_connector_that_does_not_exist_is_absent() -> None:
    with worker(lambda _: refused(404, "Connector lines not found")) as (_, page):
        for where in ("connectors/lines", "connectors/lines/dead-letters"):
            assert page.http.get(f"/api/{where}").status_code == 404


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (
            TRACE,
            "org.apache.kafka.common.errors.SerializationException: Unrecognized token 'nonsense'",
        ),
        ("OSError: the bucket is away\n  more", "OSError: the bucket is away"),
        ("", "it failed; the worker does not say why"),
    ],
    ids=["causes", "no cause", "nothing"],
)
def test_the_list_shows_the_cause_of_a_failure(trace: str, reason: str) -> None:
    task = {"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": trace}
    status: dict[str, Any] = {"name": "lines", "type": "sink", "tasks": [task]}
    status["connector"] = {"state": "RUNNING", "worker_id": "w:1"}
    listed = {"lines": {"status": status, "info": {"name": "lines", "config": CONFIG}}}
    with worker(lambda _: Answer(200, listed)) as (_, page):
        (row,) = page.get("connectors")["rows"]
        assert row["reason"] == reason


@pytest.mark.parametrize(("status", "told"), [(404, 404), (500, 409), (503, 503)])
def test_a_page_in_place_of_an_answer_is_not_shown(status: int, told: int) -> None:
    """While a worker starts, its web server answers by itself."""
    body = b"<html><head><title>Error</title></head><body>org.eclipse.jetty</body></html>"
    with worker(lambda _: Answer(status, body)) as (_, page):
        answer = page.http.get("/api/connectors")
        assert answer.status_code == told
        assert f"answers {status}" in answer.text
        assert "jetty" not in answer.text
