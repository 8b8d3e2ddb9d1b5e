"""Small text files that Kafka keeps: offset checkpoints, epochs, topic id, clean shutdown.

A checkpoint is a version line, a count line and that many entries, one a line. Source: Kafka's
CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile and
CleanShutdownFileHandler (KIP-966 put the broker epoch into the latter).
"""

import json
from collections.abc import Iterable, Mapping

from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition, Uuid, uuid_from_text, uuid_to_text
from barnabas.node.log.errors import CorruptCheckpointError
from barnabas.node.log.names import CLEAN_SHUTDOWN_FILE, LEADER_EPOCH_FILE, PARTITION_METADATA_FILE

VERSION = 0
NO_BROKER_EPOCH = -1
EPOCH_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint: one offset for each partition; empty if there is no file.

    Raises CorruptCheckpointError for a malformed file.
    """
    offsets = {}
    for line in _read_entries(disk, path):
        words = line.split(" ")
        try:
            topic, partition, offset = words
            offsets[TopicPartition(topic, _number(partition))] = _number(offset)
        except ValueError as error:
            raise CorruptCheckpointError(f"{path}: {line!r} is not an entry") from error
    return offsets


def write_offsets(
    disk: Disk, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool
) -> None:
    """Replace an offset checkpoint."""
    disk.write_atomic(path, render_offsets(offsets), sync=sync)


def render_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The content of an offset checkpoint."""
    return _render(
        f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()
    )


def read_epochs(disk: Disk, directory: str) -> list[tuple[int, int]]:
    """A log's leader epochs as (epoch, start offset), ascending; empty if there is no file.

    Raises CorruptCheckpointError for a malformed file, or for entries out of order.
    """
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    epochs: list[tuple[int, int]] = []
    for line in _read_entries(disk, path):
        try:
            epoch, start_offset = map(_number, line.split(" "))
        except ValueError as error:
            raise CorruptCheckpointError(f"{path}: {line!r} is not an entry") from error
        if epoch > EPOCH_MAX or (
            epochs and (epoch <= epochs[-1][0] or start_offset <= epochs[-1][1])
        ):
            raise CorruptCheckpointError(f"{path}: {line!r} is out of place")
        epochs.append((epoch, start_offset))
    return epochs


def write_epochs(disk: Disk, directory: str, epochs: Iterable[tuple[int, int]]) -> None:
    """Replace a log's leader epochs; not synced, since the log's flush does that."""
    entries = (f"{epoch} {start_offset}" for epoch, start_offset in epochs)
    disk.write_atomic(f"{directory}/{LEADER_EPOCH_FILE}", _render(entries), sync=False)


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """The topic id in a log's partition.metadata; None if there is no (or an empty) file.

    Raises CorruptCheckpointError for a malformed file.
    """
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    text = _read_text(disk, path)
    if not text:
        return None
    fields = dict(line.partition(": ")[::2] for line in text.splitlines())
    try:
        if int(fields["version"]) != VERSION:
            raise CorruptCheckpointError(f"{path} has version {fields['version']}")
        return uuid_from_text(fields["topic_id"])
    except (KeyError, ValueError) as error:
        raise CorruptCheckpointError(f"{path} holds no topic id") from error


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Write a log's partition.metadata; not synced, since the log's flush does that.

    Written in place, at half the cost of replacing it: one that a crash left without an id, or
    with a part of it, counts as none, and the image knows.
    """
    text = f"version: {VERSION}\ntopic_id: {uuid_to_text(topic_id)}"
    file = disk.open(f"{directory}/{PARTITION_METADATA_FILE}", create=True)
    try:
        if file.size():
            file.truncate(0)
        file.append((text.encode(),))
    finally:
        file.close()


def take_clean_shutdown(disk: Disk, log_dir: str) -> int | None:
    """Remove the marker of a clean shutdown; the broker epoch in it, -1 if it has none.

    None if there is no marker: the directory is to be recovered. The marker goes first, so that
    a crash while loading counts as one.
    """
    path = f"{log_dir}/{CLEAN_SHUTDOWN_FILE}"
    if not disk.exists(path):
        return None
    data = disk.read(path)
    disk.remove(path)
    disk.sync_dir(log_dir)
    try:
        content = json.loads(data)
        return int(content["brokerEpoch"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return NO_BROKER_EPOCH


def write_clean_shutdown(disk: Disk, log_dir: str, broker_epoch: int) -> None:
    """Mark that everything in `log_dir` is flushed and checkpointed."""
    text = f'{{"version":{VERSION},"brokerEpoch":{broker_epoch}}}'
    disk.write_atomic(f"{log_dir}/{CLEAN_SHUTDOWN_FILE}", text.encode())


def _render(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()


def _read_entries(disk: Disk, path: str) -> list[str]:
    lines = _read_text(disk, path).splitlines()
    if not lines:
        return []
    try:
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError) as error:
        raise CorruptCheckpointError(f"{path} has no version and count") from error
    entries = [line for line in lines[2:] if line]
    if version != VERSION:
        raise CorruptCheckpointError(f"{path} has version {version}")
    if len(entries) != count:
        raise CorruptCheckpointError(f"{path} has {len(entries)} entries, not {count}")
    return entries


def _number(text: str) -> int:
    """Raises ValueError for what is not an offset or number, of a partition or an epoch."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} is not a number")
    number = int(text)
    if number > OFFSET_MAX:
        raise ValueError(f"{number} is too large")
    return number


def _read_text(disk: Disk, path: str) -> str:
    """The file's text; '' without one."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(f"{path} is not text") from error
