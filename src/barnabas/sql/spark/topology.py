"""Assigns the stages of a plan to Spark operators.

An operator runs one stage that has stores, once per partition, and the stages without stores that
follow it. Everything before the first of them runs with the sources, in `mapInArrow`.

If there is only one partition, or if stages read what later ones write, which is impossible in a
Spark plan, one operator with one partition runs all stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.sql.runtime.stage import Channel, Stage

Place = tuple[int, int]
"""A stage, and one of its inputs."""


@dataclass(frozen=True)
class Topology:
    """`operators`: the stages of each, those that feed others first."""

    partitions: int
    operators: tuple[frozenset[int], ...]
    entries: dict[int, frozenset[int]]
    """By stage that reads topics and is in no operator: the stages that run with the source."""
    channels: dict[int, Place]
    """The reader of each channel."""
    topics: dict[Place, str]

    def operator_of(self, stage: int) -> int | None:
        """The operator that runs a stage; None where it runs with the sources."""
        for number, members in enumerate(self.operators):
            if stage in members:
                return number
        return None

    def next_operator(self, members: frozenset[int], stages: Sequence[Stage]) -> int | None:
        """The operator that takes what these stages emit; None where all of it goes to the sink.

        If several do, as in a foreign-key join, it is the first, which passes the rest on.
        """
        operators = [
            self.operator_of(target)
            for stage in members
            for target in _readers(stages[stage], self.channels)
            if target not in members
        ]
        return min((number for number in operators if number is not None), default=None)

    def takes_topics_only(self, number: int, stages: Sequence[Stage]) -> bool:
        """Return whether an operator can be partitioned as its topics are."""
        members = self.operators[number]
        return not any(
            self.channels[given.index][0] in members
            for stage in stages
            if stage.index not in members
            for given in stage.outputs
            if isinstance(given, Channel)
        )


def topology(stages: Sequence[Stage], partitions: int) -> Topology:
    """Return how to run the stages in so many partitions, or in one."""
    channels: dict[int, Place] = {}
    topics: dict[Place, str] = {}
    for stage in stages:
        for place, given in enumerate(stage.inputs):
            if isinstance(given, Channel):
                channels[given.index] = (stage.index, place)
            else:
                topics[stage.index, place] = given.topic
    goes_back = any(
        reader <= stage.index for stage in stages for reader in _readers(stage, channels)
    )
    if any(stage.stores for stage in stages) and (goes_back or partitions == 1):
        return Topology(1, (frozenset(range(len(stages))),), {}, channels, topics)
    operators = tuple(_with_followers(stage, stages, channels) for stage in stages if stage.stores)
    hosted: frozenset[int] = frozenset().union(*operators)
    entries = {
        stage: _with_followers(stages[stage], stages, channels)
        for stage, _ in topics
        if stage not in hosted
    }
    return Topology(partitions, operators, entries, channels, topics)


def _with_followers(
    stage: Stage, stages: Sequence[Stage], channels: dict[int, Place]
) -> frozenset[int]:
    """A stage, and the stages without stores that its records go through next."""
    members = {stage.index}
    waiting = [stage.index]
    while waiting:
        for target in _readers(stages[waiting.pop()], channels):
            if not stages[target].stores and target not in members:
                members.add(target)
                waiting.append(target)
    return frozenset(members)


def _readers(stage: Stage, channels: dict[int, Place]) -> list[int]:
    return [channels[given.index][0] for given in stage.outputs if isinstance(given, Channel)]


_MASK = 0xFFFFFFFF
MEMBERS_MAX: Final = 1_000
"""So many queries can share a stream."""
MEMBER_PARTITIONS_MAX: Final = 2_000
"""Of the state of each of them."""
_LABELS_EACH: Final = 1_000
_LABELS_OF_MEMBER: Final = MEMBER_PARTITIONS_MAX * _LABELS_EACH


def member_labels(member: int, partitions: int, tasks: int) -> Sequence[int]:
    """A number for each partition of a member of a shared stream, in task p modulo `tasks`."""
    first = member * _LABELS_OF_MEMBER
    return [
        _label(first + partition * _LABELS_EACH, partition, tasks)
        for partition in range(partitions)
    ]


def closing_labels(tasks: int) -> Sequence[int]:
    """A label for each task, behind those of all members."""
    first = MEMBERS_MAX * _LABELS_OF_MEMBER
    return [_label(first, task, tasks) for task in range(tasks)]


def is_closing(label: int) -> bool:
    """Return whether a label is one of `closing_labels`."""
    return label >= MEMBERS_MAX * _LABELS_OF_MEMBER


def member_of(label: int) -> tuple[int, int]:
    """Return the member and the partition that a label of `member_labels` is of."""
    member, rest = divmod(label, _LABELS_OF_MEMBER)
    return member, rest // _LABELS_EACH


def labels(partitions: int, tasks: int) -> Sequence[int]:
    """A number for each partition, so that partition p runs in task p modulo `tasks`."""
    return [_label(partition * 1_000_000, partition, tasks) for partition in range(partitions)]


def _label(first: int, partition: int, tasks: int) -> int:
    label = first
    while task_of(label, tasks) != partition % tasks:
        label += 1
    return label


def task_of(label: int, tasks: int) -> int:
    """Return where Spark runs the group of an INT. Source: its Murmur3Hash with seed 42."""
    hashed = _murmur3(label)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % tasks


def _murmur3(value: int) -> int:
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate(k, 15) * 0x1B873593 & _MASK
    h = _rotate(42 ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    return h ^ (h >> 16)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK
