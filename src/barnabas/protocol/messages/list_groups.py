"""ListGroups: the groups a broker looks after (KIP-518, KIP-848)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-5", flexible="3+", api_key=16, listeners=("broker",))
class ListGroupsRequest(Message):
    states_filter: list[str] = array_of(string, "4+")
    types_filter: list[str] = array_of(string, "5+")


@struct
class ListedGroup(Struct):
    group_id: str = string("0+")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message(versions="0-5", flexible="3+", api_key=16)
class ListGroupsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array_of(ListedGroup, "0+")
