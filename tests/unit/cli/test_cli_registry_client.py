"""Registry commands against a fake registry: their requests, and how they show its answers."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.registry.client import Registry
from support.cli import run_cli
from support.served import served

Answers = Mapping[str, tuple[int, Any]]
AVRO = '"long"'


class PlayedRegistry:
    """Answers `METHOD /path` from a table, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.url = ""


@contextmanager
def played(answers: Answers) -> Iterator[PlayedRegistry]:
    registry = PlayedRegistry()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = f"{self.command} {self.path}"
            registry.asked.append((asked, json.loads(body) if body else None))
            registry.headers.append(dict(self.headers))
            status, answer = answers.get(
                asked, (404, {"error_code": 40401, "message": "subject does not exist"})
            )
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the base class's names

    with served(Handler) as registry.url:
        yield registry


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*Registry.URL_VARIABLES, Registry.USER_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")


def test_names_are_encoded_and_the_user_is_sent() -> None:
    asked = "GET /subjects/%3A.c%3Aa%2F..%2F%C3%A9%20b/versions/latest?deleted=true"
    with played({asked: (200, {"schema": AVRO, "version": 2, "id": 7})}) as server:
        url = server.url.replace("://", "://ann:a%40b@")
        name = ":.c:a/../é b"
        shown = run_cli("registry", "schema", "get", name, "--deleted", "--url", url)
        assert (shown.code, shown.text) == (0, '"long"\n')
        assert server.headers[0]["Authorization"] == "Basic YW5uOmFAYg=="
        assert run_cli("registry", "schema", "get", "x", "--url", url, "--user", "b:c").code == 4
        assert server.headers[1]["Authorization"] == "Basic Yjpj"


def test_addresses_are_tried_in_turn_and_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with played({"GET /subjects?subjectPrefix=%3A%2A%3A": (200, ["a"])}) as server:
        dead = "http://127.0.0.1:1"
        shown = run_cli("registry", "subject", "list", "--url", f"{dead},{server.url}", "--json")
        assert shown.json == [{"subject": "a"}]
        monkeypatch.setenv("BARNABAS_SCHEMA_REGISTRY_URL", server.url)
        monkeypatch.setenv("SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")
        assert run_cli("registry", "subject", "list").lines == ["SUBJECT", "a"]
        monkeypatch.setenv("BARNABAS_REGISTRY_URL", dead)
        gone = run_cli("registry", "subject", "list")
    assert gone.code == 3
    assert "no schema registry answers at http://127.0.0.1:1 (connection refused)" in gone.err


@pytest.mark.parametrize(
    ("status", "answer", "code", "words"),
    [
        (404, {"error_code": 40401, "message": "subject 'a' is not\nthere"}, 4, "there [40401]"),
        (409, {"error_code": 40901, "message": "no"}, 1, "no [40901]"),
        (500, {"error_code": 50003, "message": "try again"}, 1, "try again [50003]"),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, 4, "HTTP 404 Not Found [404]"),
        (401, b"", 1, "refuses the user: HTTP status 401; give --user"),
        (200, b"<html>", 1, "does not answer as a schema registry does: HTTP status 200 <html>"),
        (502, b"bad gateway", 1, "HTTP status 502 bad gateway"),
    ],
)
def test_refusals_are_one_line(status: int, answer: Any, code: int, words: str) -> None:
    with played({"GET /mode": (status, answer)}) as server:
        result = run_cli("registry", "mode", "get", "--url", server.url)
    assert (result.code, result.out) == (code, b"")
    assert result.err.startswith("barnabas: ")
    assert result.err.count("\n") == 1
    assert words in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["subject", "list", "--url", "localhost:8081"], 2, "is not http://host:port"),
        (["subject", "list", "--url", "http://h:x"], 2, "is not http://host:port"),
        (["subject", "list", "--url", ","], 2, "no address is given"),
        (["schema", "get"], 2, "give a subject, or an id"),
        (["schema", "get", ""], 2, "the name is empty"),
        (["schema", "get", "a", "--id", "1"], 2, "give a subject, or an id"),
        (["schema", "register", "a", "/no/file.avsc"], 4, "/no/file.avsc: No such file"),
        (["schema", "register", "a", "-"], 2, "give --type"),
        (["schema", "check", "/no/such"], 2, "does not exist"),
        (["config", "set", "normalise=true"], 2, "normalise is not a setting"),
        (["mode", "set", "READ"], 2, "'READ' is not one of"),
        (["subject", "delete", "a", "--permanent"], 2, "give --yes"),
        (["start", "/no/such.properties"], 4, "/no/such.properties"),
        (["start", "--listeners", "8081"], 2, "'8081' is not http://host:port"),
        (["start", "-o", "kafkastore.timeout.ms=soon"], 2, "kafkastore.timeout.ms"),
        (["start", "-o", "novalue"], 2, "key=value"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], code: int, words: str) -> None:
    result = run_cli("registry", *arguments)
    assert (result.code, result.out) == (code, b"")
    assert result.err.count("\n") == 1
    assert words in result.err


