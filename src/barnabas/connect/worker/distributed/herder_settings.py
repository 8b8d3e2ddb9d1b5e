"""The settings of the herder of distributed mode."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.connect.worker.distributed.signatures import SigningRules


@dataclass(slots=True, frozen=True)
class HerderSettings:
    """Times of a worker's settings, and how it signs."""

    signing: SigningRules
    sync_s: float = 3.0
    unsync_backoff_s: float = 300.0
    delay_s_max: float = 300.0
