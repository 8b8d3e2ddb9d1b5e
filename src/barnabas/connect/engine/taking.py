"""Takes what a consumer has."""

from __future__ import annotations

from confluent_kafka import Consumer, Message


def take(consumer: Consumer, count: int, seconds: float) -> list[Message]:
    """Return up to so many messages as soon as there is one; none after `seconds`.

    `consume` alone would wait for all that are asked for, or the whole time.
    """
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(count - 1, 0)]
