"""Records as topics have them: bytes, before converters read them and after they wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class RawRecord:
    """A record of a topic. To be written: `offset` is -1, `partition` None lets the key decide."""

    topic: str
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int = -1
    timestamp_type: str = "CreateTime"
