"""The web socket when things end badly: clients that leave, queries that cannot start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.server.app import KsqlApi
from support.eventually import eventually
from support.patience import PATIENCE_S
from support.sql_server_world import SqlWorld


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    await found.ksql(
        "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
        "partitions=1);"
    )
    yield found
    await found.close()


def talk(world: SqlWorld, text: str, use: Callable[[Any], list[str]]) -> list[str]:
    with (
        TestClient(KsqlApi(world.engine).app()) as client,
        client.websocket_connect("/ws/query?request=" + json.dumps({"ksql": text})) as socket,
    ):
        return use(socket)


def to_the_end(socket: Any) -> list[str]:
    found: list[str] = []
    try:
        while True:
            found.append(socket.receive_text())
    except WebSocketDisconnect:
        return found


def refuse(*given: object, **options: object) -> Any:
    raise ClusterError("no broker answers")


async def test_a_client_that_leaves_ends_its_print(world: SqlWorld) -> None:
    followers = len(world.cluster._followers)

    def leave(socket: Any) -> list[str]:
        asyncio.run(eventually(lambda: len(world.cluster._followers) > followers, "a follower"))
        return []

    await asyncio.to_thread(talk, world, "PRINT 's';", leave)
    await eventually(lambda: len(world.cluster._followers) == followers, "its end")


async def test_a_query_that_cannot_start_says_so(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.cluster, "follow", refuse)
    text = "SELECT * FROM s EMIT CHANGES;"
    async with asyncio.timeout(PATIENCE_S):
        _, last = await asyncio.to_thread(talk, world, text, to_the_end)
    assert json.loads(last)["errorMessage"]["message"] == "no broker answers"


async def test_a_print_that_cannot_start_says_so(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.cluster, "follow", refuse)
    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.to_thread(talk, world, "PRINT 's';", to_the_end)
        answer = await world.post("/query-stream", {"sql": "PRINT 's';"})
    assert found == ["no broker answers\n"]
    assert answer.text == "no broker answers\n"


async def test_a_cluster_that_is_away_is_told(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.cluster, "topics", refuse)
    found = await asyncio.to_thread(talk, world, "PRINT 's';", to_the_end)
    assert list(map(json.loads, found)) == [{"error": "no broker answers"}]
