"""Dead letters in a topic, as Connect's own reporter makes them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from barnabas.connect.errors.reports import DeadLetters
from barnabas.connect.errors.tolerance import ErrorCounts, ErrorPolicy, Failure, Stage
from barnabas.connect.record import RawRecord

PATIENCE_S = 60


def write_dead_letter(
    producer: Producer,
    queue: str,
    connector: str,
    error: Exception,
    *,
    original: RawRecord,
    has_context: bool = True,
) -> None:
    """Write what a connector writes when it gives up a record."""
    policy = ErrorPolicy(dead_letter_topic=queue, dead_letter_has_context=has_context)
    sent: list[RawRecord] = []
    failure = Failure(Stage.VALUE_CONVERTER, "my.Converter", error, original)
    DeadLetters(connector, 2, policy, ErrorCounts(), sent.append)(failure)
    (letter,) = sent
    headers: Any = list(letter.headers)
    producer.produce(queue, letter.value, letter.key, headers=headers)
    assert producer.flush(PATIENCE_S) == 0
