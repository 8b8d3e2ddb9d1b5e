"""Offsets of a directory's logs in its checkpoints.

A future log is named by its partition like any other: no directory holds a log and its copy.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition
from barnabas.node.log.checkpoints import read_offsets, render_offsets, write_offsets
from barnabas.node.log.errors import CorruptCheckpointError
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.log_state import LogState
from barnabas.node.log.names import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
)

telemetry = logging.getLogger(__name__)


class DirectoryOffsets(NamedTuple):
    """Offsets by partition; 0, or none for what was compacted, where a log is not named."""

    recovery_points: Mapping[TopicPartition, int]
    start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    cleaned: Mapping[TopicPartition, int]

    def named(self) -> list[TopicPartition]:
        """Every partition that is named, perhaps more than once."""
        return list(chain(*self))


def read_directory_offsets(disk: Disk, path: str) -> DirectoryOffsets:
    """Read the checkpoints of a directory; damaged ones count as empty. Raises OSError."""
    return DirectoryOffsets(
        _read(disk, f"{path}/{RECOVERY_POINT_FILE}"),
        _read(disk, f"{path}/{LOG_START_OFFSET_FILE}"),
        _read(disk, f"{path}/{HIGH_WATERMARK_FILE}"),
        _read(disk, f"{path}/{CLEANER_OFFSET_FILE}"),
    )


def _read(disk: Disk, path: str) -> Mapping[TopicPartition, int]:
    try:
        return read_offsets(disk, path)
    except CorruptCheckpointError as error:
        telemetry.warning("treating every offset as 0: %s", error)
        return {}


def write_directory_offsets(disk: Disk, path: str, logs: Sequence[LogState], *, sync: bool) -> None:
    """Write all but what was compacted. Raises OSError."""
    for name, offsets in (
        (RECOVERY_POINT_FILE, {log.topic_partition: log.recovery_point for log in logs}),
        (HIGH_WATERMARK_FILE, {log.topic_partition: log.high_watermark for log in logs}),
        (
            LOG_START_OFFSET_FILE,
            # A log that starts with its first segment needs no entry.
            {
                log.topic_partition: log.log_start_offset
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            },
        ),
    ):
        write_offsets(disk, f"{path}/{name}", offsets, sync=sync)


# -- cleaner-offset-checkpoint: how far each log of a directory has been compacted
#
# A log that is named there has gaps that are meant: recovery, which may not know yet what the topic
# is configured to be, leaves them alone. So the file is whole on the medium before the first
# segment is replaced, and replaced only by one that is.


NEW_SUFFIX = ".new"


def write_cleaned(disk: Disk, log_dir: str, logs: Iterable[LogState]) -> None:
    """Replace the file, blocking. Raises OSError."""
    offsets = cleaned_offsets(logs)
    path = f"{log_dir}/{CLEANER_OFFSET_FILE}"
    if offsets or disk.exists(path):
        write_offsets(disk, path, offsets, sync=True)


async def save_cleaned(directory: LogDirectory, logs: Callable[[], Iterable[LogState]]) -> None:
    """Replace the file; it is on the medium when this is done. Raises OSError.

    `logs` gives those of the directory. What they say may change while the file is forced to the
    medium, and another may be in its place by then, so it is only taken if it is still true.
    """
    disk = directory.disk
    path = f"{directory.path}/{CLEANER_OFFSET_FILE}"
    while True:
        content = render_offsets(cleaned_offsets(logs()))
        file = disk.open(path + NEW_SUFFIX, create=True)
        file.truncate(0)
        file.append((content,))
        await disk.fsync_soon([file])
        file.close()
        if content == render_offsets(cleaned_offsets(logs())):
            break
    disk.rename(path + NEW_SUFFIX, path)
    await disk.fsync_soon([], [directory.path])


def cleaned_offsets(logs: Iterable[LogState]) -> dict[TopicPartition, int]:
    """Of the logs that have been compacted, or are about to be."""
    return {
        log.topic_partition: log.cleaned_offset for log in logs if log.cleaned_offset is not None
    }
