"""HTTP source and sink against a web service that fails, is full, and wants logins."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.connectors.http.exchange import retry_after_s
from barnabas.connect.connectors.http.sink import Bodies, HttpSink
from barnabas.connect.connectors.http.source import HttpSource, pointed
from barnabas.connect.record import SinkRecord
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.builder import decimal
from barnabas.schemas.data.errors import ConfigError, ConnectError
from support.certificates import Authority
from support.connect.web_service import Answer, Asked, WebService

SINK = "io.aiven.kafka.connect.http.HttpSinkConnector"
SOURCE = "barnabas.connect.HttpSource"
JSON = "org.apache.kafka.connect.json.JsonConverter"
QUICK = {"retry.backoff.ms": "1", "poll.interval.ms": "20", "http.timeout": "5"}
AS_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}


@pytest.fixture
def kit() -> Iterator[ConnectKit]:
    with ConnectKit() as kit:
        yield kit


def sink(url: str, **more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"connector.class": SINK, "topics": "orders", "http.url": url, **QUICK, **given}


def source(url: str, more: dict[str, str] | None = None) -> dict[str, str]:
    own = {"connector.class": SOURCE, "topic": "orders", "http.url": url}
    return {**own, **QUICK, **AS_JSON, **(more or {})}


def test_sink_sends_each_record(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer()) as service:
        for number in range(3):
            kit.produce("orders", b'{"id": %d}' % number)
        settings = sink(
            f"{service.url}/in?x=1",
            http_headers_content_type="application/json",
            http_headers_additional="a: 1, b:x:y",
            http_authorization_type="static",
            http_headers_authorization="Bearer abc",
        )
        kit.start("web", settings)
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 3})
    assert [one.body for one in service.asked] == [b'{"id": 0}', b'{"id": 1}', b'{"id": 2}']
    first = service.asked[0]
    assert (first.method, first.path, first.parameters) == ("POST", "/in", {"x": "1"})
    assert (first.headers["a"], first.headers["b"]) == ("1", "x:y")
    assert first.headers["authorization"] == "Bearer abc"
    assert first.headers["content-type"] == "application/json"


def test_sink_sends_batches_again_until_they_are_taken(kit: ConnectKit) -> None:
    told = iter(
        [Answer(503), Answer(429, headers={"Retry-After": "0"}), Answer(0), Answer(), Answer()]
    )
    with WebService(lambda _: next(told)) as service:
        for number in range(5):
            kit.produce("orders", b'{"id": %d}' % number)
        more = {
            "batching.enabled": "true",
            "batch.max.size": "3",
            "batch.prefix": "[",
            "batch.suffix": "]",
            "batch.separator": ",",
        }
        kit.start("web", {**sink(service.url), **AS_JSON, **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 5})
    bodies = [json.loads(one.body) for one in service.asked]
    first = [{"id": 0}, {"id": 1}, {"id": 2}]
    assert bodies == [first, first, first, first, [{"id": 3}, {"id": 4}]]


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ({}, b"a\nb\n"),
        ({"batch.separator": "\n\n", "batch.suffix": " ", "batch.prefix": "\t"}, b"\ta\n\nb "),
    ],
)
def test_spaces_between_records_count(kit: ConnectKit, more: dict[str, str], body: bytes) -> None:
    with WebService(lambda _: Answer()) as service:
        for value in (b"a", b"b"):
            kit.produce("orders", value)
        kit.start("web", {**sink(service.url), "batching.enabled": "true", **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 2})
    assert [one.body for one in service.asked] == [body]


def test_sink_asks_by_a_proxy(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer()) as proxy:
        kit.produce("orders", b"a")
        port = proxy.url.rpartition(":")[2]
        more = {"http.proxy.host": "127.0.0.1", "http.proxy.port": port}
        kit.start("web", {**sink("http://far.example/in"), **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 1})
    assert [one.headers["host"] for one in proxy.asked] == ["far.example"]


def test_source_trusts_the_authorities_of_a_store(kit: ConnectKit, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusts = {"http.ssl.truststore.location": authority.file}
    with WebService(lambda _: Answer(body=[1]), authority.issue("web")) as service:
        kit.start("web", source(service.url, trusts))
        kit.wait_for_records("orders", 1)
        kit.produce("in", b"a")
        doubts = {**sink(service.url), "topics": "in", "max.retries": "0"}
        error = kit.wait_for_failure(kit.start("doubts", doubts))
        assert "CERTIFICATE_VERIFY_FAILED" in str(error)
    wrong = source(service.url, {"http.ssl.truststore.location": str(tmp_path / "none")})
    (text,) = HttpSource().validate(wrong)["http.ssl.truststore.location"]
    assert "http.ssl.truststore.location" in text


def test_sink_tries_for_ever_where_it_is_told_to(kit: ConnectKit) -> None:
    told = iter([Answer(503)])
    with WebService(lambda _: next(told, Answer())) as service:
        kit.produce("orders", b"a")
        more = {"max.retries": "0", "kafka.retry.backoff.ms": "1"}
        kit.start("web", {**sink(service.url), **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 1})
    assert len(service.asked) == 2


def test_sink_sends_decimals_as_told(kit: ConnectKit) -> None:
    bodies = []
    for format_ in ("BASE64", "numeric"):
        values = HttpSink.definition.parse(sink("http://h", decimal_format=format_))
        record = SinkRecord(
            topic="t",
            value_schema=decimal(2),
            value=Decimal("1.25"),
            offset=0,
            original_topic="t",
            original_partition=0,
            original_offset=0,
        )
        bodies.append(Bodies(values["decimal.format"]).of(record))
    assert bodies == [b'"fQ=="', b"1.25"]


def test_sink_reports_what_is_refused(kit: ConnectKit) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(400, b"bad one") if asked.body == b"1" else Answer()

    with WebService(answer) as service:
        for number in range(3):
            kit.produce("orders", b"%d" % number)
        more = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
        kit.start("web", {**sink(service.url), **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 3})
        assert kit.values("dead") == [b"1"]
        strict = kit.start("strict", sink(service.url))
        error = kit.wait_for_failure(strict)
    assert "answered 400: bad one" in f"{error} {error.__cause__}"


def test_sink_gives_up_on_a_lost_server(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer(500, b"down")) as service:
        kit.produce("orders", b"x")
        more = {"max.retries": "2", "errors.tolerance": "all"}
        error = kit.wait_for_failure(kit.start("web", {**sink(service.url), **more}))
        assert len(service.asked) == 3
    assert "tried 3 times" in f"{error} {error.__cause__}"
    assert not any(kit.committed("web").values())


def test_oauth2(kit: ConnectKit) -> None:
    valid = ["one"]

    def answer(asked: Asked) -> Answer:
        if asked.path == "/token":
            if len(service.asked) == 1:
                return Answer(503)
            return Answer(body={"access_token": valid[0], "expires_in": 3600})
        if asked.headers["authorization"] != f"Bearer {valid[0]}":
            return Answer(403)
        if asked.body == b"1":
            valid[0] = "two"  # the token that was given ends early
        return Answer()

    with WebService(answer) as service:
        for number in range(3):
            kit.produce("orders", b"%d" % number)
        more = {
            "http.authorization.type": "OAUTH2",
            "oauth2.access.token.url": f"{service.url}/token",
            "oauth2.client.id": "me",
            "oauth2.client.secret": "hush",
            "oauth2.client.scope": "write",
            "oauth2.request.grant.type.property": "kind",
            "oauth2.grant.type": "mine",
            "oauth2.token.renew.on.status.codes": "401, 403",
        }
        kit.start("web", {**sink(service.url), **more})
        kit.wait_until(lambda: kit.committed("web") == {("orders", 0): 3})
    login = "Basic " + base64.b64encode(b"me:hush").decode()
    tokens = [one for one in service.asked if one.path == "/token"]
    assert len(tokens) == 3
    assert tokens[1].headers["authorization"] == login
    assert tokens[1].body == b"kind=mine&scope=write"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"http.url": "ftp://x"}, "http:// or https://"),
        ({"http.authorization.type": "basic"}, "connection.user must be set"),
        ({"http.authorization.type": "oauth2"}, "oauth2.access.token.url must be set"),
        ({"http.authorization.type": "kerberos"}, "must be one of"),
        ({"http.headers.additional": "nonsense"}, "key:value"),
        ({"batch.max.size": "0"}, "batch.max.size"),
        ({"http.proxy.host": "h"}, "http.proxy.port must be set"),
        ({"oauth2.token.renew.on.status.codes": "4xx"}, "list of numbers"),
    ],
)
def test_wrong_settings(more: dict[str, str], text: str) -> None:
    settings = {**sink("http://127.0.0.1"), **more}
    with pytest.raises(ConfigError, match=text):
        HttpSink().start(None, settings)  # type: ignore[arg-type]  # not asked for anything


@pytest.mark.parametrize(
    ("more", "name", "text"),
    [
        (
            {"response.format": "text", "response.key.pointer": "/id"},
            "response.key.pointer",
            "JSON",
        ),
        (
            {"response.format": "text", "response.records.pointer": "/a"},
            *("response.records.pointer", "JSON"),
        ),
        ({"response.format": "text", "paging.mode": "cursor"}, "paging.mode", "is for JSON"),
        ({"paging.mode": "offset", "paging.start": "x"}, "paging.start", "a number, not x"),
        ({"http.authorization.type": "static"}, "http.headers.authorization", "must be set"),
    ],
)
def test_settings_that_do_not_go_together(more: dict[str, str], name: str, text: str) -> None:
    settings = {**source("http://127.0.0.1"), **more}
    errors = HttpSource().validate(settings)
    assert list(errors) == [name]
    assert text in errors[name][0]
    with pytest.raises(ConfigError, match=text):
        HttpSource().start(None, settings)  # type: ignore[arg-type]  # not asked for anything


@pytest.mark.parametrize("url", ["http://me:hush@h:port", "htp://me:hush@h", "http:hush", "hush"])
def test_an_address_that_is_none_is_refused_without_its_secrets(url: str) -> None:
    errors = HttpSource.definition.validate(source(url))["http.url"].errors
    assert errors == [
        "Invalid value for configuration http.url: must be an address with http:// or https://"
    ]


def test_a_header_that_cannot_be_sent_is_refused_without_its_value(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer()) as service:
        more = {"http.authorization.type": "static", "http.headers.authorization": "hu\nsh"}
        error = kit.wait_for_failure(kit.start("web", source(service.url, more)))
    assert "cannot ask" in str(error)
    told = "".join(traceback.format_exception(error))
    assert "LocalProtocolError" in told
    assert "sh'" not in told


def test_offsets_have_no_secret_and_outlive_it(kit: ConnectKit) -> None:
    with WebService(lambda asked: Answer(body=["a", "b"][int(asked.parameters["offset"]) :])) as on:
        address = on.url.replace("http://", "http://me:hush@") + "/rows?key="
        more = {"paging.mode": "offset"}
        running = kit.start("web", source(f"{address}first", more))
        kit.wait_until(lambda: kit.offsets("web") and kit.offsets("web")[0][1]["position"] == 2)
        running.stop()
        on.asked.clear()
        kit.start("web", source(f"{address}second", more))
        kit.wait_until(lambda: on.asked)
    assert kit.offsets("web") == [({"url": f"{on.url}/rows"}, {"position": 2, "skip": 0})]
    assert on.asked[0].parameters == {"key": "second", "offset": "2"}


def test_source_goes_on_by_offset(kit: ConnectKit) -> None:
    rows = [{"id": number} for number in range(7)]
    failures = iter([503, 200, 429, 0])

    def answer(asked: Asked) -> Answer:
        status = next(failures, 200)
        if status != 200:
            return Answer(status, headers={"Retry-After": "0"})
        start = int(asked.parameters["from"])
        return Answer(body={"rows": rows[start : start + int(asked.parameters["n"])]})

    more = {
        "response.records.pointer": "/rows",
        "response.key.pointer": "/id",
        "key.converter": JSON,
        "key.converter.schemas.enable": "false",
        "paging.mode": "offset",
        "paging.parameter": "from",
        "paging.size.parameter": "n",
        "paging.size": "3",
        "http.authorization.type": "basic",
        "connection.user": "me",
        "connection.password": "hush",
    }
    with WebService(answer) as service:
        settings = source(f"{service.url}/rows?kind=a", more)
        running = kit.start("web", settings)
        found = kit.wait_for_records("orders", 7)
        rows += [{"id": 7}, {"id": 8}]
        found = kit.wait_for_records("orders", 9)
        kit.wait_until(lambda: kit.offsets("web") and kit.offsets("web")[0][1]["position"] == 9)
        running.stop()
        assert running.error is None
        rows.append({"id": 9})
        kit.start("web", settings)
        found = kit.wait_for_records("orders", 10)
    assert [json.loads(one.value or b"") for one in found] == rows
    assert [one.key for one in found] == [b"%d" % number for number in range(10)]
    assert service.asked[0].parameters["kind"] == "a"
    assert service.asked[0].headers["authorization"].startswith("Basic ")


def test_source_goes_on_by_cursor(kit: ConnectKit) -> None:
    pages: dict[str, Any] = {
        "": {"items": [1, 2], "next": "b"},
        "b": {"items": [], "next": "c"},
        "c": {"items": [3], "next": None},
    }
    more = {
        "response.records.pointer": "/items",
        "paging.mode": "cursor",
        "paging.parameter": "after",
    }
    with WebService(lambda asked: Answer(body=pages[asked.parameters.get("after", "")])) as service:
        settings = source(service.url, more)
        running = kit.start("web", settings)
        kit.wait_for_records("orders", 3)
        pages["c"] = {"items": [3, 4], "next": None}
        kit.wait_for_records("orders", 4)
        running.stop()
        pages["c"] = {"items": [3, 4, 5], "next": "d"}
        pages["d"] = {"items": [6]}
        kit.start("web", settings)
        found = kit.wait_for_records("orders", 6)
        kit.wait_until(lambda: kit.offsets("web")[0][1] == {"position": "d", "skip": 1})
    assert [one.value for one in found] == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_source_without_pages_and_of_text(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer(body=b"a\nb\n")) as service:
        kit.start("web", source(service.url, {"response.format": "text"}))
        kit.wait_for_records("orders", 4)
    assert kit.values("orders")[:4] == [b'"a"', b'"b"', b'"a"', b'"b"']
    assert HttpSource().exactly_once_support({}) is False
    assert HttpSource().exactly_once_support({"paging.mode": "cursor"}) is True


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(404, b"nothing here"), "answered 404: nothing here"),
        (Answer(200, b"<html>"), "did not answer with JSON"),
    ],
)
def test_source_fails(kit: ConnectKit, answer: Answer, text: str) -> None:
    with WebService(lambda _: answer) as service:
        error = kit.wait_for_failure(kit.start("web", source(f"{service.url}/a?key=secret")))
    assert text in str(error)
    assert "secret" not in str(error)


def test_a_source_that_waits_for_a_server_ends_at_once(kit: ConnectKit) -> None:
    busy = Answer(503, headers={"Retry-After": "300"})
    with WebService(lambda _: busy) as service:
        given = {"retry.backoff.max.ms": "300000"}
        running = kit.start("c", source(service.url, given))
        kit.wait_until(lambda: service.asked)
        running.stop()
        assert running.tasks[0].join(60)  # the pause is of 300 s
        assert len(service.asked) == 1


def test_a_sink_that_waits_for_a_server_ends_at_once(kit: ConnectKit) -> None:
    with WebService(lambda _: Answer(503, headers={"Retry-After": "300"})) as service:
        kit.produce("orders", b"1")
        running = kit.start("c", sink(service.url, retry_backoff_max_ms="300000"))
        kit.wait_until(lambda: service.asked)
        running.stop()
        assert running.tasks[0].join(60)  # the pause is of 300 s
        assert len(service.asked) == 1
    assert kit.committed("c") == {}


def test_offsets_that_users_give() -> None:
    connector = HttpSource()
    assert connector.alter_offsets({}, [({"url": "u"}, {"position": 1}), ({"url": "u"}, None)])
    for partition, offset in (({}, {"position": 1}), ({"url": "u"}, {"x": 1})):
        with pytest.raises(ConnectError, match="contain the key"):
            connector.alter_offsets({}, [(partition, offset)])


def test_waits_that_servers_ask_for() -> None:
    now = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s("7") == 7
    assert retry_after_s("Tue, 01 Jan 2030 12:00:30 GMT", now) == 30
    assert retry_after_s("Tue, 01 Jan 2030 11:00:30 GMT", now) == 0
    assert retry_after_s("soon") is None
    assert retry_after_s(None) is None


def test_json_pointers() -> None:
    document = {"a": [{"b/c": 1}], "~": 2}
    assert pointed(document, "/a/0/b~1c") == 1
    assert pointed(document, "/~0") == 2
    assert pointed(document, "") is document
    assert pointed(document, "/x", None) is None
    with pytest.raises(ConnectError, match="nothing at /a/7"):
        pointed(document, "/a/7")
