"""Offsets that a group has committed, asked with a consumer of that group, which joins nothing.

The admin client could ask too, without naming partitions. But librdkafka (2.16) ends the process
with a segmentation fault where its answer is NOT_COORDINATOR, as while a coordinator moves:
github.com/confluentinc/librdkafka, 5040.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.connection import Connection
from barnabas.cli.errors import NOT_FOUND_CODES, CliError, ExitCode, from_kafka

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

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
    found: list[TopicPartition] = []
    with _consumer(connection, group) as consumer:
        for start in range(0, len(keys), BATCH_MAX):
            found += _ask(consumer, group, keys[start : start + BATCH_MAX], deadline)
    for item in found:
        if item.error is not None and item.error.name() not in NOT_FOUND_CODES:
            raise from_kafka(item.error, f"{item.topic}-{item.partition}")
    return [item for item in found if item.offset >= 0]


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
    consumer = Consumer({key: value for key, value in settings.items() if value is not None})
    try:
        yield consumer
    finally:
        consumer.close()


def _ask(
    consumer: "Consumer", group: str, keys: Sequence[tuple[str, int]], deadline: float
) -> "list[TopicPartition]":
    """The answer of the group's coordinator, wherever it moves meanwhile. Raises CliError."""
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
