"""Progress of share groups: the requests to the share coordinator, and its records."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# InitializeShareGroupState: begin to keep the state of share partitions (KIP-932).


@struct
class InitializeShareGroupStatePartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class InitializeStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[InitializeShareGroupStatePartitionData] = array_of(
        InitializeShareGroupStatePartitionData, "0+"
    )


@message(versions="0", flexible="0+", api_key=83, listeners=("broker",))
class InitializeShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[InitializeStateData] = array_of(InitializeStateData, "0+")


@struct
class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class InitializeStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0", flexible="0+", api_key=83)
class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = array_of(InitializeStateResult, "0+")


# ReadShareGroupState: read the kept state of share partitions (KIP-932).


@struct
class ReadShareGroupStatePartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStatePartitionData] = array_of(
        ReadShareGroupStatePartitionData, "0+"
    )


@message(versions="0", flexible="0+", api_key=84, listeners=("broker",))
class ReadShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateData] = array_of(ReadStateData, "0+")


@struct
class StateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@struct
class ReadShareGroupStatePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    state_batches: list[StateBatch] = array_of(StateBatch, "0+")


@struct
class ReadStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStatePartitionResult] = array_of(
        ReadShareGroupStatePartitionResult, "0+"
    )


@message(versions="0", flexible="0+", api_key=84)
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = array_of(ReadStateResult, "0+")


# WriteShareGroupState: keep the state of share partitions (KIP-932, KIP-1226).


@struct
class WriteShareGroupStatePartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array_of(StateBatch, "0+")


@struct
class WriteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[WriteShareGroupStatePartitionData] = array_of(
        WriteShareGroupStatePartitionData, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=85, listeners=("broker",))
class WriteShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[WriteStateData] = array_of(WriteStateData, "0+")


@struct
class WriteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0-1", flexible="0+", api_key=85)
class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = array_of(WriteStateResult, "0+")


# DeleteShareGroupState: delete what the share coordinator keeps of partitions (KIP-932).


@struct
class DeleteShareGroupStatePartitionData(Struct):
    partition: int = int32("0+")


@struct
class DeleteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[DeleteShareGroupStatePartitionData] = array_of(
        DeleteShareGroupStatePartitionData, "0+"
    )


@message(versions="0", flexible="0+", api_key=86, listeners=("broker",))
class DeleteShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[DeleteStateData] = array_of(DeleteStateData, "0+")


@struct
class DeleteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0", flexible="0+", api_key=86)
class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = array_of(DeleteStateResult, "0+")


# ReadShareGroupStateSummary: read the kept state of share partitions without batches (KIP-932).


@struct
class ReadShareGroupStateSummaryPartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateSummaryData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateSummaryPartitionData] = array_of(
        ReadShareGroupStateSummaryPartitionData, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=87, listeners=("broker",))
class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateSummaryData] = array_of(ReadStateSummaryData, "0+")


@struct
class ReadShareGroupStateSummaryPartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateSummaryPartitionResult] = array_of(
        ReadShareGroupStateSummaryPartitionResult, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=87)
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = array_of(ReadStateSummaryResult, "0+")


# Records of `__share_group_state` (KIP-932).


@message(versions="0", api_key=0)
class ShareSnapshotKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@message(versions="0", flexible="0+", api_key=0)
class ShareSnapshotValue(Message):
    snapshot_epoch: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tagged="0+", tag=0)
    create_timestamp: int = int64("0+")
    write_timestamp: int = int64("0+")
    state_batches: list[StateBatch] = array_of(StateBatch, "0+")


@message(versions="0", api_key=1)
class ShareUpdateKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@message(versions="0", flexible="0+", api_key=1)
class ShareUpdateValue(Message):
    snapshot_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tagged="0+", tag=0)
    state_batches: list[StateBatch] = array_of(StateBatch, "0+")


SHARE_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""Record type to its key and value."""
