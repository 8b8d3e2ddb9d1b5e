"""The tasks of a share-group source: they read the records of a plan from the log, by offset.

Tasks are not members of the share group. They read like any consumer, so a batch can be read
again, elsewhere and after its locks are gone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.backoff import ExponentialBackoff
from barnabas.kafka.wire import Access, Brokers, WireError
from barnabas.protocol.apis import FETCH, LIST_OFFSETS, METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import fetch as fetching
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records.batch import TimestampType, iterate_headers
from barnabas.protocol.records.records import Record, decode_records_between
from barnabas.spark.datasource.share_ranges import Delivery, Partition

FETCH_BYTES_MAX: Final = 1 << 20
"""A task reads a part of a batch: what is behind it would be in vain."""
ROWS_MAX: Final = 10_000
"""In one yield."""
WAIT_MS: Final = 500
RETRY_FIRST_MS: Final = 50
RETRY_MAX_MS: Final = 2_000
GIVE_UP_S: Final = 60.0
"""Time that a partition may be without an answer before the task fails and is retried."""
_BACKOFF = ExponentialBackoff(RETRY_FIRST_MS, RETRY_MAX_MS, random.Random())
NO_REPLICA: Final = -1
EARLIEST: Final = -2


class LostRecordsError(RuntimeError):
    """Records of a batch are no longer in the log: retention has deleted them."""


@dataclass(slots=True)
class Rows:
    """Records of one partition, as columns."""

    partition: int
    records: list[Record] = field(default_factory=list)
    timestamp_types: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class LogReader:
    """Reads ranges of offsets. One per process and cluster, used by one thread."""

    def __init__(self, access: Access) -> None:
        self._brokers = Brokers(access)
        self._leaders: dict[Partition, tuple[str, int]] = {}

    def read(
        self, topic: str, deliveries: Sequence[Delivery], *, fails_on_loss: bool
    ) -> Iterator[Rows]:
        """Read deliveries of one partition, in the order of offsets.

        Offsets that hold no record (of markers, or compacted away) give nothing. Raises
        LostRecordsError if retention was faster and `fails_on_loss`; WireError if the partition
        cannot be read for a minute.
        """
        rows = Rows(deliveries[0].partition.number)
        give_up_s, failures = time.monotonic() + GIVE_UP_S, 0
        data: Any = b""
        for delivery in sorted(deliveries):
            offset = delivery.first
            while offset <= delivery.last:
                start, problem = offset, "no records"
                # Often of the batch, or the answer, that the last delivery was of.
                offset = _take(data, delivery, offset, rows)
                if offset == start:
                    try:
                        offset, data = self._read_on(topic, delivery, offset, fails_on_loss)
                    except WireError as error:
                        problem = str(error)
                        self._forget()
                        time.sleep(_BACKOFF.after(failures) / 1000)
                        failures += 1
                if offset > start:
                    give_up_s, failures = time.monotonic() + GIVE_UP_S, 0
                elif time.monotonic() > give_up_s:
                    raise WireError(f"{topic}-{rows.partition} at {offset}: {problem}")
                if len(rows.records) >= ROWS_MAX:
                    yield rows
                    rows = Rows(rows.partition)
        if rows.records:
            yield rows

    def _read_on(
        self, topic: str, delivery: Delivery, offset: int, fails_on_loss: bool
    ) -> tuple[int, Any]:
        """Send one request. Returns the offset to go on with, and batches from there on."""
        partition = delivery.partition
        entry = self._fetch(topic, partition, offset)
        code = ErrorCode.of(entry.error_code)
        if code is ErrorCode.NONE:
            return offset, entry.records or b""
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            log_start_offset = self._log_start_offset(topic, partition)
            if log_start_offset > offset:
                if fails_on_loss:
                    raise LostRecordsError(
                        f"{topic}-{partition.number}: the log begins at {log_start_offset}, "
                        f"offset {offset} of this batch is deleted; with the option "
                        "failOnDataLoss=false the batch goes on without it"
                    )
                return log_start_offset, b""
        raise WireError(f"Fetch: {code.name}")

    def _log_start_offset(self, topic: str, partition: Partition) -> int:
        request = ListOffsetsRequest(
            replica_id=NO_REPLICA,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition.number, timestamp=EARLIEST)
                    ],
                )
            ],
        )
        leader = self._leaders[partition]
        response: Any = self._brokers.at(*leader).call(LIST_OFFSETS, request)
        entry = response.topics[0].partitions[0]
        if entry.error_code:
            raise WireError(f"ListOffsets: {ErrorCode.of(entry.error_code).name}")
        return int(entry.offset)

    def _fetch(self, topic: str, partition: Partition, offset: int) -> Any:
        leader = self._leaders.get(partition)
        if leader is None:
            leader = self._leaders[partition] = self._find_leader(topic, partition)
        request = fetching.FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            topics=[
                fetching.FetchTopic(
                    topic=topic,
                    topic_id=partition.topic_id,
                    partitions=[
                        fetching.FetchPartition(
                            partition=partition.number,
                            fetch_offset=offset,
                            partition_max_bytes=FETCH_BYTES_MAX,
                        )
                    ],
                )
            ],
        )
        response: Any = self._brokers.at(*leader).call(FETCH, request)
        if response.error_code:
            raise WireError(f"Fetch: {ErrorCode.of(response.error_code).name}")
        for topic_answer in response.responses:
            for entry in topic_answer.partitions:
                return entry
        raise WireError(f"Fetch: nothing is said of {topic}-{partition.number}")

    def _find_leader(self, topic: str, partition: Partition) -> tuple[str, int]:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        answer: Any = self._brokers.any().call(METADATA, request)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for topic_answer in answer.topics:
            if not topic_answer.error_code and topic_answer.topic_id != partition.topic_id:
                raise LostRecordsError(f"topic {topic} was deleted and created again")
            for entry in topic_answer.partitions:
                if entry.partition_index == partition.number and entry.leader_id in addresses:
                    return addresses[entry.leader_id]
        raise WireError(f"{topic}-{partition.number} has no leader")

    def close(self) -> None:
        """Close the connections."""
        self._forget()

    def _forget(self) -> None:
        self._brokers.close()
        self._leaders.clear()


_readers: dict[tuple[int, Access], LogReader] = {}
"""Spark uses a Python process for many tasks, one at a time: connections are kept."""


def reader_of(access: Access) -> LogReader:
    """Return this process's reader of a cluster. A forked process has its own."""
    return _readers.setdefault((os.getpid(), access), LogReader(access))


def close_readers() -> None:
    """Close what tasks of this process have open; the next task opens it again."""
    for reader in _readers.values():
        reader.close()
    _readers.clear()


def _take(data: Any, delivery: Delivery, offset: int, rows: Rows) -> int:
    """Take the records from `offset` to the delivery's last. Returns the next offset to fetch."""
    for position, header in iterate_headers(data, allow_partial_tail=True):
        if header.base_offset > delivery.last:
            return delivery.last + 1
        if header.last_offset < offset:
            continue
        if not header.is_control and header.record_count:
            kind = 1 if header.timestamp_type is TimestampType.LOG_APPEND_TIME else 0
            records = decode_records_between(data, position, offset, delivery.last)
            rows.records += records
            rows.timestamp_types += [kind] * len(records)
            rows.counts += [delivery.attempt] * len(records)
        offset = header.last_offset + 1
        if offset > delivery.last:
            break
    return offset
