"""The certificates of a node's listeners: followed as files and configuration change, and watched.

Nobody notices an expiring certificate until nobody can connect, so its end is a metric
(`seconds_left`) and is logged when it comes near.
"""

import logging
from collections.abc import Sequence
from typing import Final

from barnabas.base.clock import Clock, Timer
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TlsSide

CHECK_PERIOD_MS: Final = 60_000
"""The interval at which changed files are logged; connections use them at once."""
_DAY_S: Final = 86_400
WARNED_AT_DAYS: Final = (7, 30)

telemetry = logging.getLogger(__name__)


class ListenerCertificates:
    """Of one role's listeners that speak TLS."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sides: Sequence[TlsSide] = ()
        self._told: dict[str, object] = {}
        """The last warning about each listener's certificate."""
        self._timer: Timer | None = None

    def watch(self, sides: Sequence[TlsSide]) -> None:
        """Look after the certificates of these listeners, until `close`."""
        self._sides = sides
        if sides:
            self._check()

    def follow(self, config: NodeConfig) -> None:
        """Use another configuration for new connections."""
        for side in self._sides:
            side.follow(config)

    def seconds_left(self) -> dict[str, float]:
        """Until the certificate of each listener ends; negative if it has ended."""
        now_s = self._clock.now_ms() / 1000
        return {
            side.listener_name: side.certificate.not_after.timestamp() - now_s
            for side in self._sides
            if side.certificate is not None
        }

    def _check(self) -> None:
        for side in self._sides:
            side.refresh()
        for name, seconds in self.seconds_left().items():
            self._tell(name, seconds)
        self._timer = self._clock.call_later(CHECK_PERIOD_MS, self._check)

    def _tell(self, name: str, seconds: float) -> None:
        """Say once that an end comes near: under 30 days, under 7, and when it is there."""
        limit = next((days for days in WARNED_AT_DAYS if seconds < days * _DAY_S), None)
        state = 0 if seconds <= 0 else limit
        if state == self._told.get(name):
            return
        self._told[name] = state
        if state == 0:
            telemetry.error("the certificate of listener %s has expired", name)
        elif state is not None:
            days = int(seconds // _DAY_S)
            telemetry.warning("the certificate of listener %s expires in %d days", name, days)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
