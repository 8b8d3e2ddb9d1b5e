"""Topics that `consume --follow` reads although they do not exist yet.

As Kafka's console consumer it says so, and begins once they are there. Asking never creates a
topic.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.records.positions import (
    NoPartitionError,
    Position,
    resolve,
    topic_partitions,
)

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

ASK_S = 1.0
"""Between two questions for a topic."""


def existing_topics(
    connection: Connection, topics: Sequence[str], chosen: Sequence[int] = ()
) -> "tuple[list[TopicPartition], list[str]]":
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
