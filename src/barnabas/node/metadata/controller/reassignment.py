"""AlterPartitionReassignments (API 45, versions 0-1; KIP-455, KIP-860) and
ListPartitionReassignments (46, version 0): replicas move to other brokers.

A reassignment first adds the new replicas beside the old. Once every replica that is to stay is
in sync, which the leader says with AlterPartition, the others are dropped in the same record
(partition_change.py). If nothing must be copied, it completes at once. A new target replaces one
under way; no target at all cancels it, and the replicas are again those from before.
Unlike Apache Kafka, a replica is not added on a broker that is fenced or shutting down, since
it could not be copied; and a second target is held against what the first began with, so that
it is reached exactly and can still be cancelled whole.
Source: Kafka's ReplicationControlManager, PartitionReassignmentReplicas and -Revert.
"""

from collections.abc import Iterable

from barnabas.base.ids import Uuid
from barnabas.node.metadata.controller.assignment import check_manual_assignment
from barnabas.node.metadata.controller.decision import (
    RECORDS_PER_REQUEST_MAX,
    ControllerState,
    Decision,
    Failure,
)
from barnabas.node.metadata.controller.leadership import ChangeRules, Located
from barnabas.node.metadata.controller.partition_change import Election, PartitionChange
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.image import PartitionImage, TopicImage
from barnabas.node.metadata.merging import merge_partition_change
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Decide each partition of the request; those that can be reassigned are."""
    decision = Decision(
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
        )
    )
    reassigner = _Reassigner(state, decision, request.allow_replication_factor_change)
    for topic in request.topics:
        answer = ReassignableTopicResponse(name=topic.name)
        for wanted in topic.partitions:
            failure = reassigner.reassign(topic.name, wanted)
            answer.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=wanted.partition_index,
                    error_code=ErrorCode.NONE if failure is None else failure.code,
                    error_message=None
                    if failure is None
                    else failure.message or failure.code.message,
                )
            )
        decision.response.responses.append(answer)
    if len(decision.records) > RECORDS_PER_REQUEST_MAX:
        return _too_many(request)
    return decision


class _Reassigner:
    """One request's decisions; a partition that is named twice is changed twice, in order."""

    def __init__(
        self,
        state: ControllerState,
        decision: Decision[AlterPartitionReassignmentsResponse],
        allow_replication_factor_change: bool,
    ) -> None:
        self._state = state
        self._decision = decision
        self._allow_replication_factor_change = allow_replication_factor_change
        self._rules = ChangeRules(state)
        self._changed: dict[tuple[Uuid, int], PartitionImage] = {}

    def reassign(self, topic: str, wanted: ReassignablePartition) -> Failure | None:
        """Decide one partition; returns why not, or None if its record is in the decision."""
        image = self._state.image.topics.by_name.get(topic)
        if image is None:
            return Failure(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
            )
        key = (image.id, wanted.partition_index)
        partition = self._changed.get(key) or image.partitions.get(wanted.partition_index)
        if partition is None:
            return Failure(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"Unable to find partition {topic}:{wanted.partition_index}.",
            )
        located = Located(image, wanted.partition_index, partition)
        change = (
            self._cancellation(located)
            if wanted.replicas is None
            else self._move(located, wanted.replicas)
        )
        if isinstance(change, Failure):
            return change
        record = change.record()
        if record is not None:
            self._decision.records.append(record)
            self._changed[key] = merge_partition_change(partition, record.message)
        return None

    def _move(self, located: Located, target: list[int]) -> PartitionChange | Failure:
        partition = located.partition
        failure = (
            check_manual_assignment(target, self._state, None)
            or self._check_live(partition, target)
            or self._check_replication_factor(partition, target)
        )
        if failure is not None:
            return failure
        # Replicas that another reassignment was about to add are of no use any more, unless
        # nobody else is in sync.
        abandoned = set(partition.adding) - set(target)
        isr = tuple(member for member in partition.isr if member not in abandoned)
        if not isr:
            isr, abandoned = partition.isr, set()
        removing = sorted(set(partition.replicas) - set(target) - abandoned)
        change = self._rules.change(located)
        change.election = Election.ONLINE
        change.isr = isr
        change.replicas = (*target, *removing)
        change.removing = tuple(removing)
        change.adding = tuple(sorted(set(target) - set(_original_replicas(partition))))
        return change

    def _check_live(self, partition: PartitionImage, target: list[int]) -> Failure | None:
        for broker_id in target:
            broker = self._state.image.brokers[broker_id]
            if not broker.is_active and broker_id not in partition.replicas:
                what = "fenced" if broker.fenced else "shutting down"
                return Failure(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {broker_id}, which is {what} "
                    "and could not copy the partition. Start it first, or name another broker.",
                )
        return None

    def _check_replication_factor(
        self, partition: PartitionImage, target: list[int]
    ) -> Failure | None:
        """KIP-860. A reassignment under way counts with the number of replicas it leads to."""
        current = len(set(partition.replicas) - set(partition.removing))
        if self._allow_replication_factor_change or len(target) == current:
            return None
        return Failure(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {len(target)}",
        )

    def _cancellation(self, located: Located) -> PartitionChange | Failure:
        topic, number, partition = located
        if not (partition.adding or partition.removing):
            return Failure(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        change = self._rules.change(located)
        change.replicas = _original_replicas(partition)
        change.removing = change.adding = ()
        change.isr = tuple(replica for replica in partition.isr if replica in change.replicas)
        if change.isr:
            return change
        # Only replicas that are to go hold everything.
        if change.election is not Election.UNCLEAN:
            return Failure(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{number} because it "
                "would require an unclean leader election.",
            )
        if not any(map(change.is_acceptable_leader, change.replicas)):
            change.isr = change.replicas[:1]
        return change


def _original_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas that the partition had before it was reassigned."""
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def _too_many(
    request: AlterPartitionReassignmentsRequest,
) -> Decision[AlterPartitionReassignmentsResponse]:
    message = (
        f"More than {RECORDS_PER_REQUEST_MAX} partitions would be reassigned; split the request."
    )
    return Decision(refuse(request, ErrorCode.POLICY_VIOLATION, message))


def list_partition_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest
) -> Decision[ListPartitionReassignmentsResponse]:
    """List the reassignments under way: all of them, or those that the request names.

    A partition that is named repeatedly is described once.
    """
    response = ListPartitionReassignmentsResponse(error_message=None)
    topics = state.image.topics
    wanted: list[tuple[TopicImage, Iterable[int]]] = []
    if request.topics is None:
        by_topic: dict[Uuid, list[int]] = {}
        for topic_id, number in topics.index.reassigning:
            by_topic.setdefault(topic_id, []).append(number)
        wanted += [(topics.by_id[topic_id], numbers) for topic_id, numbers in by_topic.items()]
    else:
        asked: dict[str, dict[int, None]] = {}
        for topic in request.topics:
            asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        wanted += [
            (topics.by_name[name], numbers)
            for name, numbers in asked.items()
            if name in topics.by_name
        ]
    for image, numbers in wanted:
        ongoing = [
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for number in numbers
            if (partition := image.partitions.get(number)) is not None
            and (partition.adding or partition.removing)
        ]
        if ongoing:
            response.topics.append(OngoingTopicReassignment(name=image.name, partitions=ongoing))
    return Decision(response)