def test_an_older_registry_tells_the_version_when_it_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "a.avsc"
    file.write_text(AVRO)
    answers: Answers = {
        "POST /subjects/a/versions?normalize=true": (200, {"id": 5}),
        "POST /subjects/a?normalize=true": (200, {"id": 5, "version": 2}),
    }
    arguments = ["registry", "schema", "register", "a", str(file), "--normalize", "-r", "b=c:1"]
    with played(answers) as server:
        assert run_cli(*arguments, "--url", server.url).text == "a: version 2, id 5\n"
        sent = {
            "schemaType": "AVRO",
            "schema": AVRO,
            "references": [{"name": "b", "subject": "c", "version": 1}],
        }
        assert [body for _, body in server.asked] == [sent, sent]


def test_an_older_registry_knows_no_versions_of_a_new_subject(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(AVRO)
    with played({}) as server:
        shown = run_cli("registry", "schema", "check", str(tmp_path), "--url", server.url)
    assert (shown.code, shown.text) == (0, "a.avsc: a is new\n")


def test_an_invalid_schema_is_a_line_of_the_check(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text("{")
    check = "POST /compatibility/subjects/a/versions?verbose=true"
    answers = {check: (422, {"error_code": 42201, "message": "line 1"})}
    with played(answers) as server:
        shown = run_cli("registry", "schema", "check", str(tmp_path), "--url", server.url)
    assert (shown.code, shown.text) == (1, "a.avsc: line 1 [42201]\n")
    assert shown.err == "1 of 1 schemas cannot be registered.\n"


@pytest.mark.parametrize("code", [409, 40901])
def test_reasons_of_an_incompatible_schema(tmp_path: Path, code: int) -> None:
    (tmp_path / "a.avsc").write_text(AVRO)
    reason = "{errorType:'TYPE_MISMATCH', description:'at /'}"
    answers: Answers = {
        "POST /subjects/a/versions": (409, {"error_code": code, "message": "long"}),
        "POST /compatibility/subjects/a/versions?verbose=true": (
            200,
            {"is_compatible": False, "messages": [reason]},
        ),
    }
    with played(answers) as server:
        shown = run_cli(
            "registry", "schema", "register", "a", str(tmp_path / "a.avsc"), "--url", server.url
        )
    assert shown.code == 1
    assert shown.err == f"barnabas: not compatible with a: TYPE_MISMATCH: at / [{code}]\n"


def version(number: int, schema: str, **more: Any) -> tuple[int, Any]:
    body = {"subject": "a", "version": number, "id": number + 10, "schema": schema}
    return 200, {**body, **more}


def test_without_the_extra_the_registry_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def without_formats(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "barnabas.schemas.formats":
            raise ModuleNotFoundError("no jsonschema", name="jsonschema")
        return really_import(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without_formats)
    answers: Answers = {
        "GET /subjects/a/versions": (200, [1, 3]),
        "GET /subjects/a/versions/latest": version(3, '"int"'),
        "GET /subjects/a/versions/1": version(1, '"long"'),
        "POST /compatibility/subjects/a/versions/1?verbose=true": (
            200,
            {
                "is_compatible": False,
                "messages": ["{errorType:'TYPE_MISMATCH', description:'at /'}"],
            },
        ),
        "GET /config/a?defaultToGlobal=true": (200, {"compatibilityLevel": "FULL"}),
    }
    with played(answers) as server:
        shown = run_cli("registry", "schema", "diff", "a", "--url", server.url)
        missing = run_cli("registry", "start", "--url", server.url)
    assert shown.lines == [
        "--- a version 1 (id 11)",
        "+++ a version 3 (id 13)",
        "@@ -1 +1 @@",
        '-"long"',
        '+"int"',
        "",
        "FULL: no (as the subject's level asks for)",
        "  TYPE_MISMATCH: at /",
    ]
    assert missing.code == 2
    missing = run_cli("registry", "start")
    assert missing.code == 1
    assert "needs jsonschema, which is not installed; pip install '.[registry]'" in missing.err


def test_both_ways_are_compared_with_what_is_referred_to() -> None:
    record = '{"type":"record","name":"R","fields":[{"name":"m","type":"M"}%s]}'
    added = ',{"name":"n","type":"long"}'
    refers = [{"name": "M", "subject": "m", "version": 1}]
    answers: Answers = {
        "GET /subjects/a/versions/1": version(1, record % "", references=refers),
        "GET /subjects/a/versions/2": version(2, record % added, references=refers),
        "GET /subjects/m/versions/1?deleted=true": version(
            1, '{"type":"enum","name":"M","symbols":["X"]}'
        ),
    }
    with played(answers) as server:
        shown = run_cli("registry", "schema", "diff", "a", "1", "2", "--url", server.url, "--json")
    backward, forward = shown.json["verdicts"]
    assert (backward["level"], backward["compatible"]) == ("BACKWARD", False)
    assert backward["reasons"][0]["kind"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert "/fields/1" in backward["reasons"][0]["message"]
    assert forward == {"level": "FORWARD", "compatible": True, "reasons": []}
    assert '+      "name": "n",' in shown.json["diff"]


def test_a_changed_type_is_compatible_neither_way() -> None:
    answers: Answers = {
        "GET /subjects/a/versions/1": version(1, AVRO),
        "GET /subjects/a/versions/2": version(2, "{}", schemaType="JSON"),
    }
    with played(answers) as server:
        shown = run_cli("registry", "schema", "diff", "a", "1", "2", "--url", server.url)
    assert "+type JSON" in shown.lines
    assert shown.text.count("the type changes from AVRO to JSON") == 2
