"""`bootstrap.checkpoint`: the first records of a cluster, as `storage format` leaves them.

Source: Kafka's BootstrapDirectory and BootstrapMetadata.
"""

from collections.abc import Mapping

from barnabas.base.disk import Disk
from barnabas.node.metadata.records import MetadataRecord, decode_record, encode_record
from barnabas.node.raft.snapshot_files import SnapshotError, decode_snapshot, encode_snapshot
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.features import KRAFT_VERSION, LATEST_METADATA_VERSION, METADATA_VERSION
from barnabas.protocol.messages.metadata_records import FeatureLevelRecord

FILE_NAME = "bootstrap.checkpoint"


def feature_records(levels: Mapping[str, int]) -> list[MetadataRecord]:
    """Feature levels as bootstrap records: metadata.version first, then what is above 0.

    kraft.version belongs to the quorum and is in its own control record.
    """
    names = sorted(
        name
        for name, level in levels.items()
        if level > 0 and name not in (METADATA_VERSION, KRAFT_VERSION)
    )
    return [
        MetadataRecord(FeatureLevelRecord(name=name, feature_level=levels[name]))
        for name in (METADATA_VERSION, *names)
    ]


def write_bootstrap(
    disk: Disk, directory: str, records: list[MetadataRecord], *, now_ms: int
) -> None:
    """Write the file into a log directory and force it to the medium."""
    batches = encode_snapshot([encode_record(record) for record in records], now_ms=now_ms)
    disk.write_atomic(f"{directory}/{FILE_NAME}", b"".join(batches))


def read_bootstrap(disk: Disk, directory: str) -> list[MetadataRecord]:
    """The first records for a cluster whose metadata log is empty.

    Without a file, the latest metadata.version alone, as Kafka does. Raises SnapshotError for a
    damaged file, and OSError.
    """
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return feature_records({METADATA_VERSION: LATEST_METADATA_VERSION})
    try:
        return [decode_record(value) for value in decode_snapshot(disk.read(path)).values]
    except DecodeError as error:
        raise SnapshotError(
            f"{path} is damaged ({error}); its metadata log is empty, so format the directory again"
        ) from error
