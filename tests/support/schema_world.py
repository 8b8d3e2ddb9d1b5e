"""Known schemas over a registry in memory, on a clock that stands still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.node.broker.schemas.known_schemas import KnownSchemas
from barnabas.node.broker.schemas.registry import Claim, NoAnswerError
from sim.manual_clock import ManualClock

TURNS = 20
"""Of the event loop, within which everything has happened that can."""


def id_of(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


@dataclass(eq=False)
class SchemaWorld:
    """A `Registry`, and what is known of it."""

    record_name: str | None = "Order"
    registered: set[tuple[bytes, str]] = field(default_factory=set)
    """(identity, subject)."""
    asked: list[Claim] = field(default_factory=list)
    failure: str | None = None
    is_slow: bool = False
    """Answers wait for `answer_now`."""
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self._tasks: set[asyncio.Future[None]] = set()
        self._slow: list[asyncio.Future[None]] = []
        self.known = KnownSchemas(self.clock, random.Random(1), self._start)
        self.known.use(self)
        self.known.is_needed = True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def register(self, number: int, subject: str) -> bytes:
        self.registered.add((id_of(number), subject))
        return id_of(number)

    async def holds(self, claim: Claim) -> bool:
        self.asked.append(claim)
        if self.is_slow:
            turn = asyncio.get_running_loop().create_future()
            self._slow.append(turn)
            await turn
        if self.failure is not None:
            raise NoAnswerError(self.failure)
        subject = claim.subject(self.record_name)
        return (claim.identity, subject) in self.registered

    def answer_now(self) -> None:
        self.is_slow = False
        for turn in self._slow:
            if not turn.done():
                turn.set_result(None)
        self._slow.clear()

    async def pass_time(self, duration_ms: int) -> None:
        """Let time pass, a little at once, and everything happen that is due."""
        for _ in range(max(duration_ms // 50, 1)):
            self.clock.advance(min(50, duration_ms))
            await settle()


async def settle() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
