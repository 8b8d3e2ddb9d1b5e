"""An issuer's keys, from a file or from an endpoint that is asked repeatedly.

The event loop never waits for an endpoint: it is asked in a thread; until it answers, logins use
the known keys. An endpoint that cannot be asked costs nothing but age: the keys
that are known stay. Source: Kafka's RefreshingHttpsJwks and JwksFileVerificationKeyResolver.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.clock import Clock, Timer
from barnabas.base.oauth.bearer import InvalidTokenError
from barnabas.base.oauth.fetch import FetchError, read_file
from barnabas.base.oauth.key_set import KeySet, KeySetError, parse_key_set

MISSED_PAUSE_MS: Final = 60_000
"""The pause before a key id that was not found is looked up again."""
MISSED_KEPT_MAX: Final = 16
EXPEDITED_PAUSE_MS: Final = 1000
"""Made-up key ids, each another, have the endpoint asked no more often than this."""

telemetry = logging.getLogger(__name__)


class FileKeys:
    """A key set in a file, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._keys: KeySet | None = None

    def start(self) -> None:
        """Read it. Raises FetchError and KeySetError."""
        self._read()

    async def close(self) -> None:
        """Nothing is open."""

    def current(self) -> KeySet:
        """The keys of the file as it is now, or as it last could be read.

        Raises InvalidTokenError where it never could.
        """
        try:
            self._read()
        except (FetchError, KeySetError) as error:
            telemetry.error("the keys in %s cannot be used: %s", self._path, error)
        if self._keys is None:
            raise InvalidTokenError("no keys of the issuer are known")
        return self._keys

    def missed(self, key_id: str) -> None:
        """Keys that are not in the file are unknown."""

    def _read(self) -> None:
        try:
            stat = self._path.stat()
        except OSError as error:
            raise FetchError(f"{self._path} cannot be read: {error.strerror}") from error
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            # A file that cannot be used is said to be so once.
            self._stamp = stamp
            self._keys = parse_key_set(read_file(self._path))


class EndpointKeys:
    """A key set that an endpoint serves. `start` on the event loop, `close` at last."""

    def __init__(
        self,
        url: str,
        fetch: Callable[[], bytes],
        clock: Clock,
        refresh_ms: int,
        backoff: ExponentialBackoff,
    ) -> None:
        """`fetch` blocks, and is called in a thread."""
        self._url = url
        self._fetch = fetch
        self._clock = clock
        self._refresh_ms = refresh_ms
        self._backoff = backoff
        self._keys: KeySet | None = None
        self._timer: Timer | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._failures = 0
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._asked_ms = 0
        self._is_missed = False
        self._is_closed = False

    def start(self) -> None:
        """Ask for the keys, and go on doing so."""
        self._refresh()

    async def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def current(self) -> KeySet:
        """The keys as they were last served. Raises InvalidTokenError if none were yet."""
        if self._keys is None:
            raise InvalidTokenError("no keys of the issuer are known yet")
        return self._keys

    def missed(self, key_id: str) -> None:
        """Ask soon, unless this key was asked for a moment ago."""
        now_ms = self._clock.monotonic_ms()
        if self._missed.get(key_id, now_ms) > now_ms:
            return
        self._missed[key_id] = now_ms + MISSED_PAUSE_MS
        self._missed.move_to_end(key_id)
        if len(self._missed) > MISSED_KEPT_MAX:
            self._missed.popitem(last=False)
        if self._fetching is not None:
            self._is_missed = True  # what comes may be older than the key
        elif self._failures == 0:
            self._refresh_in(max(self._asked_ms + EXPEDITED_PAUSE_MS - now_ms, 0))

    def _refresh(self) -> None:
        if self._is_closed or self._fetching is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._asked_ms = self._clock.monotonic_ms()
        self._fetching = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        try:
            self._keys = await asyncio.to_thread(lambda: parse_key_set(self._fetch()))
        except (FetchError, KeySetError, InvalidTokenError) as error:
            self._failures += 1
            pause_ms = self._backoff.after(self._failures)
            telemetry.warning("cannot get the keys of %s: %s", self._url, error)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and they are asked for again
            self._failures += 1
            pause_ms = self._backoff.after(self._failures)
            telemetry.exception("cannot read the keys of %s", self._url)
        else:
            self._failures = 0
            pause_ms = self._refresh_ms
            telemetry.info("%d keys of %s are known", len(self._keys), self._url)
        finally:
            self._fetching = None
        if self._is_missed and self._failures == 0:
            pause_ms = EXPEDITED_PAUSE_MS
        self._is_missed = False
        if not self._is_closed:
            self._refresh_in(pause_ms)

    def _refresh_in(self, pause_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(pause_ms, self._refresh)
