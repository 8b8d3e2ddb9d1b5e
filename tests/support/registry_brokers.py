"""Brokers of a registry, played: one topic, its producers' transactions, and who reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from aiokafka.errors import KafkaConnectionError, KafkaError

from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.reader import TopicReader

Records = list[tuple[bytes, bytes | None]]


@dataclass
class Brokers:
    """The topic, and the one producer that writes to it. An aborted record stays in the log."""

    log: list[tuple[bytes, bytes | None] | None] = field(default_factory=list)
    """None is a record whose transaction was aborted."""
    pending: Records = field(default_factory=list)
    """Of the open transaction."""
    transactions: int = 0
    begun: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """Commits wait for it."""
    send_fault: KafkaError | None = None
    commit_fault: KafkaError | None = None
    stores_in_spite: bool = False
    """True if a commit that fails is carried out, and its answer alone is lost."""

    def __post_init__(self) -> None:
        self.hold.set()

    async def start(self) -> None:
        """As InitProducerId does, end what is open: by its commit, if that was asked for."""
        if isinstance(self.commit_fault, KafkaConnectionError):
            raise self.commit_fault
        self.log += [None] * len(self.pending)
        self.pending = []

    async def stop(self) -> None:
        """Nothing."""

    async def begin_transaction(self) -> None:
        assert not self.pending
        self.begun += 1

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes,
        partition: int,
        timestamp_ms: int,
    ) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        if self.send_fault is not None:
            answer.set_exception(self.send_fault)
            return answer
        answer.set_result(SimpleNamespace(offset=len(self.log) + len(self.pending)))
        self.pending.append((key, value))
        return answer

    async def commit_transaction(self) -> None:
        await self.hold.wait()
        if self.commit_fault is None or self.stores_in_spite:
            self.log += self.pending
            self.pending = []
            self.transactions += 1
        if self.commit_fault is not None:
            raise self.commit_fault


class Reading(TopicReader):
    """Reads the log of the brokers on request, or all the time."""

    def __init__(
        self,
        connection: Connection,
        brokers: Brokers,
        apply: Callable[[int, int, bytes | None, bytes | None], None],
    ) -> None:
        super().__init__(connection, "t", apply)
        self.brokers = brokers
        self.reads_at_once = False

    async def log_end(self) -> int:
        return len(self.brokers.log)

    async def reached(self, position: int) -> None:
        if self.reads_at_once:
            self.read()
        await super().reached(position)

    def read(self) -> None:
        while self.position < len(self.brokers.log):
            record = self.brokers.log[self.position]
            if record is not None:
                self._apply(self.position, 0, *record)
            self.position += 1
        self._wake()


async def settle(condition: Callable[[], bool] = lambda: False) -> None:
    """Let all tasks go as far as they can."""
    for _ in range(50):
        if condition():
            return
        await asyncio.sleep(0)
