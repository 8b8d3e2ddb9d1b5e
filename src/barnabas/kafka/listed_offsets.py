"""Offsets that librdkafka's admin client lists where the leader of a partition may be dead.

For partitions whose leader did not answer it gives the offset -1001 and no error: it begins with
that, merges the leaders' answers into it, and a request that failed has nothing to merge
(rd_kafka_ListOffsets_response_merge in librdkafka 2.16). And it goes on asking that leader for
minutes after others have taken its place, since nothing makes it ask who leads now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

T = TypeVar("T")
Listed = dict[tuple[str, int], int]
"""Offsets by topic and partition."""


def told_offset(answer: ListOffsetsResultInfo) -> int:
    """Return the offset of a partition; -1 where no record is of the time that was asked for.

    Raises KafkaException, as of a request that timed out.
    """
    offset = int(answer.offset)
    if offset == OFFSET_INVALID:
        reason = "the partition's leader did not answer"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason))
    return offset


class OffsetLister:
    """Lists offsets. After a failure it has a new client, which asks who leads."""

    def __init__(self, make_client: Callable[[], AdminClient]) -> None:
        self._make_client = make_client
        self._client: AdminClient | None = None

    def list(
        self,
        asked: Mapping[TopicPartition, OffsetSpec],
        timeout_s: float,
        isolation: IsolationLevel | None = None,
    ) -> Listed:
        """Return the offset of each partition. Raises KafkaException."""
        more: dict[str, Any] = {} if isolation is None else {"isolation_level": isolation}
        if self._client is None:
            self._client = self._make_client()
        try:
            return _told(self._client.list_offsets(dict(asked), request_timeout=timeout_s, **more))
        except KafkaException:
            self._client = None
            raise

    def close(self) -> None:
        """Let go of the client."""
        self._client = None


def answer_of(future: Future[T], timeout_s: float | None = None) -> T:
    """Return an admin client's answer. Raises KafkaException, TimeoutError.

    `result` raises the error that the future has, whose traceback then has the future. Such a cycle
    keeps what all callers have, clients among them, until the garbage collector comes by; where
    that is in one of a client's own threads, librdkafka aborts.
    """
    failure = future.exception(timeout_s)
    if isinstance(failure, KafkaException):
        raise KafkaException(*failure.args)
    return future.result()


def _told(futures: Mapping[TopicPartition, Future[ListOffsetsResultInfo]]) -> Listed:
    return {
        (str(place.topic), int(place.partition)): told_offset(answer_of(future))
        for place, future in futures.items()
    }
