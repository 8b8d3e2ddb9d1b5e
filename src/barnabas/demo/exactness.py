"""Check that the result topics hold every micro-batch whole and once, read as any consumer would.

With the exactly-once option each result record says in its headers which micro-batch of which query
it belongs to, and how many records that has. The figures cannot show a record that came twice: the
last value of a key counts. These counts can.
"""

from __future__ import annotations

from collections import Counter

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.demo.access import client_config
from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.topics import OUTPUT_TOPICS
from barnabas.demo.verdict import Check
from barnabas.pipeline.exactly_once import BATCH_HEADER, QUERY_HEADER, RECORDS_HEADER

_READ_SECONDS = 1.0
_STILL_READS_MAX = 30
_BATCH_RECORDS_MAX = 500

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]
"""As the client's types have them; what is read is a list."""
Batch = tuple[str | bytes | None, str | bytes | None]
"""The query, and the micro-batch of its checkpoint."""


class ResultTally:
    """Counts result records by the micro-batch that they say they are of."""

    def __init__(self) -> None:
        self.records = 0
        self._read: Counter[Batch] = Counter()
        self._promised: dict[Batch, int] = {}

    def add(self, headers: Headers) -> None:
        """Count one record; one without headers is nobody's, and makes the sum too large."""
        self.records += 1
        found = dict(headers)
        if BATCH_HEADER in found:
            batch = found[QUERY_HEADER], found[BATCH_HEADER]
            self._read[batch] += 1
            self._promised[batch] = int(found[RECORDS_HEADER] or 0)

    def checks(self) -> list[Check]:
        """Return what is read beside what the micro-batches say that there is."""
        promised = sum(self._promised.values())
        batches = len(self._promised)
        whole = sum(self._read[batch] == count for batch, count in self._promised.items())
        return [
            Check("result records", f"{self.records:,}", f"{promised:,}", self.records == promised),
            Check(
                "micro-batches whole and once", f"{whole:,}", f"{batches:,}", whole == batches > 0
            ),
        ]


def check_results(bootstrap: str) -> list[Check]:
    """Read all result topics to their ends, committed records only.

    Raises KafkaException where the cluster does not answer.
    """
    consumer = Consumer(
        {
            **client_config(bootstrap),
            "group.id": "result-tally",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    tally = ResultTally()
    unread = {
        (topic, partition)
        for topic in OUTPUT_TOPICS
        for partition in range(TOPIC_PARTITIONS[topic])
    }
    try:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(unread)])
        still_reads = 0
        while unread:
            messages = consumer.consume(_BATCH_RECORDS_MAX, _READ_SECONDS)
            still_reads = 0 if messages else still_reads + 1
            if still_reads > _STILL_READS_MAX:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no end of {unread}"))
            for message in messages:
                error = message.error()
                if error is None:
                    tally.add(message.headers() or [])
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((message.topic() or "", message.partition() or 0))
                elif not error.retriable():
                    raise KafkaException(error)
    finally:
        consumer.close()
    return tally.checks()
