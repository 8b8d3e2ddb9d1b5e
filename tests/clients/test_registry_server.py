"""The registry as a process: it serves when it has read the topic, and stops cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import RegistryServer
from barnabas.web.listening import CannotListenError
from support.patience import PATIENCE_S
from support.registry_format import PlainFormats, text

TESTS = Path(__file__).parents[1]


@asynccontextmanager
async def server_process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.registry_server", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def url_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
async def test_it_serves_until_a_signal_and_leaves_its_group(
    kafka_bootstrap_servers: str, number: signal.Signals
) -> None:
    topic = f"_schemas-server-{number.name}"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
        async with server_process(kafka_bootstrap_servers, topic) as process:
            url = await url_of(process)
            assert (await client.get(f"{url}/subjects")).json() == []
            body = {"schema": text("a")}
            answer = await client.post(f"{url}/subjects/s/versions", json=body)
            assert answer.json()["id"] == 1
            process.send_signal(number)
            async with asyncio.timeout(PATIENCE_S):
                assert await process.wait() == 0
        async with server_process(kafka_bootstrap_servers, topic) as process:
            url = await url_of(process)
            assert (await client.get(f"{url}/subjects")).json() == ["s"]


async def test_a_client_reads_what_it_has_written_through_a_follower(
    kafka_bootstrap_servers: str,
) -> None:
    async with (
        server_process(kafka_bootstrap_servers, "_schemas-two") as first,
        server_process(kafka_bootstrap_servers, "_schemas-two") as second,
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client,
    ):
        for url in (await url_of(first), await url_of(second)):
            for name in "abc":
                subject = f"{url}/subjects/{name}/versions"
                answer = await client.post(subject, json={"schema": text(name)})
                assert answer.status_code == 200, answer.text
                assert answer.json()["id"] == "abc".index(name) + 1
                assert (await client.get(f"{subject}/latest")).json()["schema"] == text(name)
            for name in "abc":
                answer = await client.delete(f"{url}/subjects/{name}")
                assert answer.json() in ([1], [2]), answer.text
                assert (await client.get(f"{url}/subjects/{name}/versions")).status_code == 404


async def test_what_keeps_it_from_starting_is_said(kafka_bootstrap_servers: str) -> None:
    arguments = ["kafkastore.init.timeout.ms=300"]
    async with server_process("127.0.0.1:1", "t", *arguments) as process:
        _, said = await process.communicate()
    assert process.returncode == 1
    assert b"StoreError: topic t could not be looked up or created at 127.0.0.1:1" in said


async def test_an_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"http://127.0.0.1:{taken.getsockname()[1]}"
        values = {"kafkastore.bootstrap.servers": "127.0.0.1:1", "listeners": listener}
        with pytest.raises(CannotListenError, match=f"cannot listen at {listener}"):
            RegistryServer(RegistryConfig(values), PlainFormats())
