"""AlterPartition: a leader proposes a new ISR to the controller (KIP-497, KIP-704, KIP-903)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int8, int16, int32, int64, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class BrokerState(Struct):
    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


@struct
class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_epoch: int = int32("0+")
    new_isr: list[int] = array_of(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array_of(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionRequestTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array_of(
        AlterPartitionRequestPartitionData, "0+"
    )


@message(versions="2-3", flexible="0+", api_key=56, listeners=("controller",))
class AlterPartitionRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = array_of(AlterPartitionRequestTopicData, "0+")


@struct
class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array_of(int32, "0+")
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionResponseTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array_of(
        AlterPartitionResponsePartitionData, "0+"
    )


@message(versions="2-3", flexible="0+", api_key=56)
class AlterPartitionResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[AlterPartitionResponseTopicData] = array_of(AlterPartitionResponseTopicData, "0+")
