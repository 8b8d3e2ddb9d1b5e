"""The registry over HTTP: requests, what is cached, and messages about failures."""

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import RegistryClient, StoredSchema
from support.served import served


class Registry:
    """Answers by path; `asked` holds method, path, body and authorisation of requests."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.url = ""


@contextmanager
def registry() -> Iterator[Registry]:
    state = Registry()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers["Content-Length"] or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            state.asked.append((self.command, self.path, body, self.headers["Authorization"]))
            missing = (404, {"error_code": 40403, "message": "Schema not found"})
            status, answer = state.answers.get(self.path, missing)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", answer)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815

    with served(Handler) as state.url:
        yield state


def test_registering_once() -> None:
    with registry() as state:
        state.answers["/subjects/a%2Fb-value/versions"] = (200, {"id": 7})
        store = RegistryClient([state.url + "/"])
        assert [store.register("a/b-value", "PROTOBUF", "x") for _ in range(2)] == [7, 7]
        body = {"schema": "x", "schemaType": "PROTOBUF"}
        assert state.asked == [("POST", "/subjects/a%2Fb-value/versions", body, None)]


def test_schemas_by_id_are_kept_with_what_they_refer_to() -> None:
    with registry() as state:
        inner = {"name": "inner", "subject": "in ner", "version": 2}
        deep = {"name": "deep", "subject": "deep", "version": 1}
        state.answers = {
            "/schemas/ids/3": (200, {"schema": '"int"', "references": [inner, deep]}),
            "/subjects/in%20ner/versions/2?deleted=true": (
                200,
                {"schema": "inner's", "references": [deep]},
            ),
            "/subjects/deep/versions/1?deleted=true": (200, {"schema": "deep's"}),
        }
        store = RegistryClient([state.url])
        wanted = StoredSchema(3, "AVRO", '"int"', (("deep", "deep's"), ("inner", "inner's")))
        assert [store.by_id(3) for _ in range(2)] == [wanted, wanted]
        assert len(state.asked) == 3
        with pytest.raises(FormatError, match="Schema 4 is not in the schema registry") as failure:
            store.by_id(4)
        assert not failure.value.retriable


def test_latest_is_asked_each_time() -> None:
    with registry() as state:
        store = RegistryClient([state.url])
        assert store.latest("s") is None
        state.answers["/subjects/s/versions/latest"] = (
            200,
            {"subject": "s", "id": 5, "version": 1, "schema": "{}", "schemaType": "JSON"},
        )
        assert store.latest("s") == StoredSchema(5, "JSON", "{}")


def test_versions_are_asked_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with registry() as state:
        state.answers = {
            "/subjects/s/versions": (200, [1]),
            "/subjects/s/versions/1": (200, {"id": 5, "version": 1}),
        }
        store = RegistryClient([state.url])
        assert store.version_ids("s") == [5]
        state.answers["/subjects/s/versions/1"] = (200, {"id": 6, "version": 1})
        assert store.version_ids("s") == [5]
        now_s += 60
        assert store.version_ids("s") == [6]


def test_a_login_is_not_shown_to_the_server_of_a_redirection() -> None:
    with registry() as state, registry() as other:
        other.answers["/x"] = state.answers["/y"] = (200, {"schema": '"int"'})
        state.answers["/schemas/ids/1"] = (302, f"{other.url}/x")
        state.answers["/schemas/ids/2"] = (302, f"{state.url}/y")
        store = RegistryClient([state.url], user_info="user:secret")
        assert store.by_id(1).text == store.by_id(2).text == '"int"'
        assert [asked[3] for asked in other.asked] == [None]
        assert {asked[3] for asked in state.asked} == {"Basic dXNlcjpzZWNyZXQ="}


@pytest.mark.parametrize("token", ["Bearer secret\nx", "Bearer sécret€"])
def test_a_token_that_is_no_header_is_not_told(token: str) -> None:
    with registry() as state:
        store = RegistryClient([state.url], authorization=lambda: token)
        with pytest.raises(FormatError, match="header for the schema registry") as failure:
            store.by_id(1)
        assert "cret" not in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize(
    ("status", "answer", "message", "retriable"),
    [
        (409, {"error_code": 409, "message": "incompatible"}, "409: incompatible", False),
        (422, b"what", "answers 422: what", False),
        (503, b"", "answers 503", True),
        (200, b"{", "not JSON", False),
        (200, {}, "has no 'id'", False),
        (200, b"[]", "has no 'id'", False),
    ],
)
def test_failures(status, answer, message, retriable) -> None:
    with registry() as state:
        state.answers["/subjects/s/versions"] = (status, answer)
        with pytest.raises(FormatError, match=message) as failure:
            RegistryClient([state.url]).register("s", "AVRO", '"int"')
        assert failure.value.retriable is retriable


def test_the_next_url_is_asked_where_one_does_not_answer() -> None:
    with registry() as broken, registry() as state:
        broken.answers["/schemas/ids/1"] = (500, b"")
        state.answers["/schemas/ids/1"] = (200, {"schema": '"int"'})
        gone = "http://127.0.0.1:1"
        urls = [gone, broken.url, state.url.replace("//", "//user:secret@")]
        assert RegistryClient(urls, user_info="other:x").by_id(1).text == '"int"'
        assert broken.asked[0][3] == "Basic b3RoZXI6eA=="
        assert state.asked[0][3] == "Basic dXNlcjpzZWNyZXQ="
        with pytest.raises(FormatError, match="does not answer") as failure:
            RegistryClient([gone]).by_id(1)
        assert failure.value.retriable
