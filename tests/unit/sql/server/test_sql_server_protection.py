"""What reaches the SQL server from anywhere: bounds, foreign pages, and bytes that are not HTTP."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.protection import protected, refused
from barnabas.sql.server.statements import STATEMENTS_MAX
from barnabas.web.crowd import Crowd
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.protection import Protection, Rules
from barnabas.web.server import WebServer
from support.effort import examples
from support.eventually import eventually
from support.http_server import clients
from support.patience import PATIENCE_S
from support.sql_server_world import SqlWorld

PATHS = (
    *("/ksql", "/ksql/terminate", "/query", "/query-stream", "/inserts-stream", "/close-query"),
    *("/heartbeat", "/lag"),
)
MEMBERS = (
    *("ksql", "sql", "streamsProperties", "properties", "sessionVariables", "requestProperties"),
    *("commandSequenceNumber", "target", "queryId", "deleteTopicList", "hostInfo", "timestamp"),
    *("ksqlHost", "hostStoreLags"),
)
STREAM = (
    "CREATE STREAM s (k STRING KEY, v INT) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
)


@asynccontextmanager
async def served(app: Any, crowd: Crowd | None = None) -> AsyncIterator[tuple[str, int]]:
    """The application at a port of this machine."""
    listener = BoundListener(ListenAddress("127.0.0.1", 0))
    server = WebServer(app, [listener], crowd, speaks_http2=True)
    await server.start()
    try:
        yield listener.listener.host, listener.listener.port
    finally:
        await server.stop()


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    yield found
    await found.close()


async def test_a_request_has_so_many_statements(world: SqlWorld) -> None:
    error = await world.error("SHOW TYPES;" * (STATEMENTS_MAX + 1))
    assert (error["error_code"], "1001 statements; 1000 may be" in error["message"]) == (
        40000,
        True,
    )
    error = await world.error("';" * 10_002)
    assert error["message"] == "The request has too many statements"
    assert len(await world.ksql("SHOW TYPES;" * 3)) == 3


@pytest.mark.parametrize(
    ("origin", "allowed", "status"),
    [
        (None, "", 200),
        ("http://sql", "", 200),
        ("http://evil", "", 403),
        ("null", "", 403),
        ("http://good", "http://good", 200),
        ("http://evil", "http://good", 403),
        ("http://any", "*", 200),
    ],
)
async def test_pages_of_other_origins_may_not_ask(
    world: SqlWorld, origin: str | None, allowed: str, status: int
) -> None:
    app = protected(KsqlApi(world.engine).app(), {"access.control.allow.origin": allowed})
    transport = httpx.ASGITransport(app)
    headers = {} if origin is None else {"Origin": origin}
    async with httpx.AsyncClient(transport=transport, base_url="http://sql") as client:
        answer = await client.post("/ksql", json={"ksql": "SHOW TYPES;"}, headers=headers)
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["x-content-type-options"] == "nosniff"
    else:
        assert answer.json()["error_code"] == 40300


@pytest.mark.parametrize(
    ("host", "is_on_loopback", "status"),
    [("localhost:8088", True, 200), ("evil.example", True, 403), ("sql.example", False, 200)],
)
async def test_names_that_were_made_to_lead_here(
    world: SqlWorld, host: str, is_on_loopback: bool, status: int
) -> None:
    app = protected(KsqlApi(world.engine).app(), {}, is_on_loopback=is_on_loopback)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
        answer = await client.post("/ksql", json={"ksql": "SHOW TYPES;"})
    assert answer.status_code == status


async def test_images_and_forms_of_other_pages_may_not_ask(world: SqlWorld) -> None:
    app = protected(KsqlApi(world.engine).app(), {})
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://sql") as client:
        for site, status in (("cross-site", 403), ("same-site", 403), ("none", 200)):
            answer = await client.get("/info", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status


@pytest.mark.parametrize(
    "value",
    ["[" * 100_000, "[" * 900 + "]" * 900, "9" * 5000, "NaN", '"\\ud800', "\0"],
    ids=["deep", "deep and whole", "long number", "NaN", "half a text", "zero"],
)
@pytest.mark.parametrize("path", PATHS)
async def test_bodies_that_are_no_json_are_refused(world: SqlWorld, path: str, value: str) -> None:
    for body in (value, f'{{"ksql":"SHOW TYPES;","sql":"x;","streamsProperties":{value}}}'):
        answer = await world.client.post(path, content=body.encode())
        assert (answer.status_code, answer.json()["error_code"]) == (400, 40000), answer.text


@pytest.mark.parametrize("raised", [SystemExit(1), RecursionError("deep"), KeyError("a")])
async def test_what_a_handler_raises_is_told_and_the_server_goes_on(
    world: SqlWorld, raised: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends() -> None:
        raise raised

    monkeypatch.setattr(world.engine.cluster, "topics", ends)
    answer = await world.client.get("/healthcheck")
    assert (answer.status_code, answer.json()["error_code"]) == (500, 50000)
    assert (await world.client.get("/info")).status_code == 200


async def test_too_many_requests_are_turned_away() -> None:
    waiting, entered = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        entered.set()
        await waiting.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx.ASGITransport(Protection(slow, refused, Rules(requests_max=1)))
    async with httpx.AsyncClient(transport=transport, base_url="http://sql") as client:
        first = asyncio.create_task(client.get("/"))
        await entered.wait()
        second = await client.get("/")
        assert (second.status_code, second.json()["error_code"]) == (503, 50302)
        waiting.set()
        assert (await first).status_code == 200
        assert (await client.get("/")).status_code == 200


async def test_a_body_that_stalls_is_given_up(world: SqlWorld) -> None:
    app = Protection(KsqlApi(world.engine).app(), refused, Rules(body_s=0.05))
    async with served(app) as (host, port), asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"POST /ksql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_bodies_on_their_way_shut_nobody_out(world: SqlWorld) -> None:
    app = Protection(KsqlApi(world.engine).app(), refused, Rules(requests_max=2))
    async with served(app) as (host, port), asyncio.timeout(PATIENCE_S), clients(port, 5) as slow:
        for client in slow:
            await client.send(b"POST /ksql HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{")
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as whole:
            assert (await whole.get(f"http://{host}:{port}/info")).status_code == 200
        await slow[0].send(b'"ksql":"SHOW TYPES;"}')
        assert (await slow[0].head()).startswith(b"HTTP/1.1 200")


async def test_the_idlest_connection_makes_room_for_one_more(world: SqlWorld) -> None:
    app = KsqlApi(world.engine).app()
    crowd = Crowd(2)
    async with served(app, crowd) as (host, port), asyncio.timeout(PATIENCE_S):
        found = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            found.append((reader, writer))
            await eventually(lambda: crowd.count == len(crowd._waiting), "all are answered")
        assert b"KsqlServerInfo" in await _rest(found[0][0])
        for reader, writer in found[1:]:
            writer.write(b"GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert (await _rest(reader)).count(b"HTTP/1.1 200") == 1
        for _, writer in found:
            writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_bytes_that_are_no_requests_do_no_harm(world: SqlWorld) -> None:
    draw = random.Random(7)
    whole = (
        b"POST /ksql HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" + b'{"ksql":"SHOW TYPES;"}'
    )
    http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
    cases = [draw.randbytes(draw.randint(1, 300)) for _ in range(20)]
    cases += [whole[: draw.randint(1, len(whole) - 1)] for _ in range(10)]
    cases += [_damaged(draw, case) for case in (whole, http2) for _ in range(20)]
    cases += [http2 + draw.randbytes(50), b"GET / HTTP/1.1\r\nA: " + b"x" * 200_000]
    cases.append(b"GET /ws/query HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n")
    app = protected(KsqlApi(world.engine).app(), {})
    async with served(app) as (host, port), asyncio.timeout(PATIENCE_S):
        for case in cases:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(case)
            if writer.can_write_eof():
                writer.write_eof()
            await _rest(reader)
            writer.close()
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
            answer = await client.get(f"http://{host}:{port}/healthcheck")
            assert answer.json()["isHealthy"] is True


def _damaged(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 5)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
texts = st.sampled_from(
    ["SHOW STREAMS;", "SELECT * FROM s;", "SELECT", ";;", "'", "EXPLAIN x;", "INSERT INTO s VALUES"]
)
bodies = st.one_of(
    st.binary(max_size=60),
    values.map(as_json),
    st.dictionaries(st.sampled_from(MEMBERS), values | texts, max_size=6).map(as_json),
    st.tuples(
        st.fixed_dictionaries({"ksql": texts, "sql": texts, "target": st.just("s")}),
        st.dictionaries(st.sampled_from(MEMBERS[2:]), values, max_size=2),
    ).map(lambda both: as_json({**both[1], **both[0]})),
)


@settings(
    max_examples=examples(10),
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(requests=st.lists(st.tuples(st.sampled_from(PATHS), bodies), min_size=1, max_size=4))
async def test_no_body_makes_the_interface_fail(
    world: SqlWorld, requests: list[tuple[str, bytes]]
) -> None:
    if "S" not in world.engine.metastore.sources:
        await world.ksql(STREAM)
    for path, body in requests:
        answer = await world.client.post(path, content=body)
        assert answer.status_code < 500, (path, body, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error_code"] // 100 == answer.status_code
