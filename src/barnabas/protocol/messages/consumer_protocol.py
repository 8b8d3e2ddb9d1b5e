"""Messages that members of a classic consumer group exchange through the coordinator.

The bytes begin with the version (int16) and then hold the message.
"""

from barnabas.protocol.fields import array_of, binary, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = string("1+", map_key=True)
    partitions: list[int] = array_of(int32, "1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    topics: list[str] = array_of(string, "0+")
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array_of(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@struct
class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array_of(
        ConsumerProtocolAssignmentTopicPartition, "0+"
    )
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
