"""The data that a worker needs to run a plan, in a module with few imports: see processor.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.schemas.registry_client import RegistryTls
    from barnabas.sql.types import Value

COLUMNS_FROM = 50
"""Fewer records are quicker one by one."""


@dataclass(frozen=True)
class Hosting:
    """All that a worker needs to run a plan; small, and pickled with each task.

    `plan`: as `encode_plan` gives it. `tasks`: how many tasks share the partitions.
    `emits_every_change`: a table's result has each change, else the last of each key and batch.
    """

    query_id: str
    plan: str
    partitions: int
    tasks: int
    properties: tuple[tuple[str, Value], ...] = field(default=(), repr=False)
    registry_urls: tuple[str, ...] = ()
    registry_user_info: str | None = field(default=None, repr=False)
    is_copartitioned: bool = True
    """True if all topics have as many partitions, each key in the same one."""
    emits_every_change: bool = False
    state_name: str = ""
    """Names this query's state among all that a worker process has seen."""
    extension_directory: str | None = None
    """The directory of users' functions, on every machine."""
    sink_servers: str | None = None
    """The cluster that tasks write results to; None where results go to the driver."""
    sink_partitions: int = 1
    registry_tls: RegistryTls | None = None
    clients: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """librdkafka's login settings for tasks that write results."""
    columns_from: int | None = COLUMNS_FROM
    """Batches of at least so many records run as columns where they can; None: none do."""


@dataclass(frozen=True)
class RangeReading:
    """The access that workers read ranges with. Small: it is pickled with each task.

    `clients`: settings of librdkafka's.
    """

    bootstrap_servers: str
    clients: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    is_committed_only: bool = False


@dataclass(frozen=True)
class SharedResults:
    """How the queries of a shared stream write exactly once, in transactions of one sink.

    `sink`: its name among all of the cluster. `service_id`: begins the names of queries.
    `marks_all`: as of `ExactlyOnce`.
    """

    sink: str
    service_id: str = ""
    marks_all: bool = False
