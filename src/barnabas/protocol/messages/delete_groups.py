"""DeleteGroups: delete empty groups (KIP-229)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-2", flexible="2+", api_key=42, listeners=("broker",))
class DeleteGroupsRequest(Message):
    groups_names: list[str] = array_of(string, "0+")


@struct
class DeletableGroupResult(Struct):
    group_id: str = string("0+", map_key=True)
    error_code: int = int16("0+")


@message(versions="0-2", flexible="2+", api_key=42)
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array_of(DeletableGroupResult, "0+")
