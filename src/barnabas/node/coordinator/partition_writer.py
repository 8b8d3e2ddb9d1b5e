"""The runtime's interface to the log beneath it."""

from collections.abc import Callable, Iterator
from typing import Protocol

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
        """Whether everything before `end_offset`, which this node has, is known as committed.

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
