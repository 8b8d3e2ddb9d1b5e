"""Groups of any kind, and the classic group protocol."""

from barnabas.protocol.fields import array_of, binary, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct

# FindCoordinator: the broker that looks after a group, transaction or share partition.
#
# Source: KIP-699, KIP-932.


@message(versions="0-6", flexible="3+", api_key=10, listeners=("broker",))
class FindCoordinatorRequest(Message):
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array_of(string, "4+")


@struct
class Coordinator(Struct):
    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


@message(versions="0-6", flexible="3+", api_key=10)
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array_of(Coordinator, "4+")


# JoinGroup: join a classic group and wait for its next generation.
#
# Source: KIP-62, KIP-345, KIP-394, KIP-559, KIP-800.


@struct
class JoinGroupRequestProtocol(Struct):
    name: str = string("0+", map_key=True)
    metadata: bytes = binary("0+")


@message(versions="0-9", flexible="6+", api_key=11, listeners=("broker",))
class JoinGroupRequest(Message):
    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array_of(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary("0+")


@message(versions="0-9", flexible="6+", api_key=11)
class JoinGroupResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array_of(JoinGroupResponseMember, "0+")


# SyncGroup: members of a classic group obtain what its leader assigned (KIP-345, KIP-559).


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str = string("0+")
    assignment: bytes = binary("0+")


@message(versions="0-5", flexible="4+", api_key=14, listeners=("broker",))
class SyncGroupRequest(Message):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array_of(SyncGroupRequestAssignment, "0+")


@message(versions="0-5", flexible="4+", api_key=14)
class SyncGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary("0+")


# Heartbeat: a member of a classic group proves to be alive (KIP-345).


@message(versions="0-4", flexible="4+", api_key=12, listeners=("broker",))
class HeartbeatRequest(Message):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(versions="0-4", flexible="4+", api_key=12)
class HeartbeatResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")


# LeaveGroup: leave a classic group, or remove several static members (KIP-345, KIP-800).


@struct
class MemberIdentity(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(versions="0-5", flexible="4+", api_key=13, listeners=("broker",))
class LeaveGroupRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array_of(MemberIdentity, "3+")


@struct
class MemberResponse(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@message(versions="0-5", flexible="4+", api_key=13)
class LeaveGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array_of(MemberResponse, "3+")


# DescribeGroups: the state of classic groups (KIP-40, KIP-345, KIP-430, KIP-1043).


@message(versions="0-6", flexible="5+", api_key=15, listeners=("broker",))
class DescribeGroupsRequest(Message):
    groups: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribedGroupMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = binary("0+")
    member_assignment: bytes = binary("0+")


@struct
class DescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array_of(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-(2**31))


@message(versions="0-6", flexible="5+", api_key=15)
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array_of(DescribedGroup, "0+")


# ListGroups: the groups a broker looks after (KIP-518, KIP-848).


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


# DeleteGroups: delete empty groups (KIP-229).


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


# Messages that members of a classic consumer group exchange through the coordinator.
#
# The bytes begin with the version (int16) and then hold the message.


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
