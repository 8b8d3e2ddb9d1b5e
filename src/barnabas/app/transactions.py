"""Puts together what transactions need: the coordinator, and the ways to other nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.base.clock import Clock
from barnabas.base.internal_topics import TRANSACTION_STATE
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.internal_topic import InternalTopic
from barnabas.node.coordinator.transaction.config import TransactionConfig
from barnabas.node.coordinator.transaction.marker_writer import MarkerWriter
from barnabas.node.coordinator.transaction.markers import MarkerSender
from barnabas.node.coordinator.transaction.service import AllocateProducerId, TransactionCoordinator
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.features import TRANSACTION_VERSION
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.replication.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class Transactions:
    """The parts, as handlers use them."""

    coordinator: TransactionCoordinator
    verifier: TransactionVerifier
    marker_writer: MarkerWriter


def make_transactions(
    config: NodeConfig,
    clock: Clock,
    peers: BrokerPeers,
    image: Callable[[], MetadataImage],
    replicas: ReplicaManager,
    groups: GroupCoordinator,
    allocate_producer_id: AllocateProducerId,
) -> Transactions:
    """The parts of one node."""
    timeout_ms = config.get_int("request.timeout.ms")
    marker_writer = MarkerWriter(clock, replicas, groups, timeout_ms=timeout_ms)
    coordinator = TransactionCoordinator(
        TransactionConfig.from_node(config),
        clock,
        InternalTopic(TRANSACTION_STATE, replicas, clock),
        MarkerSender(clock, peers, image, marker_writer.write),
        allocate_producer_id,
        lambda: image().features.get(TRANSACTION_VERSION, 0),
    )
    verifier = TransactionVerifier(clock, peers, image, coordinator)
    return Transactions(coordinator, verifier, marker_writer)
