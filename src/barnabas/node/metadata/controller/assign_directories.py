"""AssignReplicasToDirs (API 73, version 0; KIP-858): a broker says where it keeps its replicas.

The controller needs to know, to move leaderships when one of a broker's directories fails.
"""

from barnabas.base.ids import Uuid
from barnabas.node.metadata.controller.brokers import check_broker_epoch
from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.controller.leadership import (
    Located,
    leader_and_isr_records,
    partition_change,
)
from barnabas.node.metadata.merging import merge_partition_change
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Decide each replica of the request."""
    if not state.image.metadata_version.has_directories:
        return Decision(AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    failure = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    if failure is not None:
        return Decision(AssignReplicasToDirsResponse(error_code=failure.code))
    decision = Decision(AssignReplicasToDirsResponse(), is_atomic=False)
    for directory in request.directories:
        answer = AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        for topic in directory.topics:
            answer.topics.append(
                AssignReplicasToDirsResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AssignReplicasToDirsResponsePartitionData(
                            partition_index=partition.partition_index,
                            error_code=_assign(
                                state,
                                request.broker_id,
                                directory.id,
                                (topic.topic_id, partition.partition_index),
                                decision.records,
                            ),
                        )
                        for partition in topic.partitions
                    ],
                )
            )
        decision.response.directories.append(answer)
    return decision


def _assign(
    state: ControllerState,
    broker_id: int,
    directory: Uuid,
    key: tuple[Uuid, int],
    records: list[MetadataRecord],
) -> ErrorCode:
    topic = state.image.topics.by_id.get(key[0])
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(key[1])
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    located = Located(topic, key[1], partition)
    change = partition_change(state, located)
    change.directories = {broker_id: directory}
    record = change.record()
    if record is not None:
        records.append(record)
        located = located._replace(partition=merge_partition_change(partition, record.message))
    if directory not in state.image.brokers[broker_id].log_dirs:
        # Chosen just before it failed: nobody can lead from there.
        records += leader_and_isr_records(state, [located], leaving=broker_id)
    return ErrorCode.NONE
