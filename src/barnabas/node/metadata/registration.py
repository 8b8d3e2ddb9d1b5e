"""The requests by which a node makes itself known to the controller, its own included."""

from collections.abc import Mapping, Sequence

from barnabas.base.ids import Uuid
from barnabas.node.metadata.image import Endpoint, LeaderRecoveryState, MetadataImage
from barnabas.node.metadata.merging import write_listeners, write_ranges
from barnabas.protocol.features import SUPPORTED_FEATURES
from barnabas.protocol.messages import nodes
from barnabas.protocol.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    BrokerState,
)


def broker_registration(
    *,
    broker_id: int,
    cluster_id: str,
    incarnation_id: Uuid,
    listeners: Mapping[str, Endpoint],
    rack: str | None,
    log_dirs: list[Uuid],
    previous_broker_epoch: int,
) -> nodes.BrokerRegistrationRequest:
    """A broker's registration, with every feature level that this release can run."""
    return nodes.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=write_listeners(nodes.Listener, listeners),
        features=write_ranges(nodes.Feature, SUPPORTED_FEATURES),
        rack=rack,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
    )


def controller_registration(
    *, controller_id: int, incarnation_id: Uuid, listeners: Mapping[str, Endpoint]
) -> nodes.ControllerRegistrationRequest:
    """A controller's registration, with every feature level that this release can run."""
    return nodes.ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=write_listeners(nodes.Listener, listeners),
        features=write_ranges(nodes.Feature, SUPPORTED_FEATURES),
    )


def recovery_report(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> AlterPartitionRequest | None:
    """A leader's report that it has recovered from unclean elections; None if it had none.

    A leader that was elected without being known to hold everything has nothing to recover from
    but its own log, and that was done when the node started (KIP-704).
    """
    topics = []
    for topic in image.topics.by_id.values():
        recovering = [
            AlterPartitionRequestPartitionData(
                partition_index=index,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in partition.isr],
                leader_recovery_state=LeaderRecoveryState.RECOVERED,
            )
            for index, partition in topic.partitions.items()
            if partition.leader == broker_id
            and partition.leader_recovery_state == LeaderRecoveryState.RECOVERING
        ]
        if recovering:
            topics.append(AlterPartitionRequestTopicData(topic_id=topic.id, partitions=recovering))
    if not topics:
        return None
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)


def directory_assignment(
    broker_id: int, broker_epoch: int, placed: Mapping[Uuid, Mapping[Uuid, Sequence[int]]]
) -> AssignReplicasToDirsRequest:
    """The request that assigns replicas to directories: partitions by topic id by directory id
    (KIP-858).
    """
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id,
                        partitions=[
                            AssignReplicasToDirsRequestPartitionData(partition_index=index)
                            for index in indexes
                        ],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory, topics in placed.items()
        ],
    )
