"""Bringing the producers of a log back: from the last good snapshot, and the batches after it.

Source: Kafka's ProducerStateManager.truncateAndReload and UnifiedLog.rebuildProducerState.
"""

import logging

from barnabas.node.log.batch_walk import read_batch
from barnabas.node.log.errors import CorruptSnapshotError
from barnabas.node.log.log_state import LogState
from barnabas.node.log.names import SNAPSHOT_SUFFIX, offset_file, parse_offset
from barnabas.node.log.producers.replay import record_batch
from barnabas.node.log.producers.snapshot import parse_snapshot
from barnabas.node.log.segment import Segment
from barnabas.protocol.errors import DecodeError

telemetry = logging.getLogger(__name__)


def load_producers(log: LogState, end_offset: int, *, is_clean: bool = False) -> None:
    """Make the state that holds at `end_offset`. Raises OSError.

    After a clean shutdown without any snapshot there are no producers: the log was not scanned
    when it had none.
    """
    start_offset, any_snapshot = _load_snapshot(log, end_offset)
    if any_snapshot or not is_clean:
        _replay(log, start_offset, end_offset)


def snapshot_offsets(log: LogState) -> list[int]:
    """The offsets of the snapshots in the log's directory, ascending."""
    offsets = (
        parse_offset(name, SNAPSHOT_SUFFIX) for name in log.log_directory.disk.list(log.directory)
    )
    return sorted(offset for offset in offsets if offset is not None)


def _load_snapshot(log: LogState, end_offset: int) -> tuple[int, bool]:
    """Load the newest good snapshot.

    Returns (its offset or the log start, whether there were any, good or bad).
    """
    state = log.producers
    disk = log.log_directory.disk
    any_snapshot = False
    for offset in reversed(snapshot_offsets(log)):
        if not log.log_start_offset < offset <= end_offset:
            continue
        any_snapshot = True
        path = offset_file(log.directory, offset, SNAPSHOT_SUFFIX)
        try:
            state.load(parse_snapshot(disk.read(path)))
        except CorruptSnapshotError as error:
            telemetry.warning("%s: dropping %s: %s", log.topic_partition, path, error)
            disk.remove(path)
            log.flusher.forget(path)
            continue
        state.snapshot_offset = offset
        return offset, True
    state.clear()
    state.snapshot_offset = log.log_start_offset
    return log.log_start_offset, any_snapshot


def _replay(log: LogState, start_offset: int, end_offset: int) -> None:
    """Record the batches in [start_offset, end_offset)."""
    if start_offset >= end_offset:
        return
    for segment in log.segments[log.segment_index(start_offset) :]:
        if segment.base_offset >= end_offset:
            return
        try:
            _replay_segment(log, segment, start_offset, end_offset)
        except DecodeError as error:
            telemetry.error(
                "%s: skipping the rest of its batches: %s", segment.files.log_path, error
            )


def _replay_segment(log: LogState, segment: Segment, start_offset: int, end_offset: int) -> None:
    """Record the batches of one segment, each where its neighbours say that it stands.

    A batch whose offset is garbled must not hide those behind it: their producers' sequences
    would be taken for new, and what they wrote would be written twice.
    """
    file = segment.file()
    for position, header, is_placed in segment.walk_from(start_offset):
        if header.base_offset >= end_offset:
            return
        if not is_placed:
            telemetry.error("%s: a batch is misplaced at %d", segment.files.log_path, position)
        if header.producer_id >= 0 and header.next_offset > start_offset:
            # Only a marker's record is looked at; of other batches the header says all.
            data = read_batch(file, position, header) if header.is_control else b""
            record_batch(log.producers, header, data, 0)


def drop_stray_snapshots(log: LogState) -> None:
    """Keep the snapshots at the start of a segment, and the newest above all segments."""
    bases = {segment.base_offset for segment in log.segments}
    offsets = snapshot_offsets(log)
    newest = offsets[-1] if offsets else -1
    for offset in offsets:
        if offset not in bases and (offset != newest or offset < log.active.base_offset):
            log.log_directory.disk.remove(offset_file(log.directory, offset, SNAPSHOT_SUFFIX))
