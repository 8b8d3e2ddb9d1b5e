"""Two instances of the registry over one topic, asked over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx

from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import RegistryServer
from support.eventually import eventually
from support.patience import PATIENCE_S
from support.registry_format import PlainFormats, text
from support.registry_member import SETTINGS

TOPIC = "_schemas-http"
SUBJECT = "/subjects/a%2F..%2F%C3%A9%20b"


@asynccontextmanager
async def instance(bootstrap: str) -> AsyncIterator[RegistryServer]:
    values = SETTINGS | {
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic": TOPIC,
        "schema.compatibility.level": "BACKWARD",
        "schema.registry.group.id": "registry-http",
        "listeners": "http://127.0.0.1:0",
    }
    server = RegistryServer(RegistryConfig(values), PlainFormats())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def settled(servers: list[RegistryServer]) -> tuple[RegistryServer, RegistryServer]:
    """The leader and the other one, once they agree who that is."""

    def agree() -> bool:
        (url, *others) = {server.store.leader_url for server in servers}
        return url is not None and not others and sum(s.store.is_leader for s in servers) == 1

    await eventually(agree, "the servers agree on a leader")
    [leader] = [server for server in servers if server.store.is_leader]
    [follower] = [server for server in servers if server is not leader]
    return leader, follower


async def test_a_follower_answers_as_the_leader_does(kafka_bootstrap_servers: str) -> None:
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(instance(kafka_bootstrap_servers)) for _ in range(2)
        ]
        leader, follower = await settled(servers)
        client = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S)
        )
        here, there = str(follower.listeners[0]), str(leader.listeners[0])

        made = await client.post(f"{here}{SUBJECT}/versions", json={"schema": text("a")})
        assert (made.status_code, made.json()["id"]) == (200, 1)
        assert made.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
        for url in (here, there):
            found = await client.get(f"{url}{SUBJECT}/versions/latest")
            assert found.json()["subject"] == "a/../é b"
            assert (await client.get(f"{url}/schemas/ids/1")).json()["schema"] == text("a")
            assert (await client.head(f"{url}/schemas/ids/1")).status_code == 200
            clusters = (await client.get(f"{url}/v1/metadata/id")).json()["scope"]["clusters"]
            assert clusters["kafka-cluster"]
            assert clusters["schema-registry-cluster"] == "registry-http"

        refused = await client.post(f"{here}{SUBJECT}/versions", json={"schema": text("b!")})
        assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
        changed = await client.put(f"{here}/config", json={"compatibility": "NONE"})
        assert changed.json() == {"compatibility": "NONE"}
        assert (await client.get(f"{here}/config")).json() == {"compatibilityLevel": "NONE"}
        assert (await client.delete(f"{here}{SUBJECT}")).json() == [1]
        assert (await client.get(f"{here}/subjects")).json() == []
        again = await client.delete(f"{here}{SUBJECT}?permanent=true")
        assert again.json() == [1]
        assert (await client.get(f"{there}/schemas/ids/1")).json()["error_code"] == 40403

        many = [
            client.post(f"{url}/subjects/s{n}/versions", json={"schema": text("same")})
            for n in range(20)
            for url in (here, there)
        ]
        answers = [answer.json() for answer in await asyncio.gather(*many)]
        assert {(answer["id"], answer["version"]) for answer in answers} == {(2, 1)}
