"""How far a query has read, from Spark's progress of its last micro-batch, or its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.spark.progress import committed_offsets


def lag_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """By topic, how many records its readers are behind."""
    lag: dict[str, int] = {}
    for source in progress.get("sources", []):
        latest, reached = source.get("latestOffset") or {}, source.get("endOffset") or {}
        for topic, ends in latest.items():
            done = reached.get(topic, {})
            behind = sum(max(0, end - done.get(partition, 0)) for partition, end in ends.items())
            lag[topic] = max(lag.get(topic, 0), behind)
    return lag


def positions_of(progress: Mapping[str, Any]) -> dict[tuple[str, int], tuple[int, int]]:
    """By topic and partition the next offset, and the end of the partition."""
    positions: dict[tuple[str, int], tuple[int, int]] = {}
    for source in progress.get("sources", []):
        latest = source.get("latestOffset") or {}
        for topic, ends in (source.get("endOffset") or {}).items():
            for partition, reached in ends.items():
                place = topic, int(partition)
                # A topic that is read twice counts as far as the slower reader.
                reached = min(reached, positions.get(place, (reached, 0))[0])
                positions[place] = reached, latest.get(topic, {}).get(partition, reached)
    return positions


def committed_positions(checkpoint: str) -> dict[tuple[str, int], tuple[int, int]]:
    """What `positions_of` gave last: before the first micro-batch since a start."""
    return {
        (topic, partition): (at, at)
        for topic, ends in committed_offsets(checkpoint).items()
        for partition, at in ends.items()
    }
