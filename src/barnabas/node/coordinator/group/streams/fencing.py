"""Removal of members of a streams group, and the assignment of one that waited for members.

Source: Kafka's GroupMetadataManager (streamsGroupFenceMember and what calls it).
"""

from barnabas.node.coordinator.group.step import Step
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.records import epoch_record
from barnabas.node.coordinator.group.streams.target import Draft, update_target


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Take a member out, and raise the group epoch."""
    step.records += group.records.member_tombstones(group.group_id, member.member_id)
    step.records.append(
        epoch_record(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
    )


def assign_delayed(step: Step, group: StreamsGroup) -> None:
    """The time for members to join is up. Tasks that cannot be assigned now are assigned by a later
    heartbeat."""
    if group.is_empty or group.configured is None or group.epoch <= group.assignment_epoch:
        return
    configs = group.assignment_configs
    update_target(step, Draft(group, None, group.epoch, group.configured, configs))
