"""ElectLeaders (API 43, versions 0-2; KIP-183, KIP-460), and the elections nobody asked for:
leaderships go back to preferred replicas, and unclean leaders are found where topics allow it.

The preferred replica is the first one. An unclean leader is any live replica of a partition that
has no leader: what it lacks is lost, so it happens on demand or where
`unclean.leader.election.enable` says so.
Source: Kafka's ReplicationControlManager.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from itertools import islice

from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure
from barnabas.node.metadata.controller.leadership import (
    ChangeRules,
    Located,
    locate,
    partitions_without_leader,
)
from barnabas.node.metadata.controller.partition_change import Election
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.image import NO_LEADER, ConfigsImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

ELECTIONS_PER_ROUND_MAX = 1000
"""The most leaders that one periodic decision changes; the rest follow at once in the next."""


class ElectionType(IntEnum):
    """The requested kind of leader."""

    PREFERRED = 0
    UNCLEAN = 1


_ELECTIONS = {
    ElectionType.PREFERRED: Election.PREFERRED,
    ElectionType.UNCLEAN: Election.UNCLEAN,
}
_NOT_AVAILABLE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    state: ControllerState, request: ElectLeadersRequest
) -> Decision[ElectLeadersResponse]:
    """Elect for each partition of the request, or for all where one is needed."""
    try:
        kind = ElectionType(request.election_type)
    except ValueError:
        return Decision(
            refuse(
                request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
            )
        )
    decision = Decision(ElectLeadersResponse(), is_atomic=False)
    rules = ChangeRules(state)
    topics = state.image.topics.by_name
    names_all = request.topic_partitions is None
    wanted = (
        [(topic.name, list(topic.partitions)) for topic in topics.values()]
        if request.topic_partitions is None
        else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    )
    for name, numbers in wanted:
        result = ReplicaElectionResult(topic=name)
        for number in numbers:
            failure = _elect(state, rules, name, number, kind, decision.records)
            if names_all and failure and failure.code is ErrorCode.ELECTION_NOT_NEEDED:
                continue
            result.partition_result.append(
                PartitionResult(
                    partition_id=number,
                    error_code=failure.code if failure else ErrorCode.NONE,
                    error_message=(failure.message or failure.code.message) if failure else None,
                )
            )
        decision.response.replica_election_results.append(result)
    return decision


def _elect(
    state: ControllerState,
    rules: ChangeRules,
    name: str,
    number: int,
    kind: ElectionType,
    records: list[MetadataRecord],
) -> Failure | None:
    topic = state.image.topics.by_name.get(name)
    if topic is None:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        return Failure(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}"
        )
    if kind is ElectionType.PREFERRED:
        is_needed = partition.leader != partition.replicas[0]
    else:
        is_needed = partition.leader == NO_LEADER
    if not is_needed:
        return Failure(ErrorCode.ELECTION_NOT_NEEDED)
    record = _election(rules, Located(topic, number, partition), kind)
    if record is None:
        return Failure(_NOT_AVAILABLE[kind])
    records.append(record)
    return None


def _election(rules: ChangeRules, located: Located, kind: ElectionType) -> MetadataRecord | None:
    """The record that gives the partition such a leader, or None."""
    change = rules.change(located)
    change.election = _ELECTIONS[kind]
    record = change.record()
    if record is None or record.message.leader < 0:
        return None
    if kind is ElectionType.PREFERRED and record.message.leader != located.partition.replicas[0]:
        return None
    return record


def balance_leaders(state: ControllerState) -> Decision[bool] | None:
    """Let preferred replicas lead again (`auto.leader.rebalance.enable`).

    None if nothing can be done; otherwise the response says whether there is more to do.
    """
    image = state.image
    if not state.config.get_bool("auto.leader.rebalance.enable"):
        return None
    not_preferred = locate(image, image.topics.index.not_preferred)
    return _round(state, not_preferred, ElectionType.PREFERRED)


def elect_unclean_leaders(state: ControllerState) -> Decision[bool] | None:
    """Find leaders, unclean ones if need be, where `unclean.leader.election.enable` is set.

    None if nothing can be done; otherwise the response says whether there is more to do.
    """
    return _round(state, _may_lose(state), ElectionType.UNCLEAN)


def unclean_election_records(state: ControllerState, configs: ConfigsImage) -> list[MetadataRecord]:
    """The elections that become possible with these configurations in place of the present."""
    after = replace(state, image=replace(state.image, configs=configs))
    return _elections(after, _may_lose(after), ElectionType.UNCLEAN)


def _may_lose(state: ControllerState) -> Iterator[Located]:
    """Partitions without a leader that would rather lose data than wait."""
    rules = ChangeRules(state)
    for located in partitions_without_leader(state):
        if rules.allows_unclean_election(located.topic.name):
            yield located


def _round(
    state: ControllerState, partitions: Iterator[Located], kind: ElectionType
) -> Decision[bool] | None:
    records = _elections(state, partitions, kind, ELECTIONS_PER_ROUND_MAX)
    if not records:
        return None
    return Decision(len(records) == ELECTIONS_PER_ROUND_MAX, records, is_atomic=False)


def _elections(
    state: ControllerState,
    partitions: Iterator[Located],
    kind: ElectionType,
    count_max: int | None = None,
) -> list[MetadataRecord]:
    rules = ChangeRules(state)
    elected = (_election(rules, located, kind) for located in partitions)
    return list(islice((record for record in elected if record is not None), count_max))
