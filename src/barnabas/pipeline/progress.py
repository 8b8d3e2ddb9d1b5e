"""Progress of queries: a file for programs, consumer groups for every Kafka tool.

Spark keeps its offsets in its checkpoint and commits none to Kafka. After each micro-batch they are
committed to the query's group too, so that lag is seen where people look for it; nothing reads them
back. Queries that share a group count as far as the slowest of them.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql.streaming.query import StreamingQuery


@dataclass(slots=True)
class QueryReach:
    """What one query has processed."""

    group: str
    topic: str
    offsets: dict[int, int] = field(default_factory=dict)
    """By partition: the next offset to read."""
    batches: int = 0
    rows: int = 0
    dropped_late: int = 0
    last_batch_id: int = -1

    def observe(self, progress: dict[str, Any]) -> bool:
        """Take in Spark's progress JSON of a micro-batch; returns whether it was a new one."""
        batch_id = progress["batchId"]
        rows = progress["numInputRows"]
        if batch_id <= self.last_batch_id or not rows:
            return False
        self.last_batch_id = batch_id
        self.batches += 1
        self.rows += rows
        self.dropped_late += sum(o["numRowsDroppedByWatermark"] for o in progress["stateOperators"])
        self.reach(progress["sources"][0]["endOffset"])
        return True

    def reach(self, end_offset: Any) -> None:
        """Take in a Kafka source's offsets, as JSON text or decoded: {topic: {partition: next}}."""
        decoded = json.loads(end_offset) if isinstance(end_offset, str) else end_offset
        self.offsets = {int(p): offset for p, offset in decoded[self.topic].items()}


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


def committed_offsets(checkpoint: str) -> str | None:
    """Return the offsets of the last committed micro-batch of a local checkpoint directory.

    None where there is none yet. Source: Spark's CommitLog and OffsetSeqLog (text version 1: a
    version line, a metadata line, then a line per source).
    """
    try:
        committed = [int(name) for name in os.listdir(f"{checkpoint}/commits") if name.isdigit()]
    except FileNotFoundError:
        return None
    if not committed:
        return None
    return _end_offsets(checkpoint, max(committed))


def planned_offsets(checkpoint: str, batch_id: int) -> dict[str, dict[int, int]]:
    """Return by topic and partition where a micro-batch ends that is planned, or done.

    Spark writes it down before the micro-batch runs, and runs it again to the same end.
    Raises FileNotFoundError for one that is not planned.
    """
    reached: dict[str, dict[int, int]] = {}
    for line in _sources(checkpoint, batch_id):
        for topic, ends in json.loads(line).items():
            places = reached.setdefault(topic, {})
            for partition, at in ends.items():
                # A topic that a query reads twice counts as far as the slower reader.
                places[int(partition)] = min(at, places.get(int(partition), at))
    return reached


def checkpoint_id(checkpoint: str) -> str:
    """Return the id that Spark gave to a checkpoint when it was new. Source: StreamMetadata."""
    with open(f"{checkpoint}/metadata", encoding="utf-8") as file:
        return str(json.load(file)["id"])


def _end_offsets(checkpoint: str, batch_id: int) -> str | None:
    return next(iter(_sources(checkpoint, batch_id)), None)


def _sources(checkpoint: str, batch_id: int) -> list[str]:
    with open(f"{checkpoint}/offsets/{batch_id}", encoding="utf-8") as file:
        return [line for line in file.read().splitlines()[2:] if line.startswith("{")]


class ProgressBoard:
    """Holds every query's reach; writes the file and commits to the groups when it changes."""

    def __init__(self, path: str, bootstrap_servers: str, queries: dict[str, QueryReach]) -> None:
        self._path = path
        self._bootstrap_servers = bootstrap_servers
        self.queries = queries
        self._committers: dict[str, Consumer] = {}
        self._committed: dict[str, dict[int, int]] = {}

    def write(self, state: str) -> None:
        """Replace the progress file atomically."""
        content = {
            "state": state,
            "updated_ms": time.time_ns() // 1_000_000,
            "queries": {
                name: {
                    "group": reach.group,
                    "topic": reach.topic,
                    "offsets": {str(p): offset for p, offset in sorted(reach.offsets.items())},
                    "batches": reach.batches,
                    "rows": reach.rows,
                    "dropped_late": reach.dropped_late,
                }
                for name, reach in self.queries.items()
            },
        }
        partial = f"{self._path}.partial"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(partial, self._path)

    def commit(self) -> list[str]:
        """Commit to the groups what all their queries have processed.

        Returns a line per group that could not be committed: a commit is for onlookers, so the
        pipeline goes on and tries again with the next micro-batch.
        """
        problems = []
        for group, (topic, offsets) in group_offsets(self.queries).items():
            if not offsets or self._committed.get(group) == offsets:
                continue
            try:
                self._committer(group).commit(
                    offsets=[TopicPartition(topic, p, offset) for p, offset in offsets.items()],
                    asynchronous=False,
                )
                self._committed[group] = offsets
            except KafkaException as error:
                problems.append(f"offsets of {group} not committed: {error.args[0].str()}")
        return problems

    def close(self) -> None:
        """Close the connections."""
        for consumer in self._committers.values():
            consumer.close()
        self._committers.clear()

    def _committer(self, group: str) -> Consumer:
        if group not in self._committers:
            self._committers[group] = Consumer(
                {
                    "bootstrap.servers": self._bootstrap_servers,
                    "group.id": group,
                    "client.id": "barnabas-pipeline",
                    "enable.auto.commit": False,
                    "log_level": 2,
                }
            )
        return self._committers[group]


def group_offsets(queries: dict[str, QueryReach]) -> dict[str, tuple[str, dict[int, int]]]:
    """Return by group its topic and, by partition, how far all of the group's queries are."""
    groups: dict[str, tuple[str, dict[int, int]]] = {}
    for reach in queries.values():
        if reach.group not in groups:
            groups[reach.group] = (reach.topic, dict(reach.offsets))
            continue
        slowest = groups[reach.group][1]
        for partition in list(slowest):
            if partition in reach.offsets:
                slowest[partition] = min(slowest[partition], reach.offsets[partition])
            else:
                del slowest[partition]
    return groups
