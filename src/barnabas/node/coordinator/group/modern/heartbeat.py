"""Steps that the heartbeats of consumer, streams and share groups share.

Texts are Kafka's, but for the kind of the group, which they name. Source: Kafka's
GroupCoordinatorService and GroupMetadataManager.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH, ModernMember
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Refusal, Step
from barnabas.protocol.errors import ErrorCode

G = TypeVar("G", bound=ModernGroup[Any, Any])
M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


def blank_field(
    member_id: str | None,
    group_id: str,
    rack_id: str | None,
    instance_id: str | None = None,
) -> str:
    """The error message for a field that is blank, or ""; None is a field that is left out."""
    fields = (
        ("MemberId", member_id),
        ("GroupId", group_id),
        ("InstanceId", instance_id),
        ("RackId", rack_id),
    )
    for name, value in fields:
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    return ""


def find_for_member(groups: GroupRegistry, kind: type[G], group_id: str) -> G | Refusal:
    """The group of one who says that it is a member; a refusal names the kind then, as Kafka's."""
    if groups.get(group_id) is None:
        name = kind.group_type.capitalize()
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"{name} group {group_id} not found.")
    return groups.find(kind, group_id)


def find_or_create(step: Step, groups: GroupRegistry, kind: type[G], group_id: str) -> G | Refusal:
    """The group of one who joins: a new one if none exists, or an empty classic one."""
    group = groups.get(group_id)
    if group is None:
        return kind(group_id)
    if group.group_type is GroupType.CLASSIC and group.is_empty:
        step.records += group.tombstones()
        return kind(group_id)
    return groups.find(kind, group_id)


def find_member(group: ModernGroup[M, Any], member_id: str) -> M | Refusal:
    """The member that goes by this id."""
    member = group.members.get(member_id)
    if member is not None:
        return member
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def check_size(step: Step, group: ModernGroup[Any, Any]) -> Refusal | None:
    """Check that the group has room for one more member."""
    size_max = step.config.of(group.group_type).size_max
    if len(group.members) < size_max:
        return None
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The {group.group_type} group has reached its maximum capacity of {size_max} members.",
    )


def check_epoch(
    group: ModernGroup[M, Any], member: M, epoch: int, has_no_more: Callable[[], bool]
) -> Refusal | None:
    """Check that the epoch that a member names is its own.

    The one before is taken too if the member has nothing that it should not have (`has_no_more`):
    the response that told it of the new one may have been lost.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return None
    if epoch > member.member_epoch:
        relation = "greater"
    elif epoch == member.previous_member_epoch and has_no_more():
        return None
    else:
        relation = "smaller"
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group.group_type} group member has a {relation} member epoch ({epoch}) than the "
        f"one known by the group coordinator ({member.member_epoch}). The member must abandon all "
        "its partitions and rejoin.",
    )


def write_target(
    step: Step,
    group: ModernGroup[Any, T],
    epoch: int,
    targets: Mapping[str, T],
    target_record: Callable[[str, str, T], CoordinatorRecord],
) -> None:
    """Write what the target assignment for `epoch` changes."""
    for member_id, target in targets.items():
        if group.target.get(member_id) != target:
            step.records.append(target_record(group.group_id, member_id, target))
    step.records.append(group.records.target_epoch(group.group_id, epoch, step.now.wall_ms))
