"""What transactions left in a partition: what its markers say, and what `read_committed` shows."""

from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.control import EndTxn, decode_control
from barnabas.protocol.records.records import decode_records
from barnabas.protocol.well_known import READ_COMMITTED
from sim.clients import Client


class Auditor:
    """Reads partitions to their ends, in peace or under faults."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, partition: TopicPartition) -> list[tuple[int, str]]:
        """(offset, value) of what the markers commit; what is shown must be the same.

        Nothing but an anomaly where a transaction is left open.
        """
        history = self._client.history
        truth: list[tuple[int, str]] = []
        open_values: dict[int, list[tuple[int, str]]] = {}
        offset = 0
        end = None
        while end is None or offset < end:
            answer = await self.fetch(partition, offset, isolation_level=0)
            end = answer.high_watermark
            stable = (await self.fetch(partition, offset)).last_stable_offset
            if stable < end:
                history.saw("open-transaction", f"{partition}: {stable} is stable of {end}")
                return truth
            data = answer.records or b""
            for position, header in iterate_headers(data, allow_partial_tail=True):
                if header.next_offset <= offset:
                    continue
                offset = header.next_offset
                for record in decode_records(data, position):
                    if header.is_control:
                        marker = decode_control(record)
                        assert isinstance(marker, EndTxn)
                        values = open_values.pop(header.producer_id, [])
                        if marker.is_commit:
                            truth += values
                        continue
                    value = (record.offset, bytes(record.value or b"").decode())
                    open_values.setdefault(header.producer_id, []).append(value)
        truth.sort()
        shown: list[tuple[int, str]] = []
        offset = 0
        while offset < end:
            answer = await self.fetch(partition, offset)
            visible, offset = visible_records(answer, offset)
            shown += visible
        if shown != truth:
            history.saw("aborted-read", f"{partition}: {shown} shown of {truth}")
        return truth

    async def fetch(
        self, partition: TopicPartition, offset: int, *, isolation_level: int = READ_COMMITTED
    ) -> Any:
        """One answer without an error, however long that takes."""
        while True:
            answer = await fetch_once(
                self._client, partition, offset, isolation_level=isolation_level
            )
            if answer is not None:
                return answer
            self._client.mistrust_metadata()
            await self._client.back_off()


async def fetch_once(
    client: Client,
    partition: TopicPartition,
    offset: int,
    *,
    isolation_level: int = READ_COMMITTED,
    max_wait_ms: int = 0,
) -> Any | None:
    """One attempt; None if it came to nothing."""
    if partition.topic not in client.topic_ids:
        client.mistrust_metadata()  # what is fresh is about other topics
    await client.refresh([partition.topic])
    peer = client.leader(partition)
    if peer is None or partition.topic not in client.topic_ids:
        return None
    request = FetchRequest(
        isolation_level=isolation_level,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic_id=client.topic_ids[partition.topic],
                partitions=[
                    FetchPartition(
                        partition=partition.partition,
                        fetch_offset=offset,
                        partition_max_bytes=1 << 16,
                    )
                ],
            )
        ],
    )
    try:
        response = await peer.send(request)
    except OSError:
        return None
    if not response.responses:
        return None
    (answer,) = response.responses[0].partitions
    return None if answer.error_code else answer


def visible_records(answer: Any, offset: int) -> tuple[list[tuple[int, str]], int]:
    """Return the records that a `read_committed` consumer delivers, and its next offset.

    As Kafka's consumer does: a producer's records are left out from where a transaction that
    the answer names as aborted begins, up to its marker.
    """
    visible: list[tuple[int, str]] = []
    hidden: set[int] = set()
    starts = sorted(
        (one.first_offset, one.producer_id) for one in answer.aborted_transactions or []
    )
    data = answer.records or b""
    for position, header in iterate_headers(data, allow_partial_tail=True):
        while starts and starts[0][0] <= header.last_offset:
            hidden.add(starts.pop(0)[1])
        for record in decode_records(data, position):
            if header.is_control:
                marker = decode_control(record)
                if isinstance(marker, EndTxn) and not marker.is_commit:
                    hidden.discard(header.producer_id)
            elif header.producer_id not in hidden and record.offset >= offset:
                visible.append((record.offset, bytes(record.value or b"").decode()))
        offset = max(offset, header.next_offset)
    return visible, offset


def sound_part(data: bytes, offset: int, *, is_distrusted: bool) -> bytes:
    """What a reader that goes on at `offset` takes of an answer: all before the first damage.

    A batch that fails its CRC is damage, as it is to Kafka's consumer. Where a batch stands is
    not covered by that: a node that sends a range of a file does not see that an offset in it
    has lost a bit, and Kafka's consumer goes on where that leads. Nobody can ask that a reader
    sees all then; of a node whose files were damaged on purpose (`is_distrusted`) it takes no
    batch that does not begin where the one before ended, which no log here does by itself.
    """
    end = 0
    try:
        for position, header in iterate_headers(data, allow_partial_tail=True):
            stands_well = header.base_offset <= offset < header.next_offset
            if not check_crc(data, position, header) or (is_distrusted and not stands_well):
                break
            offset = header.next_offset
            end = position + header.size_bytes
    except CorruptBatchError:
        return data[:end]  # what follows is not a batch
    return data[:end]
