"""Reading partitions from one place to another, in a group or by oneself.

`consume --follow` also reads topics that do not exist yet. As Kafka's console consumer it says so,
and begins once they are there. Asking never creates a topic.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.errors import ConfigError
from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.cli.records.positions import (
    NoPartitionError,
    Position,
    resolve,
    topic_partitions,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

POLL_S = 0.2
BATCH_MAX = 500
NOTED_AFTER_S = 5.0
"""A member of a group that has no partitions so long says once what it waits for."""
Partition = tuple[str, int]
ASK_S = 1.0
"""Between two questions for a topic."""


def read_partitions(
    connection: Connection,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int] | None,
    isolation: str,
    count: int | None,
    awaited: AwaitedTopics | None = None,
) -> Generator[Message, None, None]:
    """Records from `starts` up to before `ends`, or `count`; without either, on and on.

    A partition also ends if nothing readable comes before its end (control records, records
    that compaction removed). Without `ends` those of `awaited` topics follow. Raises CliError.
    """
    from confluent_kafka import Consumer, TopicPartition

    remaining = {
        key: ends[key] if ends is not None else None
        for key, start in starts.items()
        if ends is None or start < ends[key]
    }
    taken = 0
    consumer = Consumer(_settings(connection, isolation))
    try:
        consumer.assign([TopicPartition(*key, starts[key]) for key in remaining])
        while remaining or awaited:
            if awaited and (begun := awaited.appeared()):
                remaining |= dict.fromkeys(begun)
                consumer.incremental_assign(
                    [TopicPartition(*key, start) for key, start in begun.items()]
                )
            for message in _poll(consumer, uses_group=False):
                key = (str(message.topic()), int(message.partition() or 0))
                if key not in remaining:
                    continue
                end = remaining[key]
                offset = int(message.offset() or 0)
                if message.error() is not None:
                    if end is not None:
                        del remaining[key]
                elif end is None or offset < end:
                    yield message
                    taken += 1
                    if taken == count:
                        return
                if end is not None and offset + 1 >= end:
                    remaining.pop(key, None)
    finally:
        consumer.close()


def read_in_group(
    connection: Connection,
    topics: list[str],
    group: str,
    reset: str,
    isolation: str,
    count: int | None,
    *,
    follow: bool,
    awaits_topics: bool = False,
) -> Generator[Message, None, None]:
    """Records of the partitions that the group gives us; committed once they were taken.

    It ends after `count` records, and without `follow` when every partition we have was read to
    its end. `awaits_topics`: some topics do not exist yet. Without a coordinator it waits for one,
    as Kafka's consumer does, and says so on standard error. Raises CliError.
    """
    from confluent_kafka import Consumer

    reading: set[Partition] = set()
    assigned = False
    taken = 0

    def on_assign(_: Any, partitions: list[TopicPartition]) -> None:
        nonlocal assigned
        assigned = True
        reading.update((item.topic, item.partition) for item in partitions)

    def on_revoke(_: Any, partitions: list[TopicPartition]) -> None:
        reading.difference_update((item.topic, item.partition) for item in partitions)

    settings = _settings(connection, isolation) | {
        "group.id": group,
        "auto.offset.reset": reset,
        "enable.auto.commit": True,
        "enable.auto.offset.store": False,
    }
    if awaits_topics:
        settings["topic.metadata.refresh.interval.ms"] = int(ASK_S * 1000)
    consumer = Consumer(settings)
    noted_at_s = time.monotonic() + NOTED_AFTER_S
    try:
        consumer.subscribe(topics, on_assign=on_assign, on_revoke=on_revoke)
        while follow or not assigned or reading:
            if not assigned and time.monotonic() > noted_at_s:
                noted_at_s = math.inf
                why = _why_no_partitions(connection, group, awaits_topics=awaits_topics)
                if why is not None:
                    click.echo(why, err=True)
            for message in _poll(consumer, uses_group=True, awaits_topics=awaits_topics):
                key = (str(message.topic()), int(message.partition() or 0))
                if message.error() is not None:
                    reading.discard(key)
                    continue
                yield message
                consumer.store_offsets(message)
                taken += 1
                if taken == count:
                    return
    finally:
        consumer.close()


def _why_no_partitions(connection: Connection, group: str, *, awaits_topics: bool) -> str | None:
    """Return what a group's member waits for, as far as brokers say it.

    None if that is the topics, which was reported.
    """
    from barnabas.cli.login import access_for
    from barnabas.kafka.wire import GROUP_KEY, AccessError, Brokers, WireError
    from barnabas.protocol.errors import ErrorCode

    error = ErrorCode.NONE
    # If our own client cannot log in, the client library can, or it reports the failure.
    with contextlib.suppress(AccessError, ConfigError, WireError):
        access = access_for(connection.bootstrap_servers, connection.config, connection.timeout_s)
        with contextlib.closing(Brokers(access)) as brokers:
            error, _ = brokers.coordinator(group, GROUP_KEY)
    if error is ErrorCode.NONE:
        if awaits_topics:
            return None
        return f"still waiting: group {group} has assigned no partitions to this member yet"
    return (
        f"still waiting: group {group} has no coordinator ({error.name}); `barnabas doctor` "
        "may know why"
    )


def _settings(connection: Connection, isolation: str) -> dict[str, Any]:
    return connection.client_config(
        **{
            "group.id": "barnabas-cli",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
            **connection.config,
        }
    )


def _poll(consumer: Consumer, *, uses_group: bool, awaits_topics: bool = False) -> list[Message]:
    """Return what has come, waiting a moment for the first; errors that matter are raised."""
    from confluent_kafka import KafkaError

    first = consumer.poll(POLL_S)
    if first is None:
        return []
    messages = [first, *consumer.consume(BATCH_MAX, 0)]
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            what = str(message.topic() or "")
            if error.retriable() or error.code() in _PASSING:
                continue
            if error.code() == _OF_GROUPS and not uses_group:
                continue
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and awaits_topics:
                continue
            raise from_kafka(error, what)
    return messages


_PASSING = frozenset({-195, -187})
"""_TRANSPORT and _ALL_BROKERS_DOWN: the client library connects again by itself."""
_OF_GROUPS = 30
"""GROUP_AUTHORIZATION_FAILED: the library looks for the coordinator of a group in any case."""


def existing_topics(
    connection: Connection, topics: Sequence[str], chosen: Sequence[int] = ()
) -> tuple[list[TopicPartition], list[str]]:
    """The partitions, all or the chosen ones, of the topics that exist; and the other topics, which
    are reported on standard error. Raises CliError."""
    partitions: list[TopicPartition] = []
    missing = []
    for topic in topics:
        try:
            partitions += topic_partitions(connection, topic, chosen)
        except NoPartitionError:
            raise
        except CliError as error:
            if error.code is not ExitCode.NOT_FOUND:
                raise
            missing.append(topic)
            click.echo(f"topic {topic} does not exist yet: waiting for it", err=True)
    return partitions, missing


class AwaitedTopics:
    """Topics that do not exist yet; true while there are any."""

    def __init__(
        self,
        connection: Connection,
        topics: Sequence[str],
        chosen: Sequence[int],
        start: Position,
    ) -> None:
        """Of each, `chosen` partitions or all are to be read from `start`."""
        self._connection = connection
        self._topics = list(topics)
        self._chosen, self._start = chosen, start
        self._asked_s = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._topics)

    def appeared(self) -> Mapping[tuple[str, int], int]:
        """Where to start in partitions of topics that are there now; asks once in a while.

        Raises CliError.
        """
        if not self._topics or time.monotonic() < self._asked_s + ASK_S:
            return {}
        starts: dict[tuple[str, int], int] = {}
        for topic in list(self._topics):
            try:
                partitions = topic_partitions(self._connection, topic, self._chosen)
                starts |= resolve(self._connection, self._start, partitions)
            except NoPartitionError:
                raise
            except CliError as error:
                if not _is_passing(error):
                    raise
            else:
                self._topics.remove(topic)
        self._asked_s = time.monotonic()
        return starts


def _is_passing(error: CliError) -> bool:
    """Return whether the topic may appear all the same: some node lacks it, or a leader of it, or
    does not answer now."""
    if error.code in (ExitCode.NOT_FOUND, ExitCode.UNREACHABLE):
        return True
    from confluent_kafka import KafkaException

    cause = error.__cause__
    return isinstance(cause, KafkaException) and bool(cause.args[0].retriable())
