"""Writes on an instance that does not lead: sent on once, answered as the leader answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from barnabas.registry import errors
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.forwarding import target_to_send
from support.registry_format import text
from support.registry_http import Reply, ask
from support.registry_service import MemoryService

LEADER = "http://leader:8081"


@dataclass
class Wire(httpx.AsyncBaseTransport):
    """The way to the leader, with what went over it."""

    answer: Callable[[httpx.Request], Any]
    seen: list[httpx.Request] = field(default_factory=list)
    closed: bool = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.seen.append(request)
        found = self.answer(request)
        return found if isinstance(found, httpx.Response) else await found

    async def aclose(self) -> None:
        self.closed = True


class Pair:
    """A leader and a follower over one log."""

    def __init__(self) -> None:
        self.leader = MemoryService()
        self.follower = MemoryService(self.leader.log, is_leader=False, leader_url=LEADER)
        self._to_leader = httpx.ASGITransport(app=RegistryApp(self.leader))
        self.wire = Wire(self._to_leader.handle_async_request)
        config = HttpConfig(write_timeout_ms=0)
        self.app = RegistryApp(self.follower, config, leader_transport=self.wire)

    async def ask(self, method: str, target: str, body: Any = None, **more: Any) -> Reply:
        return await ask(self.app, method, target, body, **more)


@pytest.fixture
def pair() -> Pair:
    return Pair()


WRITES: list[tuple[str, str, Any, int]] = [
    ("POST", "/subjects/s/versions", {"schema": text("b")}, 200),
    ("POST", "/subjects/s/versions?normalize=true", {"schema": text("c")}, 200),
    ("POST", "/subjects/s/versions", {"schema": "{"}, 42201),
    ("POST", "/subjects/s/versions", {"schema": text("b!")}, 409),
    ("POST", "/subjects/s/versions/1/tags", {}, 200),
    ("DELETE", "/subjects/s/versions/1", None, 200),
    ("DELETE", "/subjects/s", None, 200),
    ("DELETE", "/subjects/s?permanent=true", None, 40405),
    ("DELETE", "/subjects/none", None, 40401),
    ("PUT", "/config", {"compatibility": "FULL"}, 200),
    ("PUT", "/config/a%2F%3Ab%20%C3%A9", {"compatibility": "FULL"}, 200),
    ("PUT", "/mode/s", {"mode": "READONLY"}, 200),
    ("DELETE", "/config", None, 200),
    ("DELETE", "/mode", None, 200),
    ("DELETE", "/contexts/.c", None, 204),
    ("PUT", "/contexts/.c/config", {"compatibility": "FULL"}, 200),
]


@pytest.mark.parametrize(("method", "target", "body", "code"), WRITES)
async def test_the_leader_s_answer_is_passed_on(
    pair: Pair, method: str, target: str, body: Any, code: int
) -> None:
    alone = MemoryService()
    for service in (pair.leader, alone):
        await ask(RegistryApp(service), "POST", "/subjects/s/versions", {"schema": text("a")})
    await pair.follower.caught_up()
    expected = await ask(RegistryApp(alone), method, target, body)
    reply = await pair.ask(method, target, body)
    assert reply.code == expected.code == code
    assert (reply.status, reply.body) == (expected.status, expected.body)
    assert reply.headers.get(b"content-type") == expected.headers.get(b"content-type")
    assert b"x-barnabas-offset" not in reply.headers
    assert len(pair.wire.seen) == 1
    assert pair.wire.seen[0].url.raw_path == target.encode()
    assert pair.wire.seen[0].headers["x-forward"] == "true"
    assert pair.follower.state == pair.leader.state


async def test_a_client_reads_what_it_wrote(pair: Pair) -> None:
    reply = await pair.ask("POST", "/subjects/s/versions", {"schema": text("a")})
    assert reply.status == 200
    assert pair.follower.waited_for == [0]
    assert (await pair.ask("GET", "/schemas/ids/1")).status == 200


async def test_a_leader_that_says_no_offset_is_waited_for_to_the_end(pair: Pair) -> None:
    pair.wire.answer = lambda _: httpx.Response(200, json={"id": 1})
    await pair.ask("POST", "/subjects/s/versions", {"schema": text("a")})
    assert pair.follower.waited_for == [None]


async def test_being_behind_does_not_undo_a_write(pair: Pair) -> None:
    pair.follower.is_behind = True
    assert (await pair.ask("PUT", "/config", {"compatibility": "FULL"})).status == 200


async def test_a_registration_that_is_there_does_not_trouble_the_leader(pair: Pair) -> None:
    first = await pair.ask("POST", "/subjects/s/versions", {"schema": text("a")})
    again = await pair.ask("POST", "/subjects/s/versions", {"schema": text("a")})
    assert first.json == again.json
    assert len(pair.wire.seen) == 1


async def test_reads_are_never_forwarded(pair: Pair) -> None:
    await pair.ask("POST", "/subjects/s/versions", {"schema": text("a")})
    del pair.wire.seen[:]
    for method, target, body in (
        ("GET", "/subjects", None),
        ("POST", "/subjects/s", {"schema": text("a")}),
        ("POST", "/compatibility/subjects/s/versions", {"schema": text("a")}),
        ("GET", "/mode", None),
    ):
        assert (await pair.ask(method, target, body)).status == 200
    assert pair.wire.seen == []


async def test_headers_and_body_are_kept(pair: Pair) -> None:
    headers = {
        b"content-type": b"application/json",
        b"accept": b"application/json",
        b"authorization": b"Basic eA==",
        b"x-request-id": b"id-1",
        b"confluent-accept-unknown-properties": b"true",
        b"host": b"follower:8081",
        b"cookie": b"a=b",
        b"connection": b"keep-alive, x",
        b"transfer-encoding": b"chunked",
    }
    body = b' {"compatibility" : "FULL"}\n'
    reply = await pair.ask("PUT", "/config", body, headers=headers)
    sent = pair.wire.seen[0]
    assert sent.content == body
    for name in (b"content-type", b"accept", b"authorization", b"x-request-id"):
        assert sent.headers[name.decode()] == headers[name].decode()
    assert sent.headers["confluent-accept-unknown-properties"] == "true"
    assert sent.headers["host"] == "leader:8081"
    assert sent.headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in sent.headers
    assert "cookie" not in sent.headers
    assert reply.headers[b"content-type"] == b"application/json"
    assert reply.headers[b"x-request-id"] == b"id-1"


async def test_headers_that_are_named_go_on_too(pair: Pair) -> None:
    config = HttpConfig(forwarded_headers=("X-Tenant", "X-Forward", "Content-Length"))
    app = RegistryApp(pair.follower, config, leader_transport=pair.wire)
    headers = {b"x-tenant": b"t", b"x-other": b"o", b"content-type": b"application/json"}
    await ask(app, "PUT", "/config", {"compatibility": "FULL"}, headers=headers)
    sent = pair.wire.seen[0].headers
    assert sent["x-tenant"] == "t"
    assert "x-other" not in sent
    assert sent.get_list("x-forward") == ["true"]


async def test_a_request_is_forwarded_once(pair: Pair) -> None:
    headers = {b"x-forward": b"true", b"content-type": b"application/json"}
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"}, headers=headers)
    assert (reply.status, reply.code) == (500, errors.FORWARDING_FAILED)
    assert pair.wire.seen == []


async def test_a_request_that_says_it_was_not_forwarded(pair: Pair) -> None:
    headers = {b"x-forward": b"false", b"content-type": b"application/json"}
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"}, headers=headers)
    assert reply.status == 200
    assert pair.wire.seen[0].headers.get_list("x-forward") == ["true"]
    asked = await ask(
        RegistryApp(pair.leader), "PUT", "/config", {"compatibility": "FULL"}, headers=headers
    )
    assert b"x-barnabas-offset" not in asked.headers


async def test_two_followers_that_point_at_each_other_do_not_loop(pair: Pair) -> None:
    pair.leader.is_leader = False
    pair.leader.leader_url = "http://follower:8081"
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    assert reply.code == errors.FORWARDING_FAILED
    assert len(pair.wire.seen) == 1


async def test_a_follower_asks_again_until_one_leads(pair: Pair) -> None:
    config = HttpConfig(write_timeout_ms=30_000)
    pair.app = RegistryApp(pair.follower, config, leader_transport=pair.wire)
    pair.leader.is_leader = False
    pair.leader.leader_url = "http://follower:8081"
    to_leader = pair.wire.answer

    def answer(request: httpx.Request) -> Any:
        if len(pair.wire.seen) == 1:
            raise httpx.ConnectError("refused")
        pair.leader.is_leader = len(pair.wire.seen) >= 3
        return to_leader(request)

    pair.wire.answer = answer
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    assert reply.status == 200
    assert len(pair.wire.seen) == 3
    assert len(pair.leader.log) == 1


async def test_a_follower_that_becomes_the_leader_does_it_itself(pair: Pair) -> None:
    config = HttpConfig(write_timeout_ms=30_000)
    pair.app = RegistryApp(pair.follower, config, leader_transport=pair.wire)

    def answer(request: httpx.Request) -> Any:
        pair.follower.is_leader = True
        raise httpx.ConnectError("refused")

    pair.wire.answer = answer
    assert (await pair.ask("PUT", "/config", {"compatibility": "FULL"})).status == 200
    assert len(pair.wire.seen) == 1


async def test_without_a_leader(pair: Pair) -> None:
    pair.follower.leader_url = None
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    assert (reply.status, reply.code) == (500, errors.UNKNOWN_LEADER)


@pytest.mark.parametrize(
    "fault",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout(""),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("garbage"),
    ],
)
async def test_a_leader_that_does_not_answer(pair: Pair, fault: Exception) -> None:
    def fail(_: httpx.Request) -> None:
        raise fault

    pair.wire.answer = fail
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    assert (reply.status, reply.code) == (500, errors.FORWARDING_FAILED)
    assert LEADER in reply.json["message"]
    assert pair.follower.waited_for == []


async def test_a_leader_s_url_that_is_none(pair: Pair) -> None:
    pair.follower.leader_url = "http://[::1"
    reply = await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    assert reply.code == errors.FORWARDING_FAILED


async def test_connections_are_closed(pair: Pair) -> None:
    await pair.app.close()
    await pair.ask("PUT", "/config", {"compatibility": "FULL"})
    await pair.app.close()
    assert pair.wire.closed


TARGETS = [
    ([b"subjects", b"a%2Fb"], b"", b"/subjects/a%2Fb"),
    ([b"subjects", b".."], b"x=1", b"/subjects/%2E%2E?x=1"),
    ([b"subjects", b"."], b"", b"/subjects/%2E"),
    ([b"subjects", b"a..b"], b"", b"/subjects/a..b"),
    ([b"subjects", b"\xc3\xa9"], b"", b"/subjects/%C3%A9"),
    ([], b"", b"/"),
]


@pytest.mark.parametrize(("parts", "query", "target"), TARGETS)
def test_targets_arrive_as_they_came(parts: list[bytes], query: bytes, target: bytes) -> None:
    found = target_to_send(parts, query)
    assert found == target
    assert httpx.URL(LEADER).copy_with(raw_path=found).raw_path == target


@pytest.mark.parametrize(("connect_ms", "read_ms"), [(5_000, 7_000), (0, 0)])
async def test_the_leader_has_so_much_time(pair: Pair, connect_ms: int, read_ms: int) -> None:
    config = HttpConfig(leader_connect_timeout_ms=connect_ms, leader_read_timeout_ms=read_ms)
    app = RegistryApp(pair.follower, config, leader_transport=pair.wire)
    await ask(app, "PUT", "/config", {"compatibility": "FULL"})
    timeout = pair.wire.seen[0].extensions["timeout"]
    assert timeout["connect"] == (connect_ms / 1000 or None)
    assert timeout["read"] == (read_ms / 1000 or None)
