"""Services that handlers use: the rooms below, assembled once per node."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.clock import Clock
from barnabas.node.broker.apis.streams_topics import StreamsTopics
from barnabas.node.broker.client_telemetry import ClientTelemetry
from barnabas.node.broker.fetch.sessions import FetchSessionCache
from barnabas.node.broker.produce.decompression import Decompression
from barnabas.node.broker.recently_fenced import RecentlyFencedBrokers
from barnabas.node.broker.schemas.known_schemas import KnownSchemas
from barnabas.node.broker.throttling import Throttling
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.share_group_service import ShareGroupService
from barnabas.node.coordinator.share.state import Persister
from barnabas.node.coordinator.transaction.marker_writer import MarkerWriter
from barnabas.node.coordinator.transaction.service import TransactionCoordinator
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.broker_lifecycle import RegistrationError
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.node.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.node.share.partitions import SharePartitions
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode

VERIFICATION_KEY = "transaction.partition.verification.enable"

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class BrokerServices:
    """One per node; handlers get it with every request."""

    config: NodeConfig
    clock: Clock
    random: random.Random
    node_id: int
    cluster_id: str
    metadata: MetadataNode
    replicas: ReplicaManager
    logs: LogManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: TransactionVerifier
    marker_writer: MarkerWriter
    shares: ShareCoordinator
    persister: Persister
    share_groups: ShareGroupService
    share_partitions: SharePartitions
    recently_fenced: RecentlyFencedBrokers
    fetch_sessions: FetchSessionCache
    schemas: KnownSchemas
    fetch_max_bytes: int
    in_background: Callable[[Coroutine[Any, Any, None]], None]
    """Runs what nobody waits for beside everything else; the node's end cancels what is left."""
    verifies_transactions: bool = True
    """True if a transaction must be known to its coordinator before it is written (KIP-890)."""
    authorizer: Authorizer = ALLOW_ALL
    """Decides whether the sender of a request may do what it asks."""
    client_telemetry: ClientTelemetry | None = None
    """Metrics that clients push; None if the node shows no metrics."""
    throttling: Throttling | None = None
    """Set while any client has a quota."""
    served_apis: set[ApiKey] = field(default_factory=set)
    streams_topics: StreamsTopics = field(default_factory=StreamsTopics)
    decompression: Decompression = field(default_factory=Decompression)
    _tasks: set["asyncio.Future[None]"] = field(default_factory=set)

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Future[None]":
        """Run `work`, which answers a request; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Wait for what was started; everything that it waits for must have been closed before."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.client_telemetry is not None:
            self.client_telemetry.close()

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""
        return self.metadata.image

    def configure(self, config: NodeConfig) -> None:
        """Follow `VERIFICATION_KEY`."""
        self.verifies_transactions = config.get_bool(VERIFICATION_KEY)

    async def allocate_producer_id(self) -> int | ErrorCode:
        """A producer id that was never given before, or why none is available."""
        try:
            return await self.metadata.allocate_producer_id()
        except RegistrationError as failure:
            telemetry.warning("cannot allocate producer ids: %s", failure)
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
