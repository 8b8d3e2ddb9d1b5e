"""AlterPartition (API 56, versions 2-3; KIP-497, 704, 841, 903): a leader proposes an ISR.

Only the leader of the current epoch is heard, only live replicas of the partition may be in
sync, and a leader that recovers from an unclean election is alone until it says that it has.
"""

from barnabas.node.metadata.controller.brokers import check_broker_epoch
from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.controller.leadership import Located, partition_change
from barnabas.node.metadata.image import LeaderRecoveryState, PartitionImage, TopicImage
from barnabas.node.metadata.merging import LEADER_UNCHANGED, merge_partition_change
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)


def alter_partition(
    state: ControllerState, request: AlterPartitionRequest
) -> Decision[AlterPartitionResponse]:
    """Decide each partition of the request."""
    failure = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    if failure is not None:
        return Decision(AlterPartitionResponse(error_code=failure.code))
    decision = Decision(AlterPartitionResponse(), is_atomic=False)
    for topic in request.topics:
        image = state.image.topics.by_id.get(topic.topic_id)
        answer = AlterPartitionResponseTopicData(topic_id=topic.topic_id)
        for proposal in topic.partitions:
            if image is None:
                answer.partitions.append(_error(proposal, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                answer.partitions.append(
                    _decide(state, request.broker_id, image, proposal, decision)
                )
        decision.response.topics.append(answer)
    return decision


def _decide(
    state: ControllerState,
    broker_id: int,
    topic: TopicImage,
    proposal: AlterPartitionRequestPartitionData,
    decision: Decision[AlterPartitionResponse],
) -> AlterPartitionResponsePartitionData:
    partition = topic.partitions.get(proposal.partition_index)
    if partition is None:
        return _error(proposal, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = proposal.new_isr_with_epochs or [
        BrokerState(broker_id=replica) for replica in proposal.new_isr
    ]
    error = _check(state, broker_id, partition, proposal, isr)
    if error is not ErrorCode.NONE:
        return _error(proposal, error)
    change = partition_change(state, Located(topic, proposal.partition_index, partition))
    change.isr = tuple(replica.broker_id for replica in isr)
    change.leader_recovery_state = proposal.leader_recovery_state
    record = change.record()
    if record is not None:
        decision.records.append(record)
        partition = merge_partition_change(partition, record.message)
        if record.message.leader not in (broker_id, LEADER_UNCHANGED):
            # The end of a reassignment: who asked no longer leads, and must look again.
            return _error(proposal, ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionResponsePartitionData(
        partition_index=proposal.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check(
    state: ControllerState,
    broker_id: int,
    partition: PartitionImage,
    proposal: AlterPartitionRequestPartitionData,
    isr: list[BrokerState],
) -> ErrorCode:
    if (
        proposal.leader_epoch > partition.leader_epoch
        or proposal.partition_epoch > partition.partition_epoch
    ):
        # The broker knows more than this controller, which then is one of yesterday.
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [replica.broker_id for replica in isr]
    recovering = proposal.leader_recovery_state == LeaderRecoveryState.RECOVERING
    if (
        partition.leader not in members
        or len(set(members)) != len(members)
        or not set(members) <= set(partition.replicas)
        or (recovering and len(members) > 1)
        or (recovering and partition.leader_recovery_state == LeaderRecoveryState.RECOVERED)
    ):
        return ErrorCode.INVALID_REQUEST
    for member in isr:
        broker = state.image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active or member.broker_epoch not in (-1, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _error(
    proposal: AlterPartitionRequestPartitionData, code: ErrorCode
) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(
        partition_index=proposal.partition_index, error_code=code
    )
