"""Topics: created, deleted, given more partitions.

CreateTopics (API 19, versions 2-7; KIP-464 defaults, KIP-525 configs in the response).

Left out: create.topic.policy.class.name (Java classes).
"""

from collections import Counter

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.config_view import topic_entries
from barnabas.node.metadata.controller.assignment import (
    check_manual_assignment,
    manual_partition,
    placed_partitions,
)
from barnabas.node.metadata.controller.config_changes import Resource, changed_config_records
from barnabas.node.metadata.controller.config_rules import check_config_values
from barnabas.node.metadata.controller.decision import (
    QUOTA_EXCEEDED,
    RECORDS_PER_REQUEST_MAX,
    ControllerState,
    Decision,
    Failure,
)
from barnabas.node.metadata.ids import random_uuid
from barnabas.node.metadata.image import ConfigResourceType, PartitionImage, TopicImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.snapshot import partition_record
from barnabas.node.metadata.topic_names import invalid_topic_name_reason, metric_form
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import RemoveTopicRecord, TopicRecord
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.well_known import CLUSTER_METADATA

Views = dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]]


def create_topics(
    state: ControllerState, request: CreateTopicsRequest
) -> Decision[CreateTopicsResponse]:
    """Decide each topic of the request; the topics that can be created are."""
    decision = Decision(CreateTopicsResponse())
    times_named = Counter(topic.name for topic in request.topics)
    taken: dict[str, str] = {}
    views: Views = {}
    for topic in request.topics:
        failure = _check_name(topic.name, times_named[topic.name], taken, state)
        created = failure or _create_topic(state, topic, views)
        if isinstance(created, Failure):
            result = CreatableTopicResult(
                name=topic.name, error_code=created.code, error_message=created.message
            )
        else:
            result, records = created
            taken[metric_form(topic.name)] = topic.name
            if len(decision.records) + len(records) > RECORDS_PER_REQUEST_MAX:
                return _too_many(request)
            decision.records += records
        if times_named.pop(topic.name, 0):
            decision.response.topics.append(result)
    if request.validate_only:
        decision.records.clear()
    return decision


def _check_name(
    name: str, times_named: int, taken: dict[str, str], state: ControllerState
) -> Failure | None:
    if times_named != 1:
        return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == CLUSTER_METADATA:
        return Failure(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if name in state.image.topics.by_name:
        return Failure(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    reason = invalid_topic_name_reason(name)
    if reason is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    other = taken.get(metric_form(name)) or state.image.topics.index.name_like(name)
    if other is not None:
        return Failure(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )
    return None


def _create_topic(
    state: ControllerState, topic: CreatableTopic, views: Views
) -> tuple[CreatableTopicResult, list[MetadataRecord]] | Failure:
    configs = _topic_configs(topic)
    if isinstance(configs, Failure):
        return configs
    failure = check_config_values(state, ConfigResourceType.TOPIC, topic.name, configs)
    if failure is not None:
        return failure
    partitions = _assigned(state, topic) if topic.assignments else _placed(state, topic)
    if isinstance(partitions, Failure):
        return partitions
    if not state.mutations.spend(len(partitions)):
        return QUOTA_EXCEEDED
    topic_id = random_uuid(state.random)
    level = state.image.metadata_version
    records = [
        MetadataRecord(TopicRecord(name=topic.name, topic_id=topic_id)),
        *changed_config_records(state, Resource(ConfigResourceType.TOPIC, topic.name), configs),
        *(
            partition_record(topic_id, number, partition, level)
            for number, partition in enumerate(partitions)
        ),
    ]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=_view(state, configs, views),
    )
    return result, records


def _view(
    state: ControllerState, configs: dict[str, str], views: Views
) -> list[CreatableTopicConfigs]:
    """All configurations of a topic, as the response lists them; equal topics share the list."""
    key = tuple(sorted(configs.items()))
    if key not in views:
        views[key] = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in topic_entries(state.effective, state.image.configs, configs)
        ]
    return views[key]


def _topic_configs(topic: CreatableTopic) -> dict[str, str] | Failure:
    configs: dict[str, str] = {}
    without_value = []
    for config in topic.configs:
        if config.value is None:
            without_value.append(config.name)
        else:
            configs[config.name] = config.value
    if without_value:
        return Failure(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(without_value)}",
        )
    return configs


