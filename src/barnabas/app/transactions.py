"""Puts together what transactions need: the coordinator, and the ways to other nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.base.network import Network
from barnabas.coordinator.group.service import GroupCoordinator
from barnabas.coordinator.internal_topic import InternalTopic
from barnabas.coordinator.transaction.config import TransactionConfig
from barnabas.coordinator.transaction.marker_writer import MarkerWriter
from barnabas.coordinator.transaction.markers import MarkerSender
from barnabas.coordinator.transaction.service import (
    TRANSACTION_STATE,
    AllocateProducerId,
    TransactionCoordinator,
)
from barnabas.coordinator.transaction.verifier import TransactionVerifier
from barnabas.metadata.features import TRANSACTION_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.net.dialing import dialing_of
from barnabas.replication.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class Transactions:
    """The parts, as handlers use them."""

    coordinator: TransactionCoordinator
    verifier: TransactionVerifier
    marker_writer: MarkerWriter


def make_transactions(
    config: NodeConfig,
    clock: Clock,
    network: Network,
    image: Callable[[], MetadataImage],
    replicas: ReplicaManager,
    groups: GroupCoordinator,
    allocate_producer_id: AllocateProducerId,
    *,
    source: Random,
) -> Transactions:
    """The parts of one node."""
    timeout_ms, dialing = config.int("request.timeout.ms"), dialing_of(config, source)
    common = config.node_id, config.inter_broker_listener_name, clock, network, image
    marker_writer = MarkerWriter(clock, replicas, groups, timeout_ms=timeout_ms)
    coordinator = TransactionCoordinator(
        TransactionConfig.from_node(config),
        clock,
        InternalTopic(TRANSACTION_STATE, replicas, clock),
        MarkerSender(*common, marker_writer.write, request_timeout_ms=timeout_ms, dialing=dialing),
        allocate_producer_id,
        lambda: image().features.get(TRANSACTION_VERSION, 0),
    )
    verifier = TransactionVerifier(
        *common, coordinator, request_timeout_ms=timeout_ms, dialing=dialing
    )
    return Transactions(coordinator, verifier, marker_writer)
