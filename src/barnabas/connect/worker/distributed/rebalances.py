"""Figures of the rounds of the group, as Kafka's connect-worker-rebalance-metrics name them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.connect.worker.distributed.group_messages import PROTOCOLS
from barnabas.connect.worker.distributed.membership import Membership
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.share import NOTHING

Figures = tuple[str, Mapping[str, float], tuple[tuple[str, str], ...]]
"""Group, figures and labels."""
_KEPT: Final = 100
"""Rounds that the average and the maximum are of."""


class RebalanceFigures:
    """Written by the member's and the herder's threads, read by any."""

    def __init__(self) -> None:
        self._begun_at: float | None = None
        self._completed_at: float | None = None
        self._count = 0
        self._times_ms: deque[float] = deque(maxlen=_KEPT)

    def begun(self) -> None:
        """A round gave work that is not yet started."""
        if self._begun_at is None:
            self._begun_at = time.monotonic()

    def completed(self) -> None:
        """The work runs."""
        now = time.monotonic()
        if self._begun_at is not None:
            self._times_ms.append((now - self._begun_at) * 1000)
        self._begun_at, self._completed_at = None, now
        self._count += 1

    def figures(self) -> dict[str, float]:
        """Return them."""
        times = list(self._times_ms)
        since = math.inf
        if self._completed_at is not None:
            since = (time.monotonic() - self._completed_at) * 1000
        return {
            "completed-rebalances-total": float(self._count),
            "rebalancing": float(self._begun_at is not None),
            "rebalance-avg-time-ms": sum(times) / len(times) if times else math.nan,
            "rebalance-max-time-ms": max(times, default=math.nan),
            "time-since-last-rebalance-ms": since,
        }


def group_figures(
    member: Membership, position: Position, rebalances: RebalanceFigures
) -> Sequence[Figures]:
    """Return what /metrics shows of a worker in its group."""
    held = member.held
    work = NOTHING if held is None else held.work
    words = {
        "connect-protocol": PROTOCOLS[member.protocol_version],
        "leader-name": position.leader_url or "",
    }
    group = "worker_rebalance"
    assigned = {
        "assigned-connectors": float(len(work.connectors)),
        "assigned-tasks": float(len(work.tasks)),
    }
    return (
        (group, {**rebalances.figures(), "epoch": float(position.generation)}, ()),
        *((group, {name: 1.0}, ((name.replace("-", "_"), word),)) for name, word in words.items()),
        ("coordinator", assigned, ()),
    )
