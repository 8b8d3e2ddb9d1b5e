"""Transactional batches that compaction drops: aborted ones, and markers that mark nothing.

Data of an aborted transaction goes at once. A marker goes once a whole round has not seen any data
of its transaction, and its delete horizon has passed after that: readers that are in the middle
of the transaction need it until then. Source: Kafka's CleanedTransactionMetadata.
"""

from collections.abc import Iterable

from barnabas.base.disk import Buffer
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.producers.replay import read_marker
from barnabas.protocol.records.batch import BatchHeader


class TransactionTracker:
    """Follows the transactions of a log through its batches, which are shown to it in order."""

    __slots__ = ("_aborted", "_next", "_open_aborted", "_seen_committed", "kept_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted`: all that were aborted and have data at or after where the batches begin."""
        self._aborted = sorted(aborted, key=lambda entry: (entry.first_offset, entry.last_offset))
        self._next = 0
        self._open_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """Producer id → its aborted transaction under way here, whether data of it was seen."""
        self._seen_committed: set[int] = set()
        self.kept_aborted: list[AbortedTransaction] = []
        """Those whose marker was seen and stays, to be taken by who writes the index."""

    def is_data_discarded(self, header: BatchHeader) -> bool:
        """Take a data batch; whether it belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        aborted = self._open_aborted.get(producer_id)
        if aborted is None:
            self._seen_committed.add(producer_id)
            return False
        self._open_aborted[producer_id] = (aborted[0], True)
        return True

    def is_marker_discardable(self, header: BatchHeader, buffer: Buffer, position: int) -> bool:
        """Take a control batch; whether nothing of what it ends was seen."""
        self._reach(header.last_offset)
        if not header.record_count:
            return True
        marker = read_marker(buffer, position)
        if marker is None:
            return False
        if marker[0].is_commit:
            is_seen = header.producer_id in self._seen_committed
            self._seen_committed.discard(header.producer_id)
            return not is_seen
        entry, is_seen = self._open_aborted.pop(header.producer_id, (None, False))
        if entry is not None and is_seen:
            self.kept_aborted.append(entry)
        return not is_seen

    def _reach(self, offset: int) -> None:
        aborted = self._aborted
        while self._next < len(aborted) and aborted[self._next].first_offset <= offset:
            entry = aborted[self._next]
            self._next += 1
            self._open_aborted.setdefault(entry.producer_id, (entry, False))
