"""Groups of all types, in requests that the client library has no call for.

ListGroups with types (KIP-848), share groups (KIP-932) and Streams groups (KIP-1071).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.cli.admin import Admin
from barnabas.cli.connection import Connection
from barnabas.cli.errors import NOT_FOUND_CODES, CliError, ExitCode, from_code, from_kafka
from barnabas.kafka.wire_routing import GROUP, ask_all, ask_coordinator
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_groups as alter
from barnabas.protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.share_groups import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
)
from barnabas.protocol.messages.streams_groups import StreamsGroupDescribeRequest
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its coordinator lists it; `type` is Classic, Consumer, Share or Streams."""

    group: str
    state: str
    type: str
    protocol: str


def list_groups(
    admin: Admin, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[ListedGroup]:
    """The groups of all coordinators, by name. Raises CliError."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    listed = []
    for broker, answer in admin.run(ask_all, request, lambda one: [one.error_code]):
        if answer.error_code != ErrorCode.NONE:
            raise from_code(answer.error_code, None, f"node {broker}")
        listed += [
            ListedGroup(
                item.group_id, item.group_state, item.group_type.capitalize(), item.protocol_type
            )
            for item in answer.groups
        ]
    return sorted(listed, key=lambda item: item.group)


def describe_share_group(admin: Admin, group: str) -> tuple[int, Any]:
    """The coordinator of a share group, and the group. Raises CliError."""
    return _described(admin, group, ShareGroupDescribeRequest(group_ids=[group]))


def describe_streams_group(admin: Admin, group: str) -> tuple[int, Any]:
    """The coordinator of a Streams group, and the group. Raises CliError."""
    return _described(admin, group, StreamsGroupDescribeRequest(group_ids=[group]))


def _described(admin: Admin, group: str, request: Message) -> tuple[int, Any]:
    coordinator, answer = _ask(admin, group, request, lambda answer: answer.groups)
    return coordinator, answer.groups[0]


def _ask(
    admin: Admin,
    group: str,
    request: Message,
    parts: Callable[[Any], Sequence[Any]] = lambda answer: (answer,),
) -> tuple[int, Any]:
    """The group's coordinator and its answer. Raises CliError for an error in one of its parts."""
    coordinator, answer = admin.run(
        ask_coordinator,
        group,
        GROUP,
        request,
        lambda answer: [part.error_code for part in parts(answer)],
    )
    for part in parts(answer):
        _check(part, group)
    return coordinator, answer


def _check(part: Any, what: str) -> None:
    """Raise CliError for a part of an answer that is an error."""
    if part.error_code != ErrorCode.NONE:
        raise from_code(part.error_code, getattr(part, "error_message", None), what)


def _check_partitions(topics: Iterable[Any]) -> Iterator[tuple[tuple[str, int], Any]]:
    """The partitions of an answer by topic and number. Raises CliError for one that is an error."""
    for topic in topics:
        for part in topic.partitions:
            _check(part, f"{topic.topic_name}-{part.partition_index}")
            yield (topic.topic_name, part.partition_index), part


def share_offsets(admin: Admin, group: str) -> dict[tuple[str, int], Any]:
    """The start offsets of a share group, by topic and partition. Raises CliError."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    _, found = _described(admin, group, request)
    return dict(_check_partitions(found.topics))


def alter_share_offsets(admin: Admin, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Have a share group without members start at these offsets. Raises CliError."""
    topics: dict[str, list[alter.AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        topics.setdefault(topic, []).append(
            alter.AlterShareGroupOffsetsRequestPartition(
                partition_index=number, start_offset=offset
            )
        )
    request = alter.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            alter.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=found)
            for name, found in topics.items()
        ],
    )
    _, answer = _ask(admin, group, request)
    list(_check_partitions(answer.responses))


def delete_share_offsets(admin: Admin, group: str, topics: Iterable[str]) -> None:
    """Have a share group without members forget topics. Raises CliError."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )
    _, answer = _ask(admin, group, request)
    for topic in answer.responses:
        _check(topic, topic.topic_name)


def delete_group(admin: Admin, group: str) -> None:
    """Delete a group of any type; it must have no members. Raises CliError."""
    request = DeleteGroupsRequest(groups_names=[group])
    _ask(admin, group, request, lambda answer: answer.results)


def commit_offsets(
    connection: Connection, group: str, offsets: Mapping[tuple[str, int], int]
) -> None:
    """Commit offsets in the name of a group without members. Raises CliError."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    wanted = [TopicPartition(*key, offset) for key, offset in offsets.items()]
    futures = connection.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=connection.timeout_s
    )
    for item in connection.wait(futures[group], group).topic_partitions or ():
        if item.error is not None:
            raise from_kafka(item.error, f"{item.topic}-{item.partition}")


# Offsets that a group has committed, asked with a consumer of that group, which joins nothing.
#
# The admin client could ask too, without naming partitions. But librdkafka (2.16) ends the process
# with a segmentation fault where its answer is NOT_COORDINATOR, as while a coordinator moves:
# github.com/confluentinc/librdkafka, 5040.


BATCH_MAX = 1000
"""Partitions in one request: librdkafka's time grows with the square of their number."""
RETRY_S = 0.25
MOVING_CODES = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
)
"""Answers that mean: another broker coordinates, or soon one will."""


def committed_offsets(
    connection: Connection, group: str, partitions: Iterable[tuple[str, int]]
) -> "list[TopicPartition]":
    """Every offset that a group has committed in these partitions, in their order.

    Raises CliError.
    """
    if not group:  # librdkafka's consumer would end the process
        raise CliError("a group's name cannot be empty", ExitCode.USAGE)
    deadline = time.monotonic() + connection.timeout_s
    keys = sorted(partitions)
    committed: list[TopicPartition] = []
    with _consumer(connection, group) as consumer:
        for start in range(0, len(keys), BATCH_MAX):
            committed += _ask_offsets(consumer, group, keys[start : start + BATCH_MAX], deadline)
    for item in committed:
        if item.error is not None and item.error.name() not in NOT_FOUND_CODES:
            raise from_kafka(item.error, f"{item.topic}-{item.partition}")
    return [item for item in committed if item.offset >= 0]


@contextmanager
def _consumer(connection: Connection, group: str) -> "Iterator[Consumer]":
    from confluent_kafka import Consumer

    settings = connection.client_config(
        **{
            "group.id": group,
            "enable.auto.commit": False,
            # Else an offset that a transaction has yet to decide would be waited for.
            "isolation.level": "read_uncommitted",
        }
    )
    consumer = Consumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def _ask_offsets(
    consumer: "Consumer", group: str, keys: Sequence[tuple[str, int]], deadline: float
) -> "list[TopicPartition]":
    """The answer of the group's coordinator, even if it moves. Raises CliError."""
    from confluent_kafka import KafkaException, TopicPartition

    asked = [TopicPartition(*key) for key in keys]
    while True:
        left_s = max(deadline - time.monotonic(), 0.0)
        try:
            return consumer.committed(asked, timeout=left_s)
        except KafkaException as error:
            if error.args[0].name() not in MOVING_CODES or left_s <= RETRY_S:
                raise from_kafka(error, group) from error
        time.sleep(RETRY_S)
