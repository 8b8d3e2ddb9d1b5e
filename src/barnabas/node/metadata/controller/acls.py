"""CreateAcls (API 30) and DeleteAcls (31), versions 1-3; KIP-140, KIP-290.

An ACL that exists already is not made again, and that is no error. Each ACL and each filter has its
own outcome. Unlike Kafka, which deletes the first 10,000 and reports an unknown error, a
filter that fits more deletes nothing. Source: Kafka's AclControlManager and AclApis.
"""

from typing import Final

from barnabas.base.ids import Uuid
from barnabas.node.metadata.acl_filter import known, matching_acls, unknown_part
from barnabas.node.metadata.controller.decision import (
    RECORDS_PER_REQUEST_MAX,
    ControllerState,
    Decision,
)
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.ids import random_uuid
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

TOO_LARGE: Final = "Unable to perform excessively large batch operation."
_Key = tuple[int, str, int, str, str, int, int]


def create_acls(state: ControllerState, request: CreateAclsRequest) -> Decision[CreateAclsResponse]:
    """Make the ACLs of a request that are valid and new."""
    decision = Decision(CreateAclsResponse())
    names = {creation.resource_name for creation in request.creations}
    existing = {_key(acl) for acl in state.image.acls.values() if acl.resource_name in names}
    for creation in request.creations:
        reason = _invalid(creation)
        if reason is not None:
            result = AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
            decision.response.results.append(result)
            continue
        acl = AccessControlEntryRecord(
            id=random_uuid(state.random),
            resource_type=creation.resource_type,
            resource_name=creation.resource_name,
            pattern_type=creation.resource_pattern_type,
            principal=creation.principal,
            host=creation.host,
            operation=creation.operation,
            permission_type=creation.permission_type,
        )
        if _key(acl) not in existing:
            existing.add(_key(acl))
            decision.records.append(MetadataRecord(acl))
        decision.response.results.append(AclCreationResult())
    if len(decision.records) > RECORDS_PER_REQUEST_MAX:
        return Decision(refuse(request, ErrorCode.POLICY_VIOLATION, TOO_LARGE))
    return decision


def _key(acl: AccessControlEntryRecord) -> _Key:
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _invalid(creation: AclCreation) -> str | None:
    """Why an ACL cannot be, in Kafka's words; None: it can."""
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    resource_type = known(ResourceType, creation.resource_type)
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"Invalid resourceType {resource_type.name}"
    pattern = known(PatternType, creation.resource_pattern_type)
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {pattern.name}"
    operation = known(Operation, creation.operation)
    if operation in (Operation.UNKNOWN, Operation.ANY):
        return f"Invalid operation {operation.name}"
    permission = known(Permission, creation.permission_type)
    if permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {permission.name}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    return None


def delete_acls(state: ControllerState, request: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Remove what the filters of a request name; each reports everything that it names."""
    decision = Decision(DeleteAclsResponse())
    removed: dict[Uuid, None] = {}
    for filter_ in request.filters:
        result = DeleteAclsFilterResult(error_message=None)
        decision.response.filter_results.append(result)
        reason = unknown_part(filter_)
        if reason is not None:
            result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, reason
            continue
        matching = list(matching_acls(filter_, state.image.acls.values()))
        together = removed | dict.fromkeys(acl.id for acl in matching)
        if len(together) > RECORDS_PER_REQUEST_MAX:
            result.error_code = ErrorCode.POLICY_VIOLATION
            result.error_message = (
                f"Cannot remove more than {RECORDS_PER_REQUEST_MAX} acls in a single delete "
                "operation."
            )
            continue
        removed = together
        result.matching_acls = [
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in matching
        ]
    decision.records = [
        MetadataRecord(RemoveAccessControlEntryRecord(id=acl_id)) for acl_id in removed
    ]
    return decision
