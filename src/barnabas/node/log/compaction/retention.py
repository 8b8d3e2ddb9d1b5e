"""Retention rules of compaction: the records of a batch that stay.

A record stays if no later one has its key, as far as the map of this round knows. A tombstone also
goes once its delete horizon has passed: that is set, `delete.retention.ms` ahead, by the first
round that meets it, and kept in the batch (KIP-534). Transaction markers have such a horizon too,
from the first round that finds no data of their transaction.

A batch that loses all records leaves its header where something would be lost with it: the last
sequence number of an active producer, or where the round ended. Not where each segment ends, as
would be useful to recovery: librdkafka takes a few fetches in a row that have no record for a
sign that its buffers are too small, and fails in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from operator import le

from barnabas.base.disk import Buffer
from barnabas.node.log.compaction.job import LastRecord
from barnabas.node.log.compaction.offset_map import OffsetMap, fingerprints
from barnabas.node.log.compaction.rewrite import keep_header, keep_records
from barnabas.node.log.compaction.scan import (
    Scan,
    decompress_batch,
    offsets_of,
    require_crc,
    scan_records,
)
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.producers.replay import read_marker
from barnabas.protocol.records.batch import BatchHeader


class BatchFilter:
    """Applies one round's map to batches, in the order of the log."""

    __slots__ = (
        "_delete_retention_ms",
        "_end_offset",
        "_map",
        "_now_ms",
        "_plain_from",
        "_producers",
        "_transactions",
        "keyless_records",
        "records_read",
        "records_written",
    )

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: TransactionTracker,
        producers: Mapping[int, LastRecord],
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """`offset_map` is filled before the first batch is asked for."""
        self._map = offset_map
        self._transactions = transactions
        self._producers = producers
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._plain_from: int | None = None
        self.records_read = self.records_written = self.keyless_records = 0

    def trust_map_from(self, offset: int) -> None:
        """From here on, each record that is not transactional went through the map, by its key.

        Those of transactions may have been left out, as belonging to one that was aborted.
        """
        self._plain_from = offset

    def is_superseded(self, header: BatchHeader) -> bool:
        """Return whether it can be told without the batch that none of its records stays."""
        return (
            self._is_plain(header)
            and header.record_count > 0
            and not self._map.survivors.is_any_between(header.base_offset, header.last_offset)
        )

    def _is_plain(self, header: BatchHeader) -> bool:
        """Return whether what stays of the batch are the survivors of the map."""
        return (
            self._plain_from is not None
            and self._plain_from <= header.base_offset
            and header.last_offset <= self._map.latest_offset
            and not header.is_transactional
            and not header.is_control
        )

    def keep(
        self, header: BatchHeader, buffer: bytes, position: int
    ) -> BatchHeader | bytearray | None:
        """Return what stays of the batch at `position`: `header` for all of it, or a new batch.

        None: nothing stays. Raises CorruptBatchError.
        """
        self.records_read += header.record_count
        if self.is_superseded(header):
            return self._keep_nothing(header)
        require_crc(buffer, position, header)
        horizon_ms = header.delete_horizon_ms
        is_over = horizon_ms is not None and horizon_ms <= self._now_ms
        if header.is_control:
            is_empty_txn = self._transactions.is_marker_discardable(header, buffer, position)
            is_discarded = is_empty_txn and is_over
        else:
            is_empty_txn = False
            is_discarded = self._transactions.is_data_discarded(header)
        if not is_discarded and header.record_count:
            scan = scan_records(*decompress_batch(buffer, position, header), header.record_count)
            kept = (
                range(header.record_count)
                if header.is_control
                else self._kept(header, scan, keep_tombstones=not is_over)
            )
            if kept:
                self.records_written += len(kept)
                has_tombstones = scan.tombstones and not set(kept).isdisjoint(scan.tombstones)
                if horizon_ms is None and (is_empty_txn or has_tombstones):
                    horizon_ms = self._now_ms + self._delete_retention_ms
                    return keep_records(header, scan, kept, horizon_ms)
                if len(kept) == header.record_count:
                    return header
                return keep_records(header, scan, kept, None)
        return self._keep_nothing(header)

    def _keep_nothing(self, header: BatchHeader) -> BatchHeader | bytearray | None:
        """Return what must stay although no record stays."""
        if header.next_offset == self._end_offset or self._is_producers_last(header):
            return keep_header(header) if header.record_count else header
        return None

    def _kept(self, header: BatchHeader, scan: Scan, *, keep_tombstones: bool) -> Sequence[int]:
        """Indexes of the data records that stay."""
        offset_map = self._map
        base, deltas = header.base_offset, scan.deltas
        if header.last_offset > offset_map.latest_offset or scan.is_keyless:
            return self._kept_slowly(header, scan, keep_tombstones=keep_tombstones)
        kept: Sequence[int]
        if isinstance(deltas, range) and self._is_plain(header):
            survivors = offset_map.survivors.between(base, header.last_offset)
            if len(survivors) == len(deltas):
                kept = deltas
            else:
                kept = [offset - base for offset in survivors]
        else:
            keys: Sequence[bytes] = scan.keys  # type: ignore[assignment]  # none is None
            prints = fingerprints(keys, scan.key_size_max)
            offsets = offsets_of(scan, base)
            stays = map(le, map(offset_map.get, prints, offsets), offsets)
            kept = list(compress(range(len(offsets)), stays))
        if not keep_tombstones and scan.tombstones:
            tombstones = set(scan.tombstones)
            kept = [index for index in kept if index not in tombstones]
        return kept

    def _kept_slowly(
        self, header: BatchHeader, scan: Scan, *, keep_tombstones: bool
    ) -> Sequence[int]:
        """The same where records lie beyond the map, or have no key."""
        offset_map = self._map
        tombstones = set(scan.tombstones)
        kept = []
        for index, (key, delta) in enumerate(zip(scan.keys, scan.deltas, strict=True)):
            offset = header.base_offset + delta
            if offset > offset_map.latest_offset:
                kept.append(index)
            elif key is None:
                self.keyless_records += 1
            else:
                latest = offset_map.get(fingerprints((key,), len(key))[0])
                if (latest is None or latest <= offset) and (
                    keep_tombstones or index not in tombstones
                ):
                    kept.append(index)
        return kept

    def _is_producers_last(self, header: BatchHeader) -> bool:
        """Return whether this batch is the only source of an active producer's state."""
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch


# -- transactional batches that compaction drops: aborted ones, and markers that mark nothing
#
# Data of an aborted transaction goes at once. A marker goes once a whole round has not seen any
# data of its transaction, and its delete horizon has passed after that: readers that are in the
# middle of the transaction need it until then. Source: Kafka's CleanedTransactionMetadata.


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
