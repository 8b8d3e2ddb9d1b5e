"""Producer snapshots, and the records of `__remote_log_metadata` (KIP-98, KIP-405)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    binary,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uint32,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ProducerEntry(Struct):
    producer_id: int = int64("1")
    epoch: int = int16("1")
    last_sequence: int = int32("1")
    last_offset: int = int64("1")
    offset_delta: int = int32("1")
    timestamp: int = int64("1")
    coordinator_epoch: int = int32("1")
    current_txn_first_offset: int = int64("1")


@message(versions="1")
class ProducerSnapshot(Message):
    crc: int = uint32("1")
    producer_entries: list[ProducerEntry] = array_of(ProducerEntry, "1")


@struct
class TopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: Uuid = uuid("0+")
    partition: int = int32("0+")


@struct
class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = nested(TopicIdPartitionEntry, "0+")
    id: Uuid = uuid("0+")


@struct
class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


@message(versions="0", flexible="0+", api_key=0)
class RemoteLogSegmentMetadataRecord(Message):
    remote_log_segment_id: RemoteLogSegmentIdEntry = nested(RemoteLogSegmentIdEntry, "0+")
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array_of(SegmentLeaderEpochEntry, "0+")
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=3)
class RemoteLogSegmentMetadataSnapshotRecord(Message):
    segment_id: Uuid = uuid("0+")
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array_of(SegmentLeaderEpochEntry, "0+")
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = boolean("0+", tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=1)
class RemoteLogSegmentMetadataUpdateRecord(Message):
    remote_log_segment_id: RemoteLogSegmentIdEntry = nested(RemoteLogSegmentIdEntry, "0+")
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    custom_metadata: bytes | None = binary("0+", nullable="0+", default=None)
    remote_log_segment_state: int = int8("0+")


@message(versions="0", flexible="0+", api_key=2)
class RemotePartitionDeleteMetadataRecord(Message):
    topic_id_partition: TopicIdPartitionEntry = nested(TopicIdPartitionEntry, "0+")
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    remote_partition_delete_state: int = int8("0+")
