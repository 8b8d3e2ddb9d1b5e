"""A consumer that is assigned partitions, keeps a position in each and reads on from there."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.node.net.client import Peer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.records import decode_records
from sim.clients import Client
from sim.machine import host_name
from sim.sim_history import Poll

FETCH_WAIT_MS = 200
FETCH_MAX_BYTES = 16 << 10
ASK_AGAIN = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}
"""Errors for which a consumer looks up the leader again and stays where it is."""


@dataclass(slots=True)
class Position:
    """A consumer's position in one partition."""

    next_offset: int = 0
    last_epoch: int = -1
    """Leader epoch of the batch before, -1 for none."""
    high_watermark: int = -1
    """As the last fetch told it; -1 since an error."""
    run: int = 0
    is_damaged: bool = False
    """The leader's copy failed its CRC here; it is asked again."""


class Consumer:
    """See the module. `run_final` reads to the end once; `run` reads until it is stopped."""

    def __init__(
        self,
        client: Client,
        partitions: list[TopicPartition],
        *,
        is_durable: bool = True,
        restarts: bool = True,
    ) -> None:
        self._client = client
        self._is_durable = is_durable
        self._restarts = restarts
        self.positions = {partition: Position() for partition in partitions}
        self.on_records: Callable[[TopicPartition, list[tuple[int, str]]], None] | None = None
        """Told of what is read, (offset, value)."""

    async def run(self) -> None:
        """Read until the client is stopping; now and then begin again at an earlier offset."""
        client = self._client
        while not client.is_stopping:
            await self.poll()
            if self._restarts and client.random.random() < 0.003:
                self._start_over()
            await client.pause(0.0, 0.3)

    async def run_final(self, within_s: float) -> None:
        """Read every partition to its high watermark, and record how far that was."""
        client = self._client
        deadline_s = client.loop.time() + within_s
        left = dict(self.positions)
        while left and client.loop.time() < deadline_s:
            await self.poll(list(left), is_final=True)
            for topic_partition, position in list(left.items()):
                if 0 <= position.high_watermark <= position.next_offset:
                    client.history.final_ends[topic_partition] = position.next_offset
                    del left[topic_partition]
        for topic_partition, position in left.items():
            client.history.saw(
                "unreadable" if position.is_damaged else "unavailable",
                f"{topic_partition} could not be read to its end at "
                f"{client.loop.time():.3f} s: at {position.next_offset}, "
                f"high watermark {position.high_watermark}",
            )

    def _start_over(self) -> None:
        for position in self.positions.values():
            if self._client.random.random() < 0.5:
                position.next_offset = self._client.random.randint(0, position.next_offset)
                position.last_epoch = -1
                position.run += 1

    async def poll(
        self, partitions: list[TopicPartition] | None = None, *, is_final: bool = False
    ) -> None:
        """One fetch from each leader of `partitions` (default: all)."""
        client = self._client
        await client.refresh(list(dict.fromkeys(tp.topic for tp in self.positions)))
        by_leader: dict[Peer, list[TopicPartition]] = {}
        for topic_partition in partitions or self.positions:
            peer = client.leader(topic_partition)
            if peer is not None and topic_partition.topic in client.topic_ids:
                by_leader.setdefault(peer, []).append(topic_partition)
        if not by_leader:
            client.mistrust_metadata()
            await client.back_off()
            return
        outcomes = await asyncio.gather(
            *(self._fetch(peer, wanted, is_final) for peer, wanted in by_leader.items())
        )
        if not all(outcomes):
            client.mistrust_metadata()
            await client.back_off()

    async def _fetch(self, peer: Peer, wanted: list[TopicPartition], is_final: bool) -> bool:
        """Read what one leader has; False if something was not as expected."""
        client = self._client
        try:
            response = await peer.send(self._request(wanted))
        except OSError:
            for topic_partition in wanted:
                self.positions[topic_partition].high_watermark = -1
            return False
        is_good = response.error_code == ErrorCode.NONE
        for topic in response.responses:
            name = client.topic_names.get(topic.topic_id, topic.topic)
            for answer in topic.partitions:
                topic_partition = TopicPartition(name, answer.partition_index)
                is_good = self._take(topic_partition, answer, is_final) and is_good
        return is_good

    def _request(self, wanted: list[TopicPartition]) -> FetchRequest:
        client = self._client
        topics: dict[str, FetchTopic] = {}
        for topic_partition in wanted:
            name = topic_partition.topic
            if name not in topics:
                topics[name] = FetchTopic(topic=name, topic_id=client.topic_ids[name])
            position = self.positions[topic_partition]
            topics[name].partitions.append(
                FetchPartition(
                    partition=topic_partition.partition,
                    current_leader_epoch=client.leaders[topic_partition][1],
                    fetch_offset=position.next_offset,
                    last_fetched_epoch=position.last_epoch,
                    partition_max_bytes=client.random.choice((1, 500, FETCH_MAX_BYTES)),
                )
            )
        return FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_MAX_BYTES * 4,
            topics=list(topics.values()),
        )

    def _take(self, topic_partition: TopicPartition, answer: PartitionData, is_final: bool) -> bool:
        """Move on behind what was read, and record it."""
        client, position = self._client, self.positions[topic_partition]
        error = ErrorCode.of(answer.error_code)
        if error is not ErrorCode.NONE:
            position.high_watermark = -1
            leader = host_name(client.leaders[topic_partition][0])
            if error is ErrorCode.CORRUPT_MESSAGE and leader in client.history.damaged:
                position.is_damaged = True  # as a batch that fails its CRC: another leader may do
            elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._lost_position(topic_partition, f"offset {position.next_offset} is gone")
            elif error not in ASK_AGAIN:
                client.history.saw(
                    "unexpected-error", f"{topic_partition}: a fetch was answered {error.name}"
                )
            return False
        if answer.diverging_epoch.end_offset >= 0:
            self._lost_position(
                topic_partition,
                f"at {position.next_offset} (epoch {position.last_epoch}) the log diverges: "
                f"{answer.diverging_epoch}",
            )
            return False
        try:
            records = self._read(position, answer)
        except CorruptBatchError:
            position.is_damaged = True
            position.high_watermark = -1
            return False
        position.is_damaged = False
        position.high_watermark = answer.high_watermark
        if records:
            poll = Poll(
                client.name,
                topic_partition,
                position.run,
                records,
                client.loop.time(),
                is_final,
            )
            client.history.polls.append(poll)
            if self.on_records is not None:
                self.on_records(topic_partition, records)
        return True

    def _read(self, position: Position, answer: PartitionData) -> list[tuple[int, str]]:
        """The records from the position on. Raises CorruptBatchError."""
        records: list[tuple[int, str]] = []
        data = answer.records
        if not data:
            return records
        for at, header in iterate_headers(data, allow_partial_tail=True):
            if not check_crc(data, at, header):
                if records:
                    break  # the next fetch begins with the damage
                raise CorruptBatchError("a batch fails its CRC")
            for record in decode_records(data, at):
                if record.offset >= position.next_offset:
                    value = (record.value or b"").decode("utf-8", "replace")
                    records.append((record.offset, value.partition(" ")[0]))
            position.next_offset = max(position.next_offset, header.next_offset)
            position.last_epoch = header.partition_leader_epoch
        return records

    def _lost_position(self, topic_partition: TopicPartition, why: str) -> None:
        """What was committed when it was read is gone: an anomaly where records must last."""
        client, position = self._client, self.positions[topic_partition]
        if self._is_durable:
            client.history.saw(
                "position-lost",
                f"{topic_partition}: {client.name} at {client.loop.time():.3f} s: {why}",
            )
        position.next_offset = 0
        position.last_epoch = -1
        position.run += 1
