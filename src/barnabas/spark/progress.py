"""Progress of queries, from Spark's reports and from their checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery


def last_progress(stream: StreamingQuery) -> dict[str, Any] | None:
    """Return Spark's progress JSON of the last micro-batch, None before the first.

    Asked as text: PySpark 4 takes a progress apart with a call to the JVM for each entry of each
    map, some hundred of them: too many for a look at each query five times a second.
    """
    query = getattr(stream, "_jsq", None)
    if query is None:  # not in this process: Spark Connect
        return stream.lastProgress
    last = query.lastProgress()
    return None if last is None else dict(json.loads(last.json()))


def recent_progress(stream: StreamingQuery, count_max: int | None = None) -> list[dict[str, Any]]:
    """Return Spark's progress JSON of the micro-batches that it remembers, oldest first.

    `count_max`: no more than so many of the last, as each is asked of the JVM.
    """
    query = getattr(stream, "_jsq", None)
    if query is None:
        found: list[dict[str, Any]] = [dict(one) for one in stream.recentProgress]
        return found if count_max is None else found[-count_max:]
    known = query.recentProgress()
    first = 0 if count_max is None else max(0, len(known) - count_max)
    return [json.loads(known[place].json()) for place in range(first, len(known))]


def batches_of(progresses: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of micro-batches that ran: Spark also reports triggers that found nothing."""
    return [one for one in progresses if "addBatch" in one.get("durationMs", {})]


Position = tuple[int, int]
"""The next offset of a partition, and its end."""


def lags_of(source: Mapping[str, Any]) -> dict[str, int]:
    """Return by topic how many records one source of a progress is behind."""
    latest, reached = _offsets(source, "latestOffset"), _offsets(source, "endOffset")
    return {
        topic: sum(
            max(0, end - reached.get(topic, {}).get(partition, 0))
            for partition, end in ends.items()
        )
        for topic, ends in latest.items()
    }


def lag_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return by topic how many records its slowest reader is behind."""
    lag: dict[str, int] = {}
    for source in progress.get("sources", []):
        for topic, behind in lags_of(source).items():
            lag[topic] = max(lag.get(topic, 0), behind)
    return lag


def positions_of(progress: Mapping[str, Any]) -> dict[tuple[str, int], Position]:
    """Return how far a query has read, by topic and partition."""
    positions: dict[tuple[str, int], Position] = {}
    for source in progress.get("sources", []):
        latest = _offsets(source, "latestOffset")
        for topic, ends in _offsets(source, "endOffset").items():
            for partition, reached in ends.items():
                place = topic, int(partition)
                # A topic that is read twice counts as far as the slower reader.
                reached = min(reached, positions.get(place, (reached, 0))[0])
                positions[place] = reached, latest.get(topic, {}).get(partition, reached)
    return positions


def committed_positions(checkpoint: str) -> dict[tuple[str, int], Position]:
    """Return what `positions_of` gave last: before the first micro-batch since a start."""
    return {
        (topic, partition): (at, at)
        for topic, ends in committed_offsets(checkpoint).items()
        for partition, at in ends.items()
    }


def _offsets(source: Mapping[str, Any], name: str) -> dict[str, dict[str, int]]:
    told = source.get(name)
    decoded = json.loads(told) if isinstance(told, str) else told
    if not isinstance(decoded, dict):
        return {}
    return {topic: ends for topic, ends in decoded.items() if isinstance(ends, dict)}


def committed_offsets(checkpoint: str) -> dict[str, dict[int, int]]:
    """Return by topic and partition the end of a checkpoint's last committed micro-batch.

    Empty before the first. The checkpoint is a local directory. Source: Spark's CommitLog.
    """
    last = committed_batch(checkpoint)
    return {} if last < 0 else planned_offsets(checkpoint, last)


def committed_batch(checkpoint: str) -> int:
    """Return the number of a checkpoint's last committed micro-batch, -1 before the first."""
    return _last_number(f"{checkpoint}/commits")


def planned_sources(checkpoint: str) -> list[str]:
    """Return where the last planned micro-batch ends: an offset of each source, as JSON.

    Empty before the first. A start of the query goes on there.
    """
    last = _last_number(f"{checkpoint}/offsets")
    return [] if last < 0 else _sources(checkpoint, last)


def planned_offsets(checkpoint: str, batch_id: int) -> dict[str, dict[int, int]]:
    """Return by topic and partition where a micro-batch ends that is planned, or done.

    Spark writes it down before the micro-batch runs, and runs it again to the same end.
    Raises FileNotFoundError for one that is not planned. Source: Spark's OffsetSeqLog (text version
    1: a version line, a metadata line, then a line per source).
    """
    reached: dict[str, dict[int, int]] = {}
    for line in _sources(checkpoint, batch_id):
        for topic, ends in json.loads(line).items():
            if not isinstance(ends, dict):
                break  # not topics but files, or another source of the query
            places = reached.setdefault(topic, {})
            for partition, at in ends.items():
                # A topic that a query reads twice counts as far as the slower reader.
                places[int(partition)] = min(at, places.get(int(partition), at))
    return reached


def checkpoint_id(checkpoint: str) -> str:
    """Return the id that Spark gave to a checkpoint when it was new. Source: StreamMetadata."""
    with open(f"{checkpoint}/metadata", encoding="utf-8") as file:
        return str(json.load(file)["id"])


def _last_number(directory: str) -> int:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return -1
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _sources(checkpoint: str, batch_id: int) -> list[str]:
    with open(f"{checkpoint}/offsets/{batch_id}", encoding="utf-8") as file:
        return [line for line in file.read().splitlines()[2:] if line.startswith("{")]
