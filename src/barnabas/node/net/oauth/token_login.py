"""A node's login to others by a token, which it keeps and renews in time.

A token is fetched for the first login, and again for the first login after the time to renew it
has come; the old one serves on if there is no new one yet. Source: Kafka's
ExpiringCredentialRefreshingLogin, whose reckoning of that time this is.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.backoff import ExponentialBackoff, RandomSource
from barnabas.base.clock import Clock
from barnabas.base.oauth.bearer import InvalidTokenError, take_apart, text, time_ms
from barnabas.base.oauth.fetch import FetchError
from barnabas.node.loop.pauses import pause
from barnabas.node.net.login import Exchange, LoginError
from barnabas.node.net.oauth.message import (
    ERROR_ACKNOWLEDGED,
    BearerMessage,
    BearerMessageError,
    format_message,
)

MECHANISM: Final = "OAUTHBEARER"
JITTER_STEPS: Final = 1 << 20

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """When a token is renewed: `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: int = 60_000
    buffer_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class Held:
    """A token, while it is held."""

    token: str
    expires_at_ms: int
    refresh_at_ms: int

    def __repr__(self) -> str:
        return f"Held(expires_at_ms={self.expires_at_ms}, refresh_at_ms={self.refresh_at_ms})"


def refresh_at_ms(
    settings: RefreshSettings, issued_ms: int | None, expires_ms: int, now_ms: int, jitter: float
) -> int:
    """Return when to renew a token; `jitter` is a random number from 0 to 1."""
    part = settings.window_factor + settings.window_jitter * jitter
    start_ms = now_ms if issued_ms is None else issued_ms
    if now_ms + settings.min_period_ms + settings.buffer_ms > expires_ms:
        return now_ms + int((expires_ms - now_ms) * part)
    proposed_ms = start_ms + int((expires_ms - start_ms) * part)
    latest_ms = expires_ms - settings.buffer_ms
    return min(max(proposed_ms, now_ms + settings.min_period_ms), latest_ms)


class TokenLogin:
    """OAUTHBEARER as `net.login.Login`."""

    mechanism = MECHANISM

    def __init__(
        self,
        retrieve: Callable[[], str],
        clock: Clock,
        random: RandomSource,
        *,
        refresh: RefreshSettings,
        retry_ms: int,
        retry_max_ms: int,
        extensions: Mapping[str, str],
        subject_claim: str = "sub",
        in_thread: bool = True,
    ) -> None:
        """`retrieve` may block, unless not `in_thread`. Raises FetchError."""
        self._retrieve = retrieve
        self._clock = clock
        self._random = random
        self._refresh = refresh
        self._backoff = ExponentialBackoff(retry_ms, retry_max_ms, random)
        self._retry_max_ms = retry_max_ms
        self._extensions = extensions
        self._subject_claim = subject_claim
        self._in_thread = in_thread
        self._held: Held | None = None
        self._fetching = asyncio.Lock()

    async def begin(self) -> Exchange:
        """Show the token. Raises LoginError if none exists."""
        message = BearerMessage((await self._current()).token, "", self._extensions)
        try:
            return _Bearer(format_message(message))
        except BearerMessageError as error:
            raise LoginError(str(error)) from error

    async def _current(self) -> Held:
        async with self._fetching:
            now_ms = self._clock.now_ms()
            held = self._held
            if held is not None and now_ms < held.refresh_at_ms:
                return held
            try:
                self._held = await self._fetch()
            except (FetchError, InvalidTokenError) as error:
                if held is None or now_ms >= held.expires_at_ms:
                    raise LoginError(f"cannot get a token to log in with: {error}") from error
                telemetry.warning("cannot renew the token for logins: %s", error)
                self._held = Held(held.token, held.expires_at_ms, now_ms + self._retry_max_ms)
            return self._held

    async def _fetch(self) -> Held:
        end_ms = self._clock.monotonic_ms() + self._retry_max_ms
        failures = 0
        while True:
            try:
                token = await self._retrieved()
                break
            except FetchError as error:
                failures += 1
                pause_ms = self._backoff.after(failures)
                if error.is_final or self._clock.monotonic_ms() + pause_ms > end_ms:
                    raise
                telemetry.info("asking for a token again: %s", error)
                await pause(self._clock, pause_ms)
        now_ms = self._clock.now_ms()
        claims = take_apart(token).claims
        expires_ms = time_ms(claims, "exp")
        if expires_ms is None:
            raise InvalidTokenError("the token that was fetched has no claim exp")
        name = text(claims, self._subject_claim)
        telemetry.info("got a token for logins as %s, valid until %d", name, expires_ms)
        jitter = self._random.randrange(JITTER_STEPS) / JITTER_STEPS
        at_ms = refresh_at_ms(self._refresh, time_ms(claims, "iat"), expires_ms, now_ms, jitter)
        return Held(token, expires_ms, at_ms)

    async def _retrieved(self) -> str:
        return await asyncio.to_thread(self._retrieve) if self._in_thread else self._retrieve()


class _Bearer:
    """One login: the token, and if it is refused the sign that this was understood."""

    def __init__(self, message: bytes) -> None:
        self._message: bytes | None = message

    def respond(self, challenge: bytes) -> bytes | None:
        if self._message is not None:
            message, self._message = self._message, None
            return message
        # The failure itself comes as the answer to this.
        return ERROR_ACKNOWLEDGED if challenge else None
