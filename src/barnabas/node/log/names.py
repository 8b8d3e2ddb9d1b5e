"""Names of files and directories, as Kafka writes and reads them.

Source: Kafka's LogFileUtils and LocalLog.
"""

from barnabas.base.ids import TopicPartition

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
KRAFT_SNAPSHOT_SUFFIX = ".checkpoint"
KRAFT_SNAPSHOT_DELETED_SUFFIX = ".checkpoint.deleted"

DELETE_DIR_SUFFIX = "-delete"
STRAY_DIR_SUFFIX = "-stray"
FUTURE_DIR_SUFFIX = "-future"

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"
META_PROPERTIES_FILE = "meta.properties"

OFFSET_DIGITS = 20
NAME_LENGTH_MAX = 255

SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def offset_file(directory: str, offset: int, suffix: str) -> str:
    """Path of a file that is named after an offset."""
    return f"{directory}/{offset:020d}{suffix}"


def parse_offset(name: str, suffix: str) -> int | None:
    """The offset in `name` if it is 20 digits and `suffix`; else None."""
    digits = name[:OFFSET_DIGITS]
    if name[OFFSET_DIGITS:] == suffix and digits.isascii() and digits.isdigit():
        return int(digits) if len(digits) == OFFSET_DIGITS else None
    return None


def directory_name(topic_partition: TopicPartition) -> str:
    """`<topic>-<partition>`."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def marked_directory_name(topic_partition: TopicPartition, unique_id: str, suffix: str) -> str:
    """`<topic>-<partition>.<unique id><suffix>`, the topic cut so that 255 characters hold it."""
    tail = f"-{topic_partition.partition}.{unique_id}{suffix}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(tail)] + tail


def future_directory_name(topic_partition: TopicPartition, unique_id: str) -> str:
    """`<topic>-<partition>.<unique id>-future`, never cut: it may be longer than a name may be."""
    return f"{directory_name(topic_partition)}.{unique_id}{FUTURE_DIR_SUFFIX}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition whose directory `name` is, marked for deletion or not; else None."""
    for suffix in (DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX, FUTURE_DIR_SUFFIX):
        if name.endswith(suffix):
            name, dot, _ = name.rpartition(".")
            if not dot:
                return None
            break
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))
