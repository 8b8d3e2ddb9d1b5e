"""Writes results of micro-batches exactly once, in a transaction with the batch's number.

Spark runs a micro-batch again whenever it cannot know whether its results were written, and its own
Kafka sink then writes them again. Here the records of a micro-batch and the offsets up to which it
read are one transaction, and its number is in the metadata of those offsets. Before a micro-batch
is written the number is asked for: one that is committed is not written again.

    take the transactional id ─▶ what number is committed? ─▶ begin, records, offsets, commit

Taking the id ends a transaction that an earlier writer left open, and fences that writer if it
still runs. So the committed number is final, and a paused pipeline that wakes up writes nothing.
Readers with `isolation.level=read_committed` see each micro-batch once and complete, in all its
topics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.wire_producer import WireProducer
from barnabas.spark.progress import checkpoint_id, planned_offsets
from barnabas.spark.record_writer import (
    AnyRecord,
    Header,
    KafkaRecord,
    has_zero_timestamp,
    produce,
)

CALL_TIMEOUT_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 1.0

QUERY_HEADER: Final = "query"
BATCH_HEADER: Final = "batch"
"""`<checkpoint's id>/<number>`."""
RECORDS_HEADER: Final = "records"
"""The number of the micro-batch's records in all topics, which a reader must find."""


def writer_name(query_name: str) -> str:
    """Return the transactional id of a query, which is its group of committed offsets too."""
    return f"pipeline-results-{query_name}"


class TransactionalWriter:
    """Writes the results of one query's micro-batches; `checkpoint` is its local directory.

    A KafkaRecord keeps its own headers; other records get those of the micro-batch.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        query_name: str,
        checkpoint: str,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._settings = settings
        self._query_name = query_name
        self._checkpoint = checkpoint
        self._producer: Producer | WireProducer | None = None
        self._offsets: Consumer | None = None

    def write(self, batch_id: int, records: Sequence[AnyRecord]) -> bool:
        """Write a micro-batch that Spark has planned; False where it was committed before.

        Raises KafkaException when the outcome is not known or another writer has taken over: to
        ask again, here or elsewhere, is right.
        """
        try:
            is_wire = has_zero_timestamp(records)
            if self._producer is None or is_wire != isinstance(self._producer, WireProducer):
                self.close()
                self._take_over(WireProducer if is_wire else Producer)
            places = self._places(batch_id)
            if batch_id <= self._committed_batch(places):
                return False
            self._commit(batch_id, records, places)
        except BaseException:
            # The next user of the id, this writer or another, ends its transaction.
            self.close()
            raise
        return True

    def close(self) -> None:
        """Give up the connections; an open transaction waits for the next writer, or times out."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None
        if self._offsets is not None:
            self._offsets.close()
            self._offsets = None

    def _take_over(self, maker: type[Producer] | type[WireProducer]) -> None:
        name = writer_name(self._query_name)
        self._offsets = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": name,
                "client.id": "barnabas-pipeline",
                "enable.auto.commit": False,
                # Offsets that a transaction has not committed yet are waited for.
                "isolation.level": "read_committed",
                "log_level": 2,
                **self._settings,
            }
        )
        self._producer = maker(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "transactional.id": name,
                "client.id": "barnabas-pipeline",
                **JAVA_PARTITIONER,
                "linger.ms": 5,
                "log_level": 2,
                **self._settings,
            }
        )
        self._producer.init_transactions(CALL_TIMEOUT_SECONDS)

    def _places(self, batch_id: int) -> list[TopicPartition]:
        """The end offsets of the micro-batch, with its number as metadata of each."""
        metadata = json.dumps({"checkpoint": checkpoint_id(self._checkpoint), "batch": batch_id})
        return [
            TopicPartition(topic, partition, offset, metadata)
            for topic, offsets in planned_offsets(self._checkpoint, batch_id).items()
            for partition, offset in offsets.items()
        ]

    def _committed_batch(self, places: list[TopicPartition]) -> int:
        """Return the last micro-batch of this checkpoint that is committed, -1 before the first."""
        assert self._offsets is not None
        asked = [TopicPartition(place.topic, place.partition) for place in places]
        batches = [-1]
        for place in self._offsets.committed(asked, CALL_TIMEOUT_SECONDS):
            if place.error is not None:  # not told is not the same as not committed
                raise KafkaException(place.error)
            # A checkpoint that was deleted begins with 0 again: its numbers say nothing here.
            stamp = json.loads(place.metadata) if place.metadata else {}
            if stamp.get("checkpoint") == checkpoint_id(self._checkpoint):
                batches.append(stamp["batch"])
        return max(batches)

    def _commit(
        self, batch_id: int, records: Sequence[AnyRecord], places: list[TopicPartition]
    ) -> None:
        assert self._producer is not None
        assert self._offsets is not None
        headers: list[Header] = [
            (QUERY_HEADER, self._query_name),
            (BATCH_HEADER, f"{checkpoint_id(self._checkpoint)}/{batch_id}"),
            (RECORDS_HEADER, str(len(records))),
        ]
        self._producer.begin_transaction()
        for record in records:
            # One that cannot be delivered makes the commit fail.
            produce(self._producer, record, [] if isinstance(record, KafkaRecord) else headers)
        self._send_offsets(places)
        self._producer.commit_transaction(CALL_TIMEOUT_SECONDS)

    def _send_offsets(self, places: list[TopicPartition]) -> None:
        """Have the transaction commit the offsets, in a thread that can be left behind.

        librdkafka (2.16) may wait for ever here, past its time limit, when the group's coordinator
        is lost (its issues 5456 and 5511). That producer is abandoned, and fenced by the next.
        Raises KafkaException, also then.
        """
        producer, offsets = self._producer, self._offsets
        assert producer is not None
        assert offsets is not None
        outcome: SimpleQueue[KafkaException | None] = SimpleQueue()

        def send() -> None:
            try:
                if isinstance(producer, WireProducer):
                    name = writer_name(self._query_name)
                    producer.send_offsets_to_transaction(places, name, CALL_TIMEOUT_SECONDS)
                    outcome.put(None)
                    return
                group = offsets.consumer_group_metadata()
                producer.send_offsets_to_transaction(places, group, CALL_TIMEOUT_SECONDS)
                outcome.put(None)
            except KafkaException as error:
                outcome.put(error)

        Thread(target=send, name=writer_name(self._query_name), daemon=True).start()
        try:
            error = outcome.get(timeout=CALL_TIMEOUT_SECONDS + _GRACE_SECONDS)
        except Empty:
            self._producer = None
            reason = KafkaError(KafkaError._TIMED_OUT, "committing offsets in a transaction")
            raise KafkaException(reason) from None
        if error is not None:
            raise error
