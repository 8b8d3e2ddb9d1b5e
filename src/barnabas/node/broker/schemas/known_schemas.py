"""Known answers of the schema registry, and the questions under way.

Claims that were found true are remembered for `TRUE_TTL_MS` (ids are never given to another schema,
but a subject may be deleted), and confirmed in the background after half of it. False ones are
remembered shortly, since the schema may be registered the moment after. Each claim is asked
once, however many requests wait. While the registry fails, one series of growing pauses
holds for all questions.
"""

import asyncio
import logging
import random as random_module
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.clock import Clock
from barnabas.base.tls.contexts import configured_client
from barnabas.node.broker.schemas.http_registry import HttpRegistry
from barnabas.node.broker.schemas.registry import Claim, NoAnswerError, Registry
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.loop.pauses import pause
from barnabas.node.loop.promise import Promise

URL_KEY = "confluent.schema.registry.url"
SOURCE_KEY = "confluent.basic.auth.credentials.source"
USER_INFO_KEY = "confluent.basic.auth.user.info"
TLS_PREFIX = "confluent."
TLS_KEYS = (
    "confluent.ssl.truststore.location",
    "confluent.ssl.truststore.type",
    "confluent.ssl.truststore.certificates",
    "confluent.ssl.truststore.password",
    "confluent.ssl.keystore.location",
    "confluent.ssl.keystore.type",
    "confluent.ssl.keystore.password",
    "confluent.ssl.key.password",
    "confluent.ssl.endpoint.identification.algorithm",
)
"""Those that `base/tls/contexts.py` reads."""
REGISTRY_KEYS = (URL_KEY, SOURCE_KEY, USER_INFO_KEY, *TLS_KEYS)
TRUE_TTL_MS: Final = 3_600_000
FALSE_TTL_MS: Final = 1_000
CLAIMS_MAX: Final = 10_000
"""Remembered at once; the oldest give way."""
ASKED_AT_ONCE_MAX: Final = 8
OPEN_MAX: Final = 4_096
"""Questions that wait for their turn; more are not taken until some are answered."""
PAUSE_FIRST_MS: Final = 100
PAUSE_MAX_MS: Final = 5_000

telemetry = logging.getLogger(__name__)


class _Known(NamedTuple):
    is_true: bool
    confirm_at_ms: int
    until_ms: int


class KnownSchemas:
    """One per node."""

    def __init__(
        self,
        clock: Clock,
        random: random_module.Random,
        in_background: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._clock = clock
        self._in_background = in_background
        self._backoff = ExponentialBackoff(PAUSE_FIRST_MS, PAUSE_MAX_MS, random)
        self._registry: Registry | None = None
        self._known: dict[Claim, _Known] = {}
        self._open: dict[Claim, Promise[None]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._slots = asyncio.Semaphore(ASKED_AT_ONCE_MAX)
        self._failures = 0
        self._paused_until_ms = 0
        self.is_needed = False
        """True if a topic here has asked for validation since the node was started."""
        self.is_closed = False

    def configure(self, config: NodeConfig) -> None:
        """Follow `REGISTRY_KEYS`."""
        urls = config.get_list(URL_KEY)
        is_given = config.get_str(SOURCE_KEY) == "USER_INFO"
        user_info = config.get_str_or_none(USER_INFO_KEY) if is_given else None
        read_tls = partial(configured_client, config, TLS_PREFIX)
        self.use(HttpRegistry(urls, user_info, read_tls) if urls else None)

    def use(self, registry: Registry | None) -> None:
        """Ask `registry` from now on. Forgets the answers of another one."""
        self._registry = registry
        self._known.clear()
        self._failures = 0
        self._paused_until_ms = 0

    def is_true(self, claim: Claim) -> bool | None:
        """Return the known answer for `claim`; None: ask with `learn`."""
        known = self._known.get(claim)
        if known is None:
            return None
        now_ms = self._clock.monotonic_ms()
        if now_ms >= known.confirm_at_ms:
            if now_ms >= known.until_ms:
                del self._known[claim]
                return None
            self._ask(claim)
        return known.is_true

    async def learn(self, claims: Collection[Claim], deadline_ms: int) -> None:
        """Ask about `claims`; returns when each was asked once, or at the deadline.

        The deadline is one of the monotonic clock. Ids without an answer stay unknown.
        """
        if self.is_closed or not claims:
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = 0

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def asked(_: None) -> None:
            nonlocal left
            left -= 1
            if not left:
                end()

        timer = self._clock.call_later(max(deadline_ms - self._clock.monotonic_ms(), 0), end)
        self._waiting.add(over)
        try:
            questions = [question for claim in claims if (question := self._ask(claim))]
            left = len(questions)
            for question in questions:
                question.then(asked)
            if not questions:  # too many others are open
                self._clock.call_later(PAUSE_FIRST_MS, end)
            await over
        finally:
            timer.cancel()
            self._waiting.discard(over)

    def close(self) -> None:
        """Nobody waits for an answer any more."""
        self.is_closed = True
        for over in self._waiting:
            if not over.done():
                over.set_result(None)

    def _ask(self, claim: Claim) -> Promise[None] | None:
        """The open question of `claim`, which is begun if need be; None if too many are open."""
        question = self._open.get(claim)
        if question is None and len(self._open) < OPEN_MAX and not self.is_closed:
            question = self._open[claim] = Promise()
            self._in_background(self._pursue(claim, question))
        return question

    async def _pursue(self, claim: Claim, question: Promise[None]) -> None:
        try:
            async with self._slots:
                while (left_ms := self._paused_until_ms - self._clock.monotonic_ms()) > 0:
                    await pause(self._clock, left_ms)
                registry = self._registry
                try:
                    if registry is None:
                        raise NoAnswerError(f"{URL_KEY} is not set")
                    is_true = await registry.holds(claim)
                except NoAnswerError as failure:
                    if registry is self._registry:
                        self._failed(failure)
                    return
                except Exception:  # noqa: BLE001  # our own fault: it is logged, and asked again
                    telemetry.exception("cannot ask the schema registry")
                    self._failed(NoAnswerError("see above"))
                    return
            if registry is self._registry:
                self._answered(claim, is_true)
        finally:
            del self._open[claim]
            question.settle(None)

    def _answered(self, claim: Claim, is_true: bool) -> None:
        if self._failures:
            self._failures = 0
            telemetry.info("the schema registry answers again")
        now_ms = self._clock.monotonic_ms()
        ttl_ms = TRUE_TTL_MS if is_true else FALSE_TTL_MS
        confirm_at_ms = now_ms + (ttl_ms // 2 if is_true else ttl_ms)
        self._known.pop(claim, None)
        while len(self._known) >= CLAIMS_MAX:
            del self._known[next(iter(self._known))]
        self._known[claim] = _Known(is_true, confirm_at_ms, now_ms + ttl_ms)

    def _failed(self, failure: NoAnswerError) -> None:
        """Pause all questions; those that were under way with this one count with it."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._paused_until_ms:
            return
        if not self._failures:
            telemetry.warning(
                "the schema registry does not answer, so records whose schema is not known yet "
                "have to wait: %s",
                failure,
            )
        self._paused_until_ms = now_ms + self._backoff.after(self._failures)
        self._failures += 1
