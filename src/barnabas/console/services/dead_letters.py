"""Dead letters: records that a sink connector gave up, with the reason from their headers.

Source of the headers' names: KIP-298.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.services.asking import AbsentError
from barnabas.console.services.cluster import EARLIEST, LATEST, ClusterService
from barnabas.console.services.decoding import to_json
from barnabas.console.services.messages import MessageService, Record, Start

QUEUE_TOPIC: Final = "errors.deadletterqueue.topic.name"
WITH_REASON: Final = "errors.deadletterqueue.context.headers.enable"
HEADER_PREFIX: Final = "__connect.errors."
READ_MAX: Final = 100
"""The newest records of a queue in which those of a connector are looked for."""
TRACE_CHARS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class Queue:
    """The dead letter queue of a connector."""

    topic: str | None
    """None if it has none."""
    has_reason: bool
    """True if the connector is configured to write the reason into headers."""
    exists: bool
    """False while the topic is not in the console's cluster."""
    records: int
    """The number of offsets that the topic holds, of all connectors that share it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for a dead letter, from its headers. Members without a header are None."""

    connector: str | None
    task: str | None
    stage: str | None
    class_name: str | None
    exception: str | None
    message: str | None
    trace: str | None
    topic: str | None
    """Topic, partition and offset: where the record was before."""
    partition: int | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of a queue, and why it is there."""

    record: Record
    reason: Reason


@dataclass(frozen=True, slots=True)
class Found:
    """The newest dead letters of a connector."""

    letters: tuple[DeadLetter, ...]
    others: int
    """Records among those read that other connectors wrote."""
    is_complete: bool
    """False if not all partitions answered in time."""
    has_more: bool


class DeadLetterService:
    """Dead letter queues in the cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService, messages: MessageService) -> None:
        self._cluster, self._messages = cluster, messages

    def queue(self, config: Mapping[str, str]) -> Queue:
        """The queue that a sink's configuration names, and how much it holds."""
        topic = config.get(QUEUE_TOPIC, "").strip() or None
        has_reason = config.get(WITH_REASON, "false").strip().lower() == "true"
        if topic is None:
            return Queue(None, has_reason, False, 0)
        try:
            self._cluster.topic(topic)
        except AbsentError:
            return Queue(topic, has_reason, False, 0)
        begins = self._cluster.offsets([topic], EARLIEST)
        ends = self._cluster.offsets([topic], LATEST)
        held = sum(max(0, end - begins.get(place, end)) for place, end in ends.items())
        return Queue(topic, has_reason, True, held)

    def newest(self, topic: str, connector: str = "", hidden: Sequence[str] = ()) -> Found:
        """The newest records of a queue, those without a connector's name among them."""
        page = self._messages.page(topic, Start("newest"), limit=READ_MAX, hidden=hidden)
        letters = [DeadLetter(record, _reason(record)) for record in page.records]
        wanted = (None, connector)
        own = [one for one in letters if not connector or one.reason.connector in wanted]
        return Found(tuple(own), len(letters) - len(own), page.is_complete, page.has_more)


def _reason(record: Record) -> Reason:
    """What the headers of a record say; of two with one name the last holds."""
    found: dict[str, Any] = {
        name.removeprefix(HEADER_PREFIX): to_json(value.value)
        for name, value in record.headers
        if name.startswith(HEADER_PREFIX) and value.form != "null"
    }

    def text(name: str) -> str | None:
        value = found.get(name)
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)

    trace = text("exception.stacktrace")
    return Reason(
        text("connector.name"),
        text("task.id"),
        text("stage"),
        text("class.name"),
        text("exception.class.name"),
        text("exception.message"),
        None if trace is None else trace[:TRACE_CHARS_MAX],
        text("topic"),
        _whole(text("partition")),
        _whole(text("offset")),
    )


def _whole(text: str | None) -> int | None:
    """A number that a header has as text; None if it is none."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 20
    return int(text) if is_number and text is not None else None
