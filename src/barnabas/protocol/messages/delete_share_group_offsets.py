"""DeleteShareGroupOffsets: forget the topics of a share group (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")


@message(versions="0", flexible="0+", api_key=92, listeners=("broker",))
class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = string("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array_of(
        DeleteShareGroupOffsetsRequestTopic, "0+"
    )


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: Uuid = uuid("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message(versions="0", flexible="0+", api_key=92)
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array_of(
        DeleteShareGroupOffsetsResponseTopic, "0+"
    )
