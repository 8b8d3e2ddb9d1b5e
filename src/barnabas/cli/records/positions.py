"""Places in a log as people name them.

earliest, latest         the ends
1234                     an offset
-10, +10                 ten before the end, ten after the beginning
2026-01-31T12:00:00Z     a time (local without a zone; the time of day may be left out)
@1767225600000           a time in milliseconds since 1970
90m, 7d                  so long ago
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.cli.units import parse_duration_ms

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from barnabas.cli.connection import Connection

    PositionParam = click.ParamType["Position"]  # generic to the type checker alone
else:
    PositionParam = click.ParamType

HELP = (
    "earliest, latest, an offset, -N from the end, +N from the start, a time, or an age such as 90m"
)


class Kind(Enum):
    """The base of a position."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    BEFORE_END = "before end"
    AFTER_START = "after start"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Position:
    """A place: an offset, a count of records or milliseconds since 1970, by `kind`."""

    kind: Kind
    value: int = 0


def parse_position(text: str, now_ms: int) -> Position:
    """Read one of the forms above. Raises ValueError."""
    word = text.strip()
    if word in ("earliest", "beginning", "start"):
        return Position(Kind.EARLIEST)
    if word in ("latest", "end"):
        return Position(Kind.LATEST)
    if word.isdecimal():
        return Position(Kind.OFFSET, int(word))
    if re.fullmatch(r"-\d+", word):
        return Position(Kind.BEFORE_END, int(word[1:]))
    if re.fullmatch(r"\+\d+", word):
        return Position(Kind.AFTER_START, int(word[1:]))
    if re.fullmatch(r"@\d+", word):
        return Position(Kind.TIME, int(word[1:]))
    return Position(Kind.TIME, _time_ms(word, now_ms))


def _time_ms(word: str, now_ms: int) -> int:
    try:
        moment = datetime.datetime.fromisoformat(word)
    except ValueError:
        try:
            return now_ms - parse_duration_ms(word)
        except ValueError:
            raise ValueError(f"{word!r} is not a position: {HELP}") from None
    return int(moment.astimezone().timestamp() * 1000)


class PositionType(PositionParam):
    """A position as the value of an option."""

    name = "position"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Position:
        import time

        if isinstance(value, Position):
            return value
        try:
            return parse_position(str(value), time.time_ns() // 1_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def resolve(
    connection: "Connection", position: Position, partitions: "Sequence[TopicPartition]"
) -> dict[tuple[str, int], int]:
    """The offset that `position` means in each partition, within what the log holds.

    A time means the first record at or after it, or the end. Raises CliError.
    """
    starts = list_offsets(connection, partitions, Position(Kind.EARLIEST))
    ends = list_offsets(connection, partitions, Position(Kind.LATEST))
    if position.kind is Kind.EARLIEST:
        return starts
    if position.kind is Kind.LATEST:
        return ends
    by_time = list_offsets(connection, partitions, position) if position.kind is Kind.TIME else {}
    offsets = {}
    for key, end in ends.items():
        start = starts[key]
        if position.kind is Kind.TIME:
            wanted = by_time[key] if by_time[key] >= 0 else end
        elif position.kind is Kind.OFFSET:
            wanted = position.value
        elif position.kind is Kind.BEFORE_END:
            wanted = end - position.value
        else:
            wanted = start + position.value
        offsets[key] = min(max(wanted, start), end)
    return offsets


def list_offsets(
    connection: "Connection", partitions: "Sequence[TopicPartition]", position: Position
) -> dict[tuple[str, int], int]:
    """Earliest, latest or by-time offsets by (topic, partition); -1 if the partition has none."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import OffsetSpec

    from barnabas.kafka.admin import told_offset

    if not partitions:
        return {}
    if position.kind is Kind.EARLIEST:
        spec = OffsetSpec.earliest()
    elif position.kind is Kind.LATEST:
        spec = OffsetSpec.latest()
    else:
        spec = OffsetSpec.for_timestamp(position.value)
    futures = connection.admin.list_offsets(
        dict.fromkeys(partitions, spec), request_timeout=connection.timeout_s
    )
    offsets = {}
    for item, future in futures.items():
        name = f"{item.topic}-{item.partition}"
        try:
            offsets[item.topic, item.partition] = told_offset(connection.wait(future, name))
        except KafkaException as error:
            raise from_kafka(error, name) from error
    return offsets


def topic_partitions(
    connection: "Connection", topic: str, chosen: Sequence[int] = ()
) -> "list[TopicPartition]":
    """All partitions of a topic, or the chosen ones. Raises CliError for unknown ones.

    Asks by DescribeTopics: a metadata request for one topic would create it on many clusters.
    """
    from confluent_kafka import TopicCollection, TopicPartition

    futures = connection.admin.describe_topics(
        TopicCollection([topic]), request_timeout=connection.timeout_s
    )
    described = connection.wait(futures[topic], topic)
    numbers = sorted(partition.id for partition in described.partitions)
    missing = sorted(set(chosen) - set(numbers))
    if missing:
        raise NoPartitionError(topic, missing[0])
    return [TopicPartition(topic, number) for number in sorted(set(chosen)) or numbers]


class NoPartitionError(CliError):
    """A topic exists, but has no partition of a number that was given."""

    def __init__(self, topic: str, number: int) -> None:
        super().__init__(f"topic {topic} has no partition {number}", ExitCode.NOT_FOUND)
