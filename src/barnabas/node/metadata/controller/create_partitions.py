"""CreatePartitions (API 37, versions 0-3; KIP-195)."""

from collections import Counter

from barnabas.node.metadata.controller.assignment import (
    check_manual_assignment,
    manual_partition,
    placed_partitions,
)
from barnabas.node.metadata.controller.decision import (
    QUOTA_EXCEEDED,
    RECORDS_PER_REQUEST_MAX,
    ControllerState,
    Decision,
    Failure,
)
from barnabas.node.metadata.image import PartitionImage, TopicImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.snapshot import partition_record
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(
    state: ControllerState, request: CreatePartitionsRequest
) -> Decision[CreatePartitionsResponse]:
    """Decide each topic of the request; those that can grow do."""
    decision = Decision(CreatePartitionsResponse())
    times_named = Counter(topic.name for topic in request.topics)
    for topic in request.topics:
        times = times_named.pop(topic.name, 0)
        if times == 0:
            continue
        room = RECORDS_PER_REQUEST_MAX - len(decision.records)
        records = _grow(state, topic, times, room)
        result = CreatePartitionsTopicResult(name=topic.name, error_message=None)
        if isinstance(records, Failure):
            result.error_code, result.error_message = records
        else:
            decision.records += records
        decision.response.results.append(result)
    if request.validate_only:
        decision.records.clear()
    return decision


def _grow(
    state: ControllerState, topic: CreatePartitionsTopic, times_named: int, room: int
) -> list[MetadataRecord] | Failure:
    if times_named > 1:
        return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    image = state.image.topics.by_name.get(topic.name)
    if image is None:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    failure = _check_count(image, topic, room)
    if failure is not None:
        return failure
    if not state.mutations.spend(topic.count - len(image.partitions)):
        return QUOTA_EXCEEDED
    start = len(image.partitions)
    factor = len(image.partitions[0].replicas)
    partitions: list[PartitionImage] | Failure
    if topic.assignments is not None:
        partitions = _assigned(state, topic.assignments, start, factor)
    else:
        partitions = placed_partitions(topic.count - start, factor, state)
    if isinstance(partitions, Failure):
        return partitions
    level = state.image.metadata_version
    return [
        partition_record(image.id, number, partition, level)
        for number, partition in enumerate(partitions, start)
    ]


def _check_count(image: TopicImage, topic: CreatePartitionsTopic, room: int) -> Failure | None:
    current = len(image.partitions)
    if topic.count == current:
        return Failure(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if topic.count < current:
        return Failure(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); "
            f"{topic.count} would not be an increase.",
        )
    additional = topic.count - current
    if additional > room:
        return Failure(
            ErrorCode.POLICY_VIOLATION,
            f"The request would lead to more than {RECORDS_PER_REQUEST_MAX} metadata records; "
            "split it.",
        )
    if topic.assignments is not None and len(topic.assignments) != additional:
        return Failure(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(topic.assignments)} assignment(s) were specified.",
        )
    return None


def _assigned(
    state: ControllerState, assignments: list[CreatePartitionsAssignment], start: int, factor: int
) -> list[PartitionImage] | Failure:
    partitions = []
    for number, assignment in enumerate(assignments, start):
        failure = check_manual_assignment(assignment.broker_ids, state, factor)
        partition = failure or manual_partition(assignment.broker_ids, number, state)
        if isinstance(partition, Failure):
            return partition
        partitions.append(partition)
    return partitions
