"""Progress of queries: what Spark says of it, and what their checkpoints hold."""

from __future__ import annotations

import json
import os
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


def recent_progress(stream: StreamingQuery) -> list[dict[str, Any]]:
    """Return Spark's progress JSON of all micro-batches that it remembers, oldest first."""
    query = getattr(stream, "_jsq", None)
    if query is None:
        return list(stream.recentProgress)
    return [json.loads(progress.json()) for progress in query.recentProgress()]


def committed_offsets(checkpoint: str) -> dict[str, dict[int, int]]:
    """Return by topic and partition the end of a checkpoint's last committed micro-batch.

    Empty where there is none yet. The checkpoint is a local directory. Source: Spark's CommitLog.
    """
    try:
        committed = [int(name) for name in os.listdir(f"{checkpoint}/commits") if name.isdigit()]
    except FileNotFoundError:
        return {}
    return planned_offsets(checkpoint, max(committed)) if committed else {}


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
                break  # no topics but files, or whatever else a query reads besides
            places = reached.setdefault(topic, {})
            for partition, at in ends.items():
                # A topic that a query reads twice counts as far as the slower reader.
                places[int(partition)] = min(at, places.get(int(partition), at))
    return reached


def checkpoint_id(checkpoint: str) -> str:
    """Return the id that Spark gave to a checkpoint when it was new. Source: StreamMetadata."""
    with open(f"{checkpoint}/metadata", encoding="utf-8") as file:
        return str(json.load(file)["id"])


def _sources(checkpoint: str, batch_id: int) -> list[str]:
    with open(f"{checkpoint}/offsets/{batch_id}", encoding="utf-8") as file:
        return [line for line in file.read().splitlines()[2:] if line.startswith("{")]
