"""The leader's part in a round: it assigns the work to all members, with the group's assignor.

Source: org.apache.kafka.connect.runtime.distributed.WorkerCoordinator (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import cooperative
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.group_messages import (
    CONFIG_MISMATCH,
    EAGER_VERSION,
    NO_ERROR,
    VERSIONS,
    Assignment,
    Member,
    decode_member,
    encode_assignment,
)
from barnabas.connect.worker.distributed.share import NOTHING, Share, by_name


@dataclass(slots=True)
class Owners:
    """Whose URL a connector or task runs at, as the leader has assigned it."""

    connectors: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[TaskId, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Dealt:
    """Each member's assignment, as bytes, and the resulting owners."""

    assignments: Mapping[str, bytes]
    owners: Owners


class Leading:
    """A worker as leader; `snapshot` reads what is configured."""

    def __init__(self, snapshot: Callable[[], ConfigState], delay_ms_max: int) -> None:
        self._snapshot = snapshot
        self._memory = cooperative.Memory(delay_ms_max)

    def deal(
        self,
        leader: str,
        protocol: str,
        metadata: Mapping[str, bytes],
        *,
        generation: int,
        last_generation: int,
        now_ms: int,
    ) -> Dealt:
        """Return the assignments of all members. Raises GroupMessageError.

        A leader that has not read as much as another member assigns nothing: all join again.
        """
        members = {member: decode_member(data) for member, data in metadata.items()}
        offset = max(member.config_offset for member in members.values())
        state = self._snapshot()
        version = VERSIONS[protocol]
        if state.offset < offset:
            nothing = Assignment(CONFIG_MISMATCH, leader, members[leader].url, offset)
            data = encode_assignment(nothing, version)
            return Dealt(dict.fromkeys(members, data), Owners())
        configured = configured_work(state)
        if version == EAGER_VERSION:
            running = assign_eagerly(configured, members)
            assigned: Mapping[str, Share] = running
            revoked: Mapping[str, Share] = {}
            delay_ms = 0
        else:
            round_ = cooperative.assign(
                self._memory,
                configured,
                {name: member.work for name, member in members.items()},
                now_ms=now_ms,
                generation=generation,
                last_generation=last_generation,
            )
            running, assigned = dict(round_.running), round_.assigned
            revoked, delay_ms = round_.revoked, round_.delay_ms
        return Dealt(
            {
                name: encode_assignment(
                    Assignment(
                        NO_ERROR,
                        leader,
                        members[leader].url,
                        state.offset,
                        assigned[name],
                        revoked.get(name, NOTHING),
                        delay_ms,
                    ),
                    version,
                )
                for name in members
            },
            owners_of(running, members),
        )


def assign_eagerly(configured: Share, members: Iterable[str]) -> dict[str, Share]:
    """Return what each member runs, after all has stopped. There is at least one member.

    Connectors go round the members first, then tasks go on from there: dealt out together,
    connectors of one task each would put all tasks on every second member. Source: EagerAssignor.
    """
    names = sorted(members)
    connectors: dict[str, list[str]] = {name: [] for name in names}
    tasks: dict[str, list[TaskId]] = {name: [] for name in names}
    turn = cycle(names)
    for connector in sorted(configured.connectors):
        connectors[next(turn)].append(connector)
    for task in by_name(configured.tasks):
        tasks[next(turn)].append(task)
    return {name: Share(tuple(connectors[name]), tuple(tasks[name])) for name in names}


def configured_work(state: ConfigState) -> Share:
    """Return all that is configured and can run."""
    names = sorted(state.connectors)
    return Share(tuple(names), tuple(task for name in names for task in state.tasks(name)))


def owners_of(running: Mapping[str, Share], members: Mapping[str, Member]) -> Owners:
    """Return where everything runs."""
    connectors: dict[str, str] = {}
    tasks: dict[TaskId, str] = {}
    for name, share in running.items():
        url = members[name].url
        connectors.update(dict.fromkeys(share.connectors, url))
        tasks.update(dict.fromkeys(share.tasks, url))
    return Owners(connectors, tasks)
