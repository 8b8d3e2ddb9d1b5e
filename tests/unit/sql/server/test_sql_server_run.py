"""A server's parts together: what keeps it from starting, and what its slots are for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.sql.engine.command_log import CommandLogError
from barnabas.sql.engine.ownership import slot_of_name
from barnabas.sql.server import run
from barnabas.sql.server.config import STARTS_COLD, ServerConfig, ServerConfigError
from barnabas.sql.server.processing_topic import ProcessingLogSettings
from barnabas.sql.server.run import Server


def test_a_store_for_other_servers_that_cannot_be_read_is_told_at_the_start(
    tmp_path: Path,
) -> None:
    values = {"ssl.truststore.location": tmp_path / "none", "listeners": "http://127.0.0.1:0"}
    with pytest.raises(ServerConfigError, match=r"ssl\.truststore\.location"):
        Server(ServerConfig({name: str(value) for name, value in values.items()}))


@pytest.mark.parametrize("value", ["many", "0", "-1"])
def test_the_processing_log_has_a_number_of_partitions(value: str) -> None:
    key = "ksql.logging.processing.topic.partitions"
    with pytest.raises(ServerConfigError, match=f"{key} is a positive number, not {value}"):
        ProcessingLogSettings({key: value})


def test_the_queries_of_pipelines_have_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[list[str]] = []
    owned: list[frozenset[int]] = []
    server: Any = Server.__new__(Server)
    server._pipelines = SimpleNamespace(
        names=("a", "b"), run_only=lambda names: wanted.append(list(names))
    )
    server.engine = SimpleNamespace(own=owned.append)
    slots = [frozenset({slot_of_name("a")}), frozenset[int]()]
    for one in slots:
        server._own(one)
    assert wanted == [["a"], []]
    assert owned == slots


async def test_errors_do_not_end_the_reading_of_the_command_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "_LOG_POLL_S", 0)
    read = asyncio.Event()
    errors: list[Exception] = [CommandLogError("no broker"), RuntimeError("no memory")]
    loop = asyncio.get_running_loop()

    def read_log() -> None:
        if errors:
            raise errors.pop(0)
        loop.call_soon_threadsafe(read.set)

    server: Any = Server.__new__(Server)
    server.engine = SimpleNamespace(read_log=read_log)
    following = asyncio.create_task(server._follow_log())
    async with asyncio.timeout(30):
        await read.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


@pytest.mark.parametrize(
    ("settings", "count"), [({}, 1), ({STARTS_COLD: "false"}, 1), ({STARTS_COLD: "true"}, 0)]
)
def test_a_server_warms_spark_unless_it_starts_cold(settings: dict[str, str], count: int) -> None:
    calls: list[str] = []
    server: Any = Server.__new__(Server)
    server.config, server.cluster = ServerConfig(settings), None
    server.processing_log = SimpleNamespace(
        make_topic=lambda _: None, make_stream=lambda _: calls.append("stream")
    )
    server.engine = SimpleNamespace(start=lambda: calls.append("engine"))
    server._spark = SimpleNamespace(warm=lambda topic: calls.append(topic))
    server._start()
    assert calls == ["engine", "stream", *["_confluent-ksql-default__command_topic"] * count]


def test_a_server_without_spark_warms_nothing() -> None:
    server: Any = Server.__new__(Server)
    server.config, server.cluster = ServerConfig({"barnabas.sql.runner": "local"}), None
    server.processing_log = SimpleNamespace(make_topic=lambda _: None, make_stream=lambda _: None)
    server.engine = SimpleNamespace(start=lambda: None)
    server._spark = None
    server._start()
