"""cleaner-offset-checkpoint: how far each log of a directory has been compacted.

A log that is named there has gaps that are meant: recovery, which may not know yet what the topic
is configured to be, leaves them alone. So the file is whole on the medium before the first segment
is replaced, and replaced only by one that is.
"""

from collections.abc import Callable, Iterable

from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition
from barnabas.node.log.checkpoints import render_offsets, write_offsets
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.log_state import LogState
from barnabas.node.log.names import CLEANER_OFFSET_FILE

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
