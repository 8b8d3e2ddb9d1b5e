"""A node's login by token: when the token is renewed, and what holds while it cannot be."""

import logging
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.clock import SystemClock
from barnabas.base.oauth.fetch import FetchError
from barnabas.node.net.login import LoginError
from barnabas.node.net.oauth.message import parse_message
from barnabas.node.net.oauth.token_login import RefreshSettings, TokenLogin, refresh_at_ms
from support.tokens import unsecured

DAY_MS = 86_400_000
DEFAULTS = RefreshSettings()


@pytest.mark.parametrize(
    ("issued_ms", "expires_ms", "now_ms", "jitter", "expected_ms"),
    [
        pytest.param(0, DAY_MS, 0, 0.0, DAY_MS * 8 // 10, id="at four fifths"),
        pytest.param(0, DAY_MS, 0, 1.0, DAY_MS * 85 // 100, id="a little later"),
        pytest.param(None, DAY_MS + 5, 5, 0.0, DAY_MS * 8 // 10 + 5, id="from now on"),
        pytest.param(0, 1_000_000, 0, 0.0, 700_000, id="before the last five minutes"),
        pytest.param(0, DAY_MS, DAY_MS - 400_000, 0.0, DAY_MS - 340_000, id="not at once"),
        pytest.param(0, 100_000, 0, 0.0, 80_000, id="a short life leaves no room for either"),
    ],
)
def test_when_a_token_is_renewed(
    issued_ms: int | None, expires_ms: int, now_ms: int, jitter: float, expected_ms: int
) -> None:
    assert refresh_at_ms(DEFAULTS, issued_ms, expires_ms, now_ms, jitter) == expected_ms


@given(st.integers(0, 10**10), st.integers(0, 10**10), st.integers(0, 10**10), st.floats(0, 1))
def test_a_token_is_renewed_while_it_holds(
    issued_ms: int, life_ms: int, passed_ms: int, jitter: float
) -> None:
    now_ms = issued_ms + min(passed_ms, life_ms)
    at_ms = refresh_at_ms(DEFAULTS, issued_ms, issued_ms + life_ms, now_ms, jitter)
    assert now_ms <= at_ms <= issued_ms + life_ms


class World(SystemClock):
    """A clock that can be set, and a provider of tokens."""

    def __init__(self, retry_max_ms: int = 20) -> None:
        self.ms = 1_000_000_000
        self.errors: list[FetchError] = []
        self.fetched = 0
        self.life_ms = DAY_MS
        self.login = TokenLogin(
            self.retrieve,
            self,
            random.Random(1),
            refresh=RefreshSettings(window_jitter=0),
            retry_ms=1,
            retry_max_ms=retry_max_ms,
            extensions={"traceId": "7"},
        )

    def now_ms(self) -> int:
        return self.ms

    def retrieve(self) -> str:
        assert threading.current_thread() is not threading.main_thread(), "it would block the loop"
        self.fetched += 1
        if self.errors:
            raise self.errors.pop(0)
        claims = {"sub": f"n{self.fetched}", "exp": (self.ms + self.life_ms) // 1000}
        return unsecured(claims)

    async def shown(self) -> str:
        """The first message of a login."""
        exchange = await self.login.begin()
        first = exchange.respond(b"")
        assert first is not None
        message = parse_message(first)
        assert message.extensions == {"traceId": "7"}
        assert exchange.respond(b"") is None
        return message.token


async def test_a_token_serves_many_logins_until_it_is_renewed() -> None:
    world = World()
    first = await world.shown()
    assert await world.shown() == first
    world.ms += DAY_MS * 8 // 10
    second = await world.shown()
    assert second != first
    assert world.fetched == 2


async def test_a_refusal_is_acknowledged() -> None:
    exchange = await World().login.begin()
    exchange.respond(b"")
    assert exchange.respond(b'{"status":"invalid_token"}') == b"\x01"


async def test_an_old_token_serves_while_there_is_no_new_one() -> None:
    world = World()
    first = await world.shown()
    world.ms += DAY_MS * 9 // 10
    world.errors = [FetchError("down", is_final=True)]
    assert await world.shown() == first
    assert await world.shown() == first, "it is not asked for at each login"
    assert world.fetched == 2
    world.ms += DAY_MS
    world.errors = [FetchError("down", is_final=True)]
    with pytest.raises(LoginError, match="cannot get a token to log in with: down"):
        await world.shown()
    assert await world.shown() != first


async def test_a_provider_that_is_busy_is_asked_again() -> None:
    world = World(retry_max_ms=60_000)
    world.errors = [FetchError("busy"), FetchError("busy")]
    assert await world.shown()
    assert world.fetched == 3
    world = World()
    world.errors = [FetchError("busy")] * 1000
    with pytest.raises(LoginError, match="busy"):
        await world.shown()


async def test_what_is_fetched_must_be_a_token_that_ends(caplog: pytest.LogCaptureFixture) -> None:
    for value in ("opaque", unsecured({"sub": "a"}), unsecured({"exp": 5})):
        world = World()
        world.login._retrieve = lambda token=value: token  # type: ignore[misc]
        with caplog.at_level(logging.DEBUG), pytest.raises(LoginError) as raised:
            await world.shown()
        assert value not in caplog.text + str(raised.value)
