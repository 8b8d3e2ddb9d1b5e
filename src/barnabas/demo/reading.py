"""Reading topics from beginning to end, committed records only, as any consumer would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from barnabas.demo.access import client_config
from barnabas.demo.contract import TOPIC_PARTITIONS

_READ_SECONDS = 1.0
_BATCH_RECORDS_MAX = 500


def records_of(
    topics: Sequence[str], bootstrap: str, group: str, still_seconds_max: int
) -> Iterator[Message]:
    """Yield every record up to each partition's end.

    Raises KafkaException where the cluster does not answer, or nothing comes for so long.
    """
    consumer = Consumer(
        {
            **client_config(bootstrap),
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    unread = {
        (topic, partition) for topic in topics for partition in range(TOPIC_PARTITIONS[topic])
    }
    try:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(unread)])
        still_reads = 0
        while unread:
            messages = consumer.consume(_BATCH_RECORDS_MAX, _READ_SECONDS)
            still_reads = 0 if messages else still_reads + 1
            if still_reads > still_seconds_max:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no end of {unread}"))
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((message.topic() or "", message.partition() or 0))
                elif not error.retriable():
                    raise KafkaException(error)
    finally:
        consumer.close()
