"""Records of `__share_group_state` (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0", api_key=0)
class ShareSnapshotKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@struct
class ShareSnapshotValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@message(versions="0", flexible="0+", api_key=0)
class ShareSnapshotValue(Message):
    snapshot_epoch: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tagged="0+", tag=0)
    create_timestamp: int = int64("0+")
    write_timestamp: int = int64("0+")
    state_batches: list[ShareSnapshotValueStateBatch] = array_of(ShareSnapshotValueStateBatch, "0+")


@message(versions="0", api_key=1)
class ShareUpdateKey(Message):
    group_id: str = string("0")
    topic_id: Uuid = uuid("0")
    partition: int = int32("0")


@struct
class ShareUpdateValueStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@message(versions="0", flexible="0+", api_key=1)
class ShareUpdateValue(Message):
    snapshot_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tagged="0+", tag=0)
    state_batches: list[ShareUpdateValueStateBatch] = array_of(ShareUpdateValueStateBatch, "0+")


SHARE_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""Record type to its key and value."""
