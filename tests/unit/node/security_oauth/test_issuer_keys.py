"""Issuers' keys from a file and an endpoint: found, renewed, and kept while neither can be read."""

import asyncio
import logging
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.oauth.bearer import InvalidTokenError
from barnabas.base.oauth.fetch import FetchError
from barnabas.base.oauth.key_set import KeySetError
from barnabas.node.security.issuer_keys import (
    EXPEDITED_PAUSE_MS,
    MISSED_KEPT_MAX,
    EndpointKeys,
    FileKeys,
)
from support.tokens import Issuer


class StillClock:
    """Time that stands still until it is moved; timers run when it is."""

    def __init__(self) -> None:
        self.ms = 0
        self.timers: list[StillTimer] = []

    def now_ms(self) -> int:
        return self.ms

    monotonic_ms = now_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> "StillTimer":
        timer = StillTimer(self.ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def move(self, by_ms: int) -> None:
        self.ms += by_ms
        due = [timer for timer in self.timers if timer.at_ms <= self.ms]
        self.timers = [timer for timer in self.timers if timer.at_ms > self.ms]
        for timer in due:
            if not timer.is_cancelled:
                timer.callback()

    @property
    def next_ms(self) -> float:
        return min(timer.at_ms for timer in self.timers if not timer.is_cancelled) - self.ms


class StillTimer:
    def __init__(self, at_ms: float, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Endpoint:
    """Serves an issuer's keys, or fails."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.clock = StillClock()
        self.asked = 0
        self.error: Exception | None = None
        self.keys = EndpointKeys(
            "https://issuer/keys",
            self.fetch,
            self.clock,
            3_600_000,
            ExponentialBackoff(100, 10_000, random.Random(1)),
        )

    def fetch(self) -> bytes:
        assert threading.current_thread() is not threading.main_thread(), "it would block the loop"
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.issuer.key_set().encode()

    async def settled(self) -> None:
        """Return when nothing is being fetched."""
        await asyncio.sleep(0)
        while self.keys._fetching is not None:
            await asyncio.wait([self.keys._fetching])

    def knows(self, key_id: str) -> bool:
        return bool(self.keys.current().fitting("RS256", key_id))


async def test_keys_are_fetched_and_renewed() -> None:
    endpoint = Endpoint()
    endpoint.keys.start()
    with pytest.raises(InvalidTokenError, match="yet"):
        endpoint.keys.current()
    await endpoint.settled()
    assert endpoint.knows("first")
    endpoint.issuer.rotate("second")
    assert endpoint.clock.next_ms == 3_600_000
    endpoint.clock.move(3_600_000)
    await endpoint.settled()
    assert endpoint.knows("second")
    assert not endpoint.knows("first")
    await endpoint.keys.close()


async def test_a_key_that_is_missed_is_asked_for_once_in_a_while() -> None:
    endpoint = Endpoint()
    endpoint.keys.start()
    await endpoint.settled()
    endpoint.issuer.rotate("second")
    endpoint.clock.move(EXPEDITED_PAUSE_MS)
    for _ in range(5):
        endpoint.keys.missed("second")
        endpoint.clock.move(0)
        await endpoint.settled()
    assert endpoint.knows("second")
    assert endpoint.asked == 2
    await endpoint.keys.close()


async def test_made_up_key_ids_do_not_flood_the_endpoint() -> None:
    endpoint = Endpoint()
    endpoint.keys.start()
    await endpoint.settled()
    endpoint.clock.move(EXPEDITED_PAUSE_MS)
    for number in range(1000):
        endpoint.keys.missed(f"made up {number}")
        endpoint.clock.move(1)
        await endpoint.settled()
    assert endpoint.asked <= 3
    assert len(endpoint.keys._missed) <= MISSED_KEPT_MAX
    await endpoint.keys.close()


async def test_a_key_missed_while_others_come_is_asked_for_after() -> None:
    endpoint = Endpoint()
    endpoint.keys.start()
    endpoint.keys.missed("second")
    await endpoint.settled()
    assert endpoint.clock.next_ms == EXPEDITED_PAUSE_MS
    await endpoint.keys.close()


@pytest.mark.parametrize(
    "error", [FetchError("no route"), KeySetError("no JSON"), RuntimeError("a fault of ours")]
)
async def test_an_endpoint_that_fails_leaves_what_is_known(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = Endpoint()
    endpoint.error = error
    endpoint.keys.start()
    pauses = []
    with caplog.at_level(logging.WARNING):
        for _ in range(12):
            await endpoint.settled()
            pauses.append(endpoint.clock.next_ms)
            endpoint.clock.move(int(endpoint.clock.next_ms))
        await endpoint.settled()
    assert pauses[0] < 300
    assert max(pauses) == pauses[-1] or max(pauses) <= 10_000
    assert str(error) in caplog.text
    endpoint.error = None
    endpoint.clock.move(10_000)
    await endpoint.settled()
    assert endpoint.knows("first")
    endpoint.error = error
    endpoint.clock.move(3_600_000)
    await endpoint.settled()
    assert endpoint.knows("first")
    await endpoint.keys.close()


async def test_nothing_is_asked_after_the_end() -> None:
    endpoint = Endpoint()
    endpoint.keys.start()
    await endpoint.keys.close()
    asked = endpoint.asked
    endpoint.clock.move(10**9)
    endpoint.keys.missed("any")
    endpoint.clock.move(10**9)
    await asyncio.sleep(0)
    assert endpoint.asked == asked


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "keys.json"
    file.write_text(issuer.key_set())
    keys = FileKeys(file)
    keys.start()
    assert keys.current().fitting("RS256", "first")
    issuer.rotate("second")
    file.write_text(issuer.key_set())
    os.utime(file, ns=(1, 1))
    assert keys.current().fitting("RS256", "second")


def test_a_file_that_breaks_leaves_what_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(Issuer().key_set())
    keys = FileKeys(file)
    keys.start()
    file.write_text("{")
    for _ in range(3):
        assert len(keys.current()) == 1
    assert len(caplog.records) == 1, "it is said once"
    file.unlink()
    assert len(keys.current()) == 1


def test_a_file_that_cannot_be_used_at_first(tmp_path: Path) -> None:
    with pytest.raises(FetchError):
        FileKeys(tmp_path / "none").start()
    file = tmp_path / "keys.json"
    file.write_text("[]")
    keys = FileKeys(file)
    with pytest.raises(KeySetError):
        keys.start()
    with pytest.raises(InvalidTokenError):
        keys.current()
