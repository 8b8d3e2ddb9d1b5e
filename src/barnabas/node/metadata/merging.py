"""Pieces of replay (replay.py): a record merged into the part of the image that it changes.

Requests to register and snapshots describe listeners and features as records do, so these are read
and written here for all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from barnabas.base.ids import ZERO_UUID
from barnabas.node.metadata.image import Endpoint, PartitionImage
from barnabas.protocol.messages.metadata_records import PartitionChangeRecord

LEADER_UNCHANGED: Final = -2
RECOVERY_STATE_UNCHANGED: Final = -1

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


def merge_partition_change(
    partition: PartitionImage, record: PartitionChangeRecord
) -> PartitionImage:
    """The partition after the change: every change ends a partition epoch, a leader its epoch.

    The leader epoch rises whenever the record names a leader, be it the same one.
    """
    replicas = partition.replicas if record.replicas is None else tuple(record.replicas)
    leader, leader_epoch = partition.leader, partition.leader_epoch
    if record.leader != LEADER_UNCHANGED:
        leader, leader_epoch = record.leader, leader_epoch + 1
    if record.directories is not None:
        directories = tuple(record.directories)
    elif record.replicas is None and len(partition.directories) == len(replicas):
        directories = partition.directories
    else:
        held = dict(zip(partition.replicas, partition.directories, strict=False))
        directories = tuple(held.get(replica, ZERO_UUID) for replica in replicas)
    return PartitionImage(
        replicas=replicas,
        isr=partition.isr if record.isr is None else tuple(record.isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition.partition_epoch + 1,
        directories=directories,
        removing=_changed(partition.removing, record.removing_replicas),
        adding=_changed(partition.adding, record.adding_replicas),
        elr=_changed(partition.elr, record.eligible_leader_replicas),
        last_known_elr=_changed(partition.last_known_elr, record.last_known_elr),
        leader_recovery_state=partition.leader_recovery_state
        if record.leader_recovery_state < 0
        else record.leader_recovery_state,
    )


def _changed(current: tuple[int, ...], change: list[int] | None) -> tuple[int, ...]:
    return current if change is None else tuple(change)


def read_listeners(end_points: Iterable[Any]) -> dict[str, Endpoint]:
    """The endpoints of a registration, by listener."""
    return {end.name: Endpoint(end.host, end.port, end.security_protocol) for end in end_points}


def read_ranges(features: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """The least and the greatest level of each feature of a registration."""
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }


def write_listeners(kind: Callable[..., T], listeners: Mapping[str, Endpoint]) -> list[T]:
    """What `read_listeners` reads, each a `kind`."""
    return [
        kind(name=name, host=end.host, port=end.port, security_protocol=end.security_protocol)
        for name, end in listeners.items()
    ]


def write_ranges(kind: Callable[..., T], features: Mapping[str, tuple[int, int]]) -> list[T]:
    """What `read_ranges` reads, each a `kind`."""
    return [
        kind(name=name, min_supported_version=least, max_supported_version=greatest)
        for name, (least, greatest) in features.items()
    ]


def merge_values(base: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """The base with the changes over it; None removes."""
    if not changes:
        return base
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def merge_maps(
    base: Mapping[K, Mapping[str, V]], changes: Mapping[K, dict[str, V]]
) -> Mapping[K, Mapping[str, V]]:
    """The base with whole maps over it; an empty one removes."""
    if not changes:
        return base
    return {key: values for key, values in {**base, **changes}.items() if values}


def merge_levels(base: Mapping[str, int], changes: Mapping[str, int]) -> Mapping[str, int]:
    """Feature levels with the changed ones in place; level 0 takes a feature away."""
    if not changes:
        return base
    return {name: level for name, level in {**base, **changes}.items() if level != 0}
