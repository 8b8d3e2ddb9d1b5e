"""The options for hosting queries on Spark, the same for all queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from barnabas.schemas.registry_client import RegistryTls
from barnabas.sql.spark.parcels import Note
from barnabas.sql.spark.results import (
    OnNotes,
)
from barnabas.sql.types import Value


class Guarantee(Enum):
    """ksqlDB's `processing.guarantee`."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once_v2"


def _ignore(_notes: Sequence[Note], _count: int) -> None:
    pass


@dataclass(frozen=True)
class SparkQueryOptions:
    """Options of hosting queries. `checkpoints`: the directory with one directory per query.

    `kafka`: further settings of the Kafka connector's consumers (`security.protocol`, …), without
    its prefix `kafka.`. `partitions`: of state; None: as many as the topic with the most has.
    """

    bootstrap_servers: str
    checkpoints: str
    registry_urls: tuple[str, ...] = ()
    registry_user_info: str | None = None
    registry_tls: RegistryTls | None = None
    auto_offset_reset: str = "latest"
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    properties: Mapping[str, Value] = field(default_factory=dict)
    kafka: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, Any] = field(default_factory=dict)
    """The same for librdkafka's clients, which write results."""
    partitions: int | None = None
    emits_every_change: bool = False
    trigger_ms: int = 100
    """No micro-batch begins sooner after the last one began, and in one that lasts no round."""
    commit_interval_ms: int = 2_000
    """At least once, the length of a micro-batch of queries that share a stream."""
    records_per_batch_max: int = 200_000
    """Of each source: what a query that catches up takes at once."""
    extension_directory: str | None = None
    """Where functions of users are: on every machine of Spark's, as workers load them too."""
    marks_results: bool = False
    """Exactly once, headers of each result say which micro-batch it is of."""
    tasks_max: int | None = None
    """How many tasks share the partitions of a stage; None: as many as Spark has cores."""
    is_shared: bool = False
    """New queries share a stream, where that can be done."""
    reads_in_workers: bool = True
    """Workers fetch batches as columns; else Spark's source reads records."""
    service_id: str = ""
    """Begins the transactional ids of exactly-once queries."""
    on_notes: OnNotes = _ignore

    def checkpoint_of(self, query_id: str) -> str:
        """The directory of a query's checkpoint."""
        return os.path.join(self.checkpoints, query_id)
