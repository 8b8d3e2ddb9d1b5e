"""Producer snapshots: the producers of a log as of the offset in the file's name.

A version i16 and the message ProducerSnapshot, whose CRC-32C covers all after itself. Version 1;
only each producer's last batch is kept. Source: Kafka's ProducerStateManager.
"""

from collections.abc import Iterable

from barnabas.base.checksum import crc32c
from barnabas.node.log.errors import CorruptSnapshotError
from barnabas.node.log.producers.entry import ProducedBatch, ProducerEntry
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.storage_records import ProducerEntry as StoredEntry
from barnabas.protocol.messages.storage_records import ProducerSnapshot
from barnabas.protocol.records.batch import NO_OFFSET

VERSION = 1
VERSION_SIZE_BYTES = 2
ENTRIES_POSITION = 6


def render_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of a snapshot file."""
    snapshot = ProducerSnapshot(
        producer_entries=[
            StoredEntry(
                producer_id=entry.producer_id,
                epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_offset=entry.last_offset,
                offset_delta=entry.last_offset_delta,
                timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_first_offset=entry.txn_first_offset,
            )
            for entry in entries
        ]
    )
    data = bytearray(VERSION.to_bytes(VERSION_SIZE_BYTES, "big") + encode(snapshot, VERSION))
    checksum: int = crc32c(memoryview(data)[ENTRIES_POSITION:])
    data[VERSION_SIZE_BYTES:ENTRIES_POSITION] = checksum.to_bytes(4, "big")
    return bytes(data)


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers in a snapshot file. Raises CorruptSnapshotError."""
    if len(data) < ENTRIES_POSITION:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few for a producer snapshot")
    version = int.from_bytes(data[:VERSION_SIZE_BYTES], "big")
    if version != VERSION:
        raise CorruptSnapshotError(f"a producer snapshot of version {version} is unknown")
    checksum = int.from_bytes(data[VERSION_SIZE_BYTES:ENTRIES_POSITION], "big")
    if crc32c(memoryview(data)[ENTRIES_POSITION:]) != checksum:
        raise CorruptSnapshotError("the producer snapshot fails its CRC")
    try:
        snapshot = decode(ProducerSnapshot, VERSION, data[VERSION_SIZE_BYTES:])
    except DecodeError as error:
        raise CorruptSnapshotError(str(error)) from error
    return [_load(stored) for stored in snapshot.producer_entries]


def _load(stored: StoredEntry) -> ProducerEntry:
    entry = ProducerEntry(
        stored.producer_id,
        stored.epoch,
        stored.coordinator_epoch,
        stored.timestamp,
        max(stored.current_txn_first_offset, NO_OFFSET),
    )
    if stored.last_offset >= 0:
        entry.batches.append(
            ProducedBatch(
                stored.last_sequence, stored.last_offset, stored.offset_delta, stored.timestamp
            )
        )
    return entry
