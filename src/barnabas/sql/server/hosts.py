"""Which servers of a service are alive, by ksqlDB's rule, and how far behind their tables are.

A server sends heartbeats to all others. It is dead for another one that misses several of them in
a row, within a window of time. Pure: what was received and what time it is come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SESSION_TIMEOUT_MS = 10_000
"""Time that other servers wait for a silent one before they take over its queries, by default."""
_KEPT_MAX = 1_000
"""Heartbeats of one server that are remembered."""
_HOSTS_MAX = 1_000
FORGET_MS = 600_000
"""A server that is dead and has left the group is shown for so long."""


@dataclass(frozen=True)
class HeartbeatConfig:
    """ksqlDB's keys of heartbeats, with its defaults."""

    is_enabled: bool = False
    send_interval_ms: int = 100
    check_interval_ms: int = 200
    window_ms: int = 2_000
    missed_threshold: int = 3
    discover_interval_ms: int = 2_000
    reports_lag: bool = False
    lag_interval_ms: int = 5_000


def no_lags() -> dict[str, Any]:
    """Return the lags of a server that has not reported any."""
    return {"stateStoreLags": {}, "updateTimeMs": 0}


@dataclass
class HostStatus:
    """The known status of a server."""

    is_alive: bool
    updated_ms: int
    heartbeats: list[int] = field(default_factory=list)
    lags: Mapping[str, Any] = field(default_factory=no_lags)


class Hosts:
    """The servers by `host:port`; `own` is this one, which is alive."""

    def __init__(self, own: str, config: HeartbeatConfig, now_ms: int) -> None:
        self.own = own
        self._config = config
        self.statuses: dict[str, HostStatus] = {own: HostStatus(True, now_ms)}

    def others(self) -> list[str]:
        """All other servers, dead or alive."""
        return [host for host in self.statuses if host != self.own]

    def found(self, members: Iterable[str], now_ms: int) -> None:
        """Note who is in the group: without heartbeats, they and no others are alive."""
        present = set(members) | {self.own}
        for host in sorted(present):
            if host not in self.statuses and len(self.statuses) < _HOSTS_MAX:
                self.statuses[host] = HostStatus(True, now_ms)
        for host, status in list(self.statuses.items()):
            if not self._config.is_enabled:
                status.is_alive = host in present
                if status.is_alive:
                    status.updated_ms = now_ms
            is_gone = host not in present and not status.is_alive
            if is_gone and now_ms - status.updated_ms >= FORGET_MS:
                del self.statuses[host]

    def received(self, host: str, timestamp_ms: int) -> None:
        """Take a heartbeat of a server."""
        status = self.statuses.get(host)
        if status is None:
            return
        status.heartbeats.append(timestamp_ms)
        del status.heartbeats[:-_KEPT_MAX]

    def reported(self, host: str, lags: Mapping[str, Any]) -> None:
        """Take a server's word on how far behind its tables are."""
        status = self.statuses.get(host)
        if status is not None:
            status.lags = lags

    def check(self, now_ms: int) -> None:
        """Decide who is alive."""
        begin_ms = now_ms - self._config.window_ms
        for host in self.others():
            status = self.statuses[host]
            status.heartbeats = [at for at in status.heartbeats if at >= begin_ms]
            if not status.heartbeats:
                status.is_alive = False
                continue
            missed = missed_last(status.heartbeats, begin_ms, now_ms, self._config.send_interval_ms)
            status.is_alive = missed < self._config.missed_threshold
            status.updated_ms = now_ms
        self.statuses[self.own].updated_ms = now_ms


def missed_last(heartbeats: Iterable[int], begin_ms: int, end_ms: int, interval_ms: int) -> int:
    """Count the heartbeats in a row that were missed at the end of a window."""
    missed, last_ms = 0, begin_ms
    for at_ms in sorted(heartbeats):
        if at_ms >= end_ms:
            break
        late = at_ms - interval_ms > last_ms
        missed = (at_ms - last_ms - 1) // interval_ms if late else 0
        last_ms = at_ms
    if end_ms - last_ms - 1 > 0:
        missed = (end_ms - last_ms - 1) // interval_ms
    return missed
