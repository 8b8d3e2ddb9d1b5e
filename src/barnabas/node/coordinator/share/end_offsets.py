"""End offsets of partitions, from which the lag of a share group is counted.

Partitions that this node leads are looked at; the leaders of others are asked with ListOffsets, one
request for all of a leader's. A leader that has moved is looked for again a few times.
Source: Kafka's NetworkPartitionMetadataClient.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.base.backoff import doubled
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.node.loop.pauses import pause
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.well_known import CONSUMER_ID, LATEST

ATTEMPTS_MAX: Final = 5
PAUSE_MS: Final = 100
"""The first pause; each is twice the one before."""
PAUSE_MAX_MS: Final = PAUSE_MS << (ATTEMPTS_MAX - 2)
RETRIABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)

Ends = dict[TopicPartition, int | ErrorCode]


class EndOffsets:
    """Tells the high watermarks of partitions anywhere in the cluster."""

    def __init__(
        self,
        clock: Clock,
        peers: BrokerPeers,
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
    ) -> None:
        self._node_id = peers.node_id
        self._clock = clock
        self._leaders = peers.channel("end-offsets")
        self._image = image
        self._replicas = replicas

    def close(self) -> None:
        """Ask nobody any more."""
        self._leaders.close()

    async def find(self, partitions: Iterable[TopicPartition]) -> Ends:
        """The end of each partition, or why it cannot be told."""
        ends: Ends = {}
        wanted = list(dict.fromkeys(partitions))
        for attempt in range(1, ATTEMPTS_MAX + 1):
            ends |= await self._find_once(wanted)
            wanted = [place for place in wanted if _may_pass(ends[place])]
            if not wanted or attempt == ATTEMPTS_MAX:
                break
            await pause(self._clock, doubled(PAUSE_MS, PAUSE_MAX_MS, attempt - 1))
        return ends

    async def _find_once(self, wanted: list[TopicPartition]) -> Ends:
        ends: Ends = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        for place in wanted:
            image = self._image().topics.partition(*place)
            if image is None:
                ends[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif image.leader == self._node_id:
                ends[place] = self._here(place)
            else:
                elsewhere.setdefault(image.leader, []).append(place)
        answers = await asyncio.gather(
            *(self._ask(node_id, places) for node_id, places in elsewhere.items())
        )
        for answer in answers:
            ends |= answer
        return ends

    def _here(self, place: TopicPartition) -> int | ErrorCode:
        partition = self._replicas.find(*place)
        if not isinstance(partition, Partition):
            return partition
        return partition.high_watermark if partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def _ask(self, node_id: int, places: list[TopicPartition]) -> Ends:
        if not self._leaders.reaches(node_id):
            return dict.fromkeys(places, ErrorCode.LEADER_NOT_AVAILABLE)
        ends: Ends = dict.fromkeys(places, ErrorCode.NETWORK_EXCEPTION)
        try:
            response = await self._leaders.ask(node_id, _request(places))
        except OSError:
            return ends
        for topic in response.topics:
            for answer in topic.partitions:
                place = TopicPartition(topic.name, answer.partition_index)
                error = ErrorCode.of(answer.error_code)
                ends[place] = error or answer.offset
        return ends


def _may_pass(outcome: int | ErrorCode) -> bool:
    """Return whether it is an error that may pass. An end of 6 equals NOT_LEADER_OR_FOLLOWER."""
    return isinstance(outcome, ErrorCode) and outcome in RETRIABLE


def _request(places: list[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    return ListOffsetsRequest(
        replica_id=CONSUMER_ID,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=LATEST)
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