def _placed(state: ControllerState, topic: CreatableTopic) -> list[PartitionImage] | Failure:
    factor, count = topic.replication_factor, topic.num_partitions
    if factor < -1 or factor == 0:
        return Failure(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        return Failure(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if factor == -1:
        factor = state.config.get_int("default.replication.factor")
    if count == -1:
        count = state.config.get_int("num.partitions")
    if count > RECORDS_PER_REQUEST_MAX:
        return _too_many_records()
    return placed_partitions(count, factor, state)


def _assigned(state: ControllerState, topic: CreatableTopic) -> list[PartitionImage] | Failure:
    if topic.replication_factor != -1 or topic.num_partitions != -1:
        what = "replication factor" if topic.replication_factor != -1 else "numPartitions"
        return Failure(
            ErrorCode.INVALID_REQUEST,
            f"A manual partition assignment was specified, but {what} was not set to -1.",
        )
    partitions: dict[int, PartitionImage] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        partition = _assigned_partition(state, assignment, partitions, factor)
        if isinstance(partition, Failure):
            return partition
        partitions[assignment.partition_index] = partition
        factor = len(assignment.broker_ids)
    if sorted(partitions) != list(range(len(partitions))):
        return Failure(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [partition for _, partition in sorted(partitions.items())]


def _assigned_partition(
    state: ControllerState,
    assignment: CreatableReplicaAssignment,
    earlier: dict[int, PartitionImage],
    factor: int | None,
) -> PartitionImage | Failure:
    if assignment.partition_index in earlier:
        return Failure(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition "
            f"{assignment.partition_index}",
        )
    failure = check_manual_assignment(assignment.broker_ids, state, factor)
    return failure or manual_partition(assignment.broker_ids, assignment.partition_index, state)


def _too_many_records() -> Failure:
    return Failure(
        ErrorCode.POLICY_VIOLATION,
        f"The request would lead to more than {RECORDS_PER_REQUEST_MAX} metadata records; "
        "split it.",
    )


def _too_many(request: CreateTopicsRequest) -> Decision[CreateTopicsResponse]:
    code, message = _too_many_records()
    return Decision(
        CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=name, error_code=code, error_message=message)
                for name in dict.fromkeys(topic.name for topic in request.topics)
            ]
        )
    )


# -- DeleteTopics (API 20, versions 1-6; by id since KIP-516)


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest
) -> Decision[DeleteTopicsResponse]:
    """Decide each topic of the request; those that exist and are named once go."""
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + list(request.topics)
    disabled = not state.config.get_bool("delete.topic.enable")
    times_named = Counter((topic.name, topic.topic_id) for topic in wanted)
    decision = Decision(DeleteTopicsResponse())
    removed: set[Uuid] = set()
    for topic in wanted:
        times = times_named.pop((topic.name, topic.topic_id), 0)
        if times == 0:
            continue
        if disabled:
            outcome: TopicImage | Failure = Failure(
                ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."
            )
        else:
            outcome = _find(state, topic, times)
            if isinstance(outcome, TopicImage) and not state.mutations.spend(
                len(outcome.partitions)
            ):
                outcome = QUOTA_EXCEEDED
        if isinstance(outcome, Failure):
            result = DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=outcome.code,
                error_message=outcome.message,
            )
        else:
            result = DeletableTopicResult(name=outcome.name, topic_id=outcome.id)
            if outcome.id not in removed:
                removed.add(outcome.id)
                decision.records.append(MetadataRecord(RemoveTopicRecord(topic_id=outcome.id)))
        decision.response.responses.append(result)
    return decision


def _find(
    state: ControllerState, topic: DeleteTopicState, times_named: int
) -> TopicImage | Failure:
    topics = state.image.topics
    if topic.name is None:
        if topic.topic_id == ZERO_UUID:
            return Failure(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if times_named > 1:
            return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
        return topics.by_id.get(topic.topic_id) or _unknown(ErrorCode.UNKNOWN_TOPIC_ID)
    if topic.topic_id != ZERO_UUID:
        return Failure(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if times_named > 1:
        return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    return topics.by_name.get(topic.name) or _unknown(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _unknown(code: ErrorCode) -> Failure:
    return Failure(code, code.message)


# -- CreatePartitions (API 37, versions 0-3; KIP-195)


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
        partitions = _assigned_to_new(state, topic.assignments, start, factor)
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
        return _too_many_records()
    if topic.assignments is not None and len(topic.assignments) != additional:
        return Failure(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(topic.assignments)} assignment(s) were specified.",
        )
    return None


def _assigned_to_new(
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
