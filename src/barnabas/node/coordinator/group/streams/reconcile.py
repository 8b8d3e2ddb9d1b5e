"""One step of a member towards its target: give tasks up first, then move to the new epoch.

    STABLE ── it has what it must give up ──────────► UNREVOKED_TASKS (its epoch stays)
      │                                                 │ it no longer reports them
      ▼                                                 ▼
    to the target's epoch: STABLE, or UNRELEASED_TASKS while some of its new tasks are not free;
    those come one by one as they are released.

An active task is free when no member has it as active. No task may be in a process twice, in any
role, since members of a process share a state directory: a task that changes its role
within a process is given up in one role before it is taken up in the other.
Source: Kafka's CurrentAssignmentBuilder.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.member import MemberState, StreamsMember
from barnabas.node.coordinator.group.streams.tasks import AssignedTasks, TaskId, Tasks, TaskSet
from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class Goal:
    """A member's target, and the tasks that it reports as its own (None: no report)."""

    epoch: int
    target: Tasks
    owned: Tasks | None


def reconcile(group: StreamsGroup, member: StreamsMember, goal: Goal) -> StreamsMember | Refusal:
    """The member after the step; the same object where there is nothing to do."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != goal.epoch:
                return _advance(group, member, goal, member.member_epoch)
        case MemberState.UNREVOKED_TASKS:
            if goal.owned is not None and not member.pending_revocation.overlaps(goal.owned):
                return _advance(group, member, goal, member.member_epoch + 1)
        case MemberState.UNRELEASED_TASKS:
            return _advance(group, member, goal, member.member_epoch)
        case MemberState.UNKNOWN:
            if goal.owned is None or not goal.owned.is_empty:
                return Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _advance(group, member, goal, goal.epoch)
    return member


def _advance(group: StreamsGroup, member: StreamsMember, goal: Goal, epoch: int) -> StreamsMember:
    has, target = member.assigned, goal.target
    kept = AssignedTasks(
        {task: since for task, since in has.active.items() if task in target.active},
        has.standby & target.standby,
        has.warmup & target.warmup,
    )
    to_revoke = AssignedTasks(
        {task: since for task, since in has.active.items() if task not in target.active},
        has.standby - target.standby,
        has.warmup - target.warmup,
    )
    if not to_revoke.is_empty and (goal.owned is None or to_revoke.overlaps(goal.owned)):
        return _moved(member, MemberState.UNREVOKED_TASKS, epoch, kept, to_revoke)
    process_id = member.process_id

    def is_active_free(task: TaskId) -> bool:
        return group.active_process(task) is None and not group.is_kept_by(process_id, task)

    def is_free_here(task: TaskId) -> bool:
        return group.active_process(task) != process_id and not group.is_kept_by(process_id, task)

    active, active_waits = _available(target.active - kept.active.keys(), is_active_free)
    standby, standby_waits = _available(target.standby - kept.standby, is_free_here)
    warmup, warmup_waits = _available(target.warmup - kept.warmup, is_free_here)
    is_waiting = active_waits or standby_waits or warmup_waits
    assigned = AssignedTasks(
        {**kept.active, **dict.fromkeys(sorted(active), goal.epoch)},
        kept.standby | standby,
        kept.warmup | warmup,
    )
    state = MemberState.UNRELEASED_TASKS if is_waiting else MemberState.STABLE
    return _moved(member, state, goal.epoch, assigned, AssignedTasks())


def _available(tasks: TaskSet, is_free: Callable[[TaskId], bool]) -> tuple[TaskSet, bool]:
    """Those of the tasks that are free, and whether others are not."""
    free = frozenset(task for task in tasks if is_free(task))
    return free, len(free) < len(tasks)


def _moved(
    member: StreamsMember,
    state: MemberState,
    epoch: int,
    assigned: AssignedTasks,
    pending_revocation: AssignedTasks,
) -> StreamsMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
