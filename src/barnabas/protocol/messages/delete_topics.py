"""DeleteTopics: delete topics by name or by id (KIP-4, KIP-516)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: Uuid = uuid("6+")


@message(versions="1-6", flexible="4+", api_key=20, listeners=("broker", "controller"))
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array_of(DeleteTopicState, "6+")
    topic_names: list[str] = array_of(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


@struct
class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+", map_key=True)
    topic_id: Uuid = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(versions="1-6", flexible="4+", api_key=20)
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array_of(DeletableTopicResult, "0+")
