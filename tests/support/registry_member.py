"""An instance of the registry's store, in this process or in a separate one.

`python -m support.registry_member BOOTSTRAP TOPIC PORT` reads one JSON object a line,
`{"number": 1, "subject": "s", "text": "…"}`, registers it and answers with its number, and `id`,
`forward` or `error`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.registry.config import RegistryConfig
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.service import Done, Forward
from barnabas.registry.store.records import SchemaValue
from support.patience import PATIENCE_S
from support.registry_format import PlainFormats

TESTS = Path(__file__).parents[1]
SESSION_TIMEOUT_MS = 6_000
"""The least that brokers allow unless they are told otherwise."""
SETTINGS = {
    "host.name": "127.0.0.1",
    "schema.compatibility.level": "NONE",
    "kafkastore.timeout.ms": str(int(PATIENCE_S * 1000)),
    "kafkagroup.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "kafkagroup.heartbeat.interval.ms": "200",
}


def store_config(bootstrap: str, topic: str, port: int, **settings: str) -> RegistryConfig:
    """The configuration of an instance; its group is named after the topic."""
    return RegistryConfig(
        SETTINGS
        | {
            "kafkastore.bootstrap.servers": bootstrap,
            "kafkastore.topic": topic,
            "schema.registry.group.id": f"group-of-{topic}",
            "listeners": f"http://127.0.0.1:{port}",
        }
        | {name.replace("_", "."): text for name, text in settings.items()}
    )


def new_store(bootstrap: str, topic: str, port: int, **settings: str) -> KafkaStore:
    """An instance in this process, not started."""
    return KafkaStore(store_config(bootstrap, topic, port, **settings), PlainFormats())


def registering(subject: str, text: str) -> Callable[[View], Decision[SchemaValue]]:
    """A request to register a schema."""
    return lambda view: register(view, subject, SchemaRequest(text))


async def registered(store: KafkaStore, subject: str, text: str) -> SchemaValue:
    """Register at the leader; fails at any other instance."""
    done = await store.write(registering(subject, text))
    assert isinstance(done, Done), done
    return done.response


@dataclass
class Member:
    """An instance in a separate process."""

    port: int
    process: asyncio.subprocess.Process
    waiting: dict[int, asyncio.Future[dict[str, Any]]]
    reader: asyncio.Task[None] | None = None
    number: int = 0

    @classmethod
    async def start(cls, bootstrap: str, topic: str, port: int) -> Member:
        """Start, and wait until the instance is in its group."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "support.registry_member", bootstrap, topic, str(port)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        )
        member = cls(port, process, {})
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        member.reader = asyncio.create_task(member._read())
        return member

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def register(self, subject: str, text: str) -> dict[str, Any]:
        """Return what the instance answers; raises ConnectionError when the process has ended."""
        if self.reader is None or self.reader.done():
            raise ConnectionError(f"{self.url} has ended")
        assert self.process.stdin is not None
        self.number += 1
        future = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = future
        body = {"number": self.number, "subject": subject, "text": text}
        self.process.stdin.write(json.dumps(body).encode() + b"\n")
        answer: dict[str, Any] = await future
        return answer

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            answer = json.loads(line)
            future = self.waiting.pop(answer["number"])
            if not future.done():  # nobody waits any more
                future.set_result(answer)
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ConnectionError(f"{self.url} has ended"))

    def signal(self, number: signal.Signals) -> None:
        """Kill, pause or continue the process."""
        self.process.send_signal(number)

    async def end(self) -> None:
        """Kill, and wait until the process is gone."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        if self.reader is not None:
            await self.reader


async def serve(bootstrap: str, topic: str, port: int) -> None:
    """Serve standard input until it ends."""
    store = new_store(bootstrap, topic, port)
    await store.start()
    print("ready", flush=True)  # noqa: T201 - it is a protocol
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    tasks = set()
    async for line in lines:
        task = asyncio.create_task(_answer(store, json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await store.stop()


async def _answer(store: KafkaStore, body: Mapping[str, Any]) -> None:
    answer: dict[str, Any] = {"number": body["number"]}
    try:
        done = await store.write(registering(body["subject"], body["text"]))
    except RegistryError as error:
        answer |= {"error": error.code, "message": error.message}
    else:
        if isinstance(done, Forward):
            answer["forward"] = done.leader_url
        else:
            answer |= {"id": done.response.id, "version": done.response.version}
    print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
