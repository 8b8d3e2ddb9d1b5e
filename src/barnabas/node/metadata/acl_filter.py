"""Filters of ACLs, as DescribeAcls and DeleteAcls name them.

ANY, and a text that is null, stand for everything; a MATCH of names is for all ACLs that apply to a
resource, literal, prefixed or wildcard. Source: Kafka's ResourcePatternFilter and
AccessControlEntryFilter.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, Protocol

from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord


class AclFilter(Protocol):
    """The common fields of DescribeAcls and DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def unknown_part(filter_: AclFilter) -> str | None:
    """Why nobody can know what a filter means, in Kafka's words; None: it is clear."""
    if _is_unknown(ResourceType, filter_.resource_type_filter) or _is_unknown(
        PatternType, filter_.pattern_type_filter
    ):
        return "Unknown patternFilter."
    if _is_unknown(Operation, filter_.operation) or _is_unknown(
        Permission, filter_.permission_type
    ):
        return "Unknown entryFilter."
    return None


def _is_unknown(kind: type[IntEnum], number: int) -> bool:
    is_unknown: bool = known(kind, number) == 0
    return is_unknown


def known(kind: type[IntEnum], number: int) -> Any:
    """A number of the protocol; UNKNOWN (0) if it is none."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def matching_acls(
    filter_: AclFilter, acls: Iterable[AccessControlEntryRecord]
) -> Iterator[AccessControlEntryRecord]:
    """The ACLs that a filter names."""
    return (acl for acl in acls if _matches(filter_, acl))


def _matches(filter_: AclFilter, acl: AccessControlEntryRecord) -> bool:
    return (
        filter_.resource_type_filter in (ResourceType.ANY, acl.resource_type)
        and filter_.operation in (Operation.ANY, acl.operation)
        and filter_.permission_type in (Permission.ANY, acl.permission_type)
        and filter_.principal_filter in (None, acl.principal)
        and filter_.host_filter in (None, acl.host)
        and _matches_name(filter_, acl)
    )


def _matches_name(filter_: AclFilter, acl: AccessControlEntryRecord) -> bool:
    asked, name = filter_.pattern_type_filter, filter_.resource_name_filter
    if asked not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
        return False
    if name is None or name == acl.resource_name:
        return True
    if asked != PatternType.MATCH:
        return False
    if acl.pattern_type == PatternType.LITERAL:
        return acl.resource_name == WILDCARD
    return name.startswith(acl.resource_name)
