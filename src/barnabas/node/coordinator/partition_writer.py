"""The runtime's interface to its internal topic, and the topic's errors as clients get them."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from barnabas.base.disk import Buffer
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.protocol.errors import ErrorCode


class PartitionWriter(Protocol):
    """The partitions of one internal topic, as their leader."""

    def append(self, partition: int, batch: bytearray, terms: AppendTerms | None = None) -> int:
        """Append one batch; return the offset after it. Offsets are patched into `batch`.

        `terms` bind a batch or marker of a transaction.
        Raises CoordinatorWriteError, and then nothing was appended.
        """

    def append_plain(
        self, partition: int, batch: bytearray, size_bytes_bound: int
    ) -> tuple[int, bool]:
        """As `append`, of what no transaction binds: (the offset after it, whether committed).

        Raises CoordinatorWriteError also where `size_bytes_bound` is above the largest batch.
        """

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """Return whether all before `end_offset`, which this node has, is known as committed.

        False where that is not known yet, or cannot be: `when_committed` tells.
        """

    def when_committed(
        self, partition: int, end_offset: int, callback: Callable[[ErrorCode], None]
    ) -> None:
        """Call back once everything before `end_offset` is committed, at once if it is.

        The callback gets NONE, or why it cannot be known any more (leadership or disk lost).
        """

    def read_all(self, partition: int) -> Iterator[Buffer]:
        """The partition from its start to its end, in parts of whole batches, bounded in size.

        Raises CoordinatorWriteError where the partition cannot be read.
        """

    def batch_size_bytes_max(self, partition: int) -> int:
        """The largest batch that the partition takes (`max.message.bytes`)."""


class CoordinatorWriteError(Exception):
    """The partition did not accept a batch, and appended none of its records."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


_SEEN_AS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """Return the code that clients get if the log failed with `error`.

    Source: Kafka's CoordinatorOperationExceptionHelper.
    """
    return _SEEN_AS.get(error, error)
