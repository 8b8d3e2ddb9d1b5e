"""A member of a group that consumes, transforms and produces in transactions, as a process.

`python chain_member.py BOOTSTRAP PROTOCOL GROUP NAME SOURCE TARGET`. NAME is its transactional id.
Records go to the partition that they came from. It starts over after every failure, as an
operator would restart it, and goes on until it is killed.

librdkafka (2.16) may wait for ever in send_offsets_to_transaction when the group's coordinator is
lost: it has every answer that it asked for, and does not send its TxnOffsetCommit. So a member that
is stuck ends, and is started again.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

CALL_TIMEOUT_S = 15.0
LINES_MAX = 60
RECORDS_MAX = 40
STUCK_S = 25.0
SESSION_TIMEOUT_MS = 2_000
TRANSACTION_TIMEOUT_MS = 4_000
REFUSALS = {
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.INVALID_TXN_STATE,
    KafkaError.TRANSACTION_ABORTABLE,
}
"""What no lost node, time-out or other producer explains: the brokers are wrong.

Except for the abort of a transaction whose every request was lost: the coordinator knows only the
one before, and refuses to abort it if it is committed, as Kafka's does.
"""
REFUSED = "is refused:"


class UnknownTransactionError(Exception):
    """The coordinator does not know the transaction that was to be aborted."""


class Trail:
    """Keeps the last that librdkafka has logged of transactions: why something was refused."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_MAX)

    def log(self, _: int, text: str, *values: object) -> None:
        """Keep a line, as loggers take it."""
        moment = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        self._lines.append(f"  {moment} {text % values if values else text}")

    def __str__(self) -> str:
        return "\n".join(self._lines)


class Silence:
    """Takes what librdkafka says of lost connections; they are lost on purpose."""

    def log(self, *_: object) -> None:
        """Nothing."""


def run(bootstrap: str, protocol: str, group: str, name: str, source: str, target: str) -> None:
    """One life: until something fails that a transaction cannot be aborted for."""
    common = {"bootstrap.servers": bootstrap, "logger": Silence()}
    session = {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 300}
    consumer = Consumer(
        {
            **common,
            **(session if protocol == "classic" else {}),
            "group.protocol": protocol,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    trail = Trail()
    producer = Producer(
        {
            **common,
            "logger": trail,
            "debug": "eos",
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 2,
        }
    )
    try:
        producer.init_transactions(CALL_TIMEOUT_S)
        # With callbacks partitions change hands inside `consume` only; without, behind the back of
        # a transaction, whose offsets would go out with the generation of the new assignment.
        consumer.subscribe([source], on_assign=_noted, on_revoke=_noted, on_lost=_noted)
        while True:
            faulthandler.dump_traceback_later(STUCK_S, exit=True)
            messages = consumer.consume(random.randint(1, RECORDS_MAX), 0.2)
            for message in messages:
                error = message.error()
                if error is not None and not error.retriable():
                    raise KafkaException(message.error())
            messages = [message for message in messages if not message.error()]
            if messages:
                move(consumer, producer, messages, target)
    except KafkaException as error:
        with contextlib.suppress(KafkaException):  # the same again, if it is fatal
            producer.poll(0)  # takes the log's lines
        error.add_note(str(trail))
        raise
    finally:
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(CALL_TIMEOUT_S)
        producer.purge()
        consumer.close()


def _noted(*_: object) -> None:
    """Partitions come and go; librdkafka does what is to be done."""


def move(consumer: Consumer, producer: Producer, messages: list[Message], target: str) -> None:
    """One transaction. Some are aborted for no reason, and done again."""
    ends: dict[Any, Any] = {}
    answers: list[Any] = []
    """Of requests that began the transaction at its coordinator."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            answers.append(message.offset())

    producer.begin_transaction()
    for message in messages:
        producer.produce(
            target, message.value(), partition=message.partition() or 0, on_delivery=delivered
        )
        ends[message.topic(), message.partition()] = (message.offset() or 0) + 1
    places = [TopicPartition(place[0], place[1], end) for place, end in ends.items()]
    try:
        if random.random() < 0.05:
            raise KafkaException(KafkaError(KafkaError._STATE, "changed its mind"))
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(places, metadata, CALL_TIMEOUT_S)
        answers.append(metadata)
        until_done(producer.commit_transaction)
    except KafkaException as error:
        say_if_refused(error)
        if error.args[0].fatal():
            raise
        abort(producer, answers)
        rewind(consumer, messages)


def abort(producer: Producer, answers: list[Any]) -> None:
    """Abort a transaction, of which the coordinator knows if there were `answers`."""
    try:
        until_done(producer.abort_transaction)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.INVALID_TXN_STATE and not answers:
            raise UnknownTransactionError from error
        raise


def until_done(end: Callable[[float], None]) -> None:
    """End a transaction. One whose end timed out may be committed: only the same end may follow."""
    while True:
        try:
            end(CALL_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def say_if_refused(error: KafkaException) -> None:
    """Leave word of what is not to be passed over as a transaction that was aborted."""
    if error.args[0].code() in REFUSALS:
        trail = "\n".join(getattr(error, "__notes__", ()))
        sys.stdout.write(f"{sys.argv[4]} {REFUSED} {error}\n{trail}\n")
        sys.stdout.flush()


def rewind(consumer: Consumer, messages: list[Message]) -> None:
    """Go back to where the transaction began, in the partitions that are still ours."""
    firsts: dict[Any, Any] = {}
    for message in messages:
        firsts.setdefault((message.topic(), message.partition()), message.offset())
    ours = {(place.topic, place.partition) for place in consumer.assignment()}
    for (topic, partition), offset in firsts.items():
        if (topic, partition) in ours:
            with contextlib.suppress(KafkaException):  # it may have gone in between
                consumer.seek(TopicPartition(topic, partition, offset))


def main() -> None:
    while True:
        try:
            run(*sys.argv[1:])
        except KafkaException as error:
            say_if_refused(error)
            start_over(str(error))
        except UnknownTransactionError as error:
            start_over(f"an abort of what the coordinator has not heard of: {error.__cause__}")


def start_over(reason: str) -> None:
    """Leave word of the end of a life."""
    sys.stdout.write(f"{sys.argv[4]} starts over: {reason}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
