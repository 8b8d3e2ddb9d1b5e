"""ACLs: CreateAcls, DescribeAcls, DeleteAcls."""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct

# CreateAcls: add access rules (KIP-140, KIP-290).


@struct
class AclCreation(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(versions="1-3", flexible="2+", api_key=30, listeners=("broker", "controller"))
class CreateAclsRequest(Message):
    creations: list[AclCreation] = array_of(AclCreation, "0+")


@struct
class AclCreationResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(versions="1-3", flexible="2+", api_key=30)
class CreateAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array_of(AclCreationResult, "0+")


# DescribeAcls: the access rules that match a filter (KIP-140, KIP-290).


@message(versions="1-3", flexible="2+", api_key=29, listeners=("broker", "controller"))
class DescribeAclsRequest(Message):
    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class AclDescription(Struct):
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class DescribeAclsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array_of(AclDescription, "0+")


@message(versions="1-3", flexible="2+", api_key=29)
class DescribeAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resources: list[DescribeAclsResource] = array_of(DescribeAclsResource, "0+")


# DeleteAcls: remove the access rules that match filters (KIP-140, KIP-290).


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(versions="1-3", flexible="2+", api_key=31, listeners=("broker", "controller"))
class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = array_of(DeleteAclsFilter, "0+")


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class DeleteAclsFilterResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array_of(DeleteAclsMatchingAcl, "0+")


@message(versions="1-3", flexible="2+", api_key=31)
class DeleteAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    filter_results: list[DeleteAclsFilterResult] = array_of(DeleteAclsFilterResult, "0+")
