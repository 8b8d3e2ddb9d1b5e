"""Asking a leader where its log starts and ends. Source: Kafka's RemoteLeaderEndPoint."""

from barnabas.node.net.client import Peer
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)


class LeaderError(Exception):
    """The leader answered a question about a partition with an error."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


async def ask_offset(
    peer: Peer, replica_id: int, partition: Partition, timestamp: int, timeout_ms: int
) -> int:
    """The end (LATEST) or start (EARLIEST) of the leader's log. Raises LeaderError, OSError."""
    topic, index = partition.topic_partition
    request = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=partition.leader_epoch,
                        timestamp=timestamp,
                    )
                ],
            )
        ],
    )
    response = await peer.send(request, timeout_ms=timeout_ms)
    answers = [answer for topic in response.topics for answer in topic.partitions]
    if len(answers) != 1:
        raise ConnectionError(f"{len(answers)} answers to one question")
    if answers[0].error_code:
        raise LeaderError(ErrorCode.of(answers[0].error_code))
    offset: int = answers[0].offset
    return offset
