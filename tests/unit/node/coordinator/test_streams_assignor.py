"""The sticky assignor: every task once, level shares, standbys elsewhere, little moved."""

import random
from collections import Counter

import pytest

from barnabas.node.coordinator.group.streams.assignor import Assignment, MemberSpec, assign
from barnabas.node.coordinator.group.streams.tasks import TaskId, Tasks
from barnabas.node.coordinator.group.streams.topology import ConfiguredSubtopology, InternalTopic

CHANGELOG = (InternalTopic("c", 1, 0, {}),)


def subtopologies(**sizes: int) -> dict[str, ConfiguredSubtopology]:
    """By name; those whose name begins with s have state."""
    return {
        name: ConfiguredSubtopology(size, (), (), (), CHANGELOG if name.startswith("s") else ())
        for name, size in sizes.items()
    }


def spec(process_id: str, previous: Tasks | None = None) -> MemberSpec:
    return MemberSpec(process_id, previous or Tasks())


def again(assignment: Assignment, processes: dict[str, str]) -> dict[str, MemberSpec]:
    """The members of `processes`, with what they were assigned."""
    return {
        member_id: spec(process_id, assignment.targets.get(member_id))
        for member_id, process_id in processes.items()
    }


def owners(assignment: Assignment) -> dict[TaskId, str]:
    return {task: name for name, tasks in assignment.targets.items() for task in tasks.active}


def test_tasks_are_spread_in_ranges() -> None:
    processes = {"a": "p1", "b": "p2"}
    found = assign({name: spec(p) for name, p in processes.items()}, subtopologies(x=4), 0)
    assert [len(found.targets[name].active) for name in processes] == [2, 2]
    assert found.unplaced_standby_count == 0


def test_threads_of_a_process_share_its_tasks() -> None:
    members = {"a1": spec("a"), "a2": spec("a"), "a3": spec("a"), "b1": spec("b")}
    found = assign(members, subtopologies(x=8), 0)
    assert {name: len(tasks.active) for name, tasks in found.targets.items()} == dict.fromkeys(
        members, 2
    )


def test_nothing_moves_without_need() -> None:
    processes = {name: f"p{name}" for name in "abc"}
    sizes = subtopologies(x=5, s=7)
    first = assign({name: spec(p) for name, p in processes.items()}, sizes, 1)
    assert assign(again(first, processes), sizes, 1) == first
    assert (
        assign(again(first, dict(reversed(processes.items()))), sizes, 1).targets == first.targets
    )


def test_one_that_joins_takes_its_share_only() -> None:
    processes = {name: f"p{name}" for name in "abc"}
    sizes = subtopologies(x=12)
    first = assign({name: spec(p) for name, p in processes.items()}, sizes, 0)
    second = assign(again(first, {**processes, "d": "pd"}), sizes, 0)
    before, after = owners(first), owners(second)
    assert Counter(after.values()) == dict.fromkeys("abcd", 3)
    assert {after[task] for task in after if after[task] != before[task]} == {"d"}


def test_standby_takes_over() -> None:
    """The tasks of a member that is gone go to members with a copy of their state."""
    processes = {name: f"p{name}" for name in "abc"}
    sizes = subtopologies(s=6)
    first = assign({name: spec(p) for name, p in processes.items()}, sizes, 1)
    left = {"a": "pa", "b": "pb"}
    second = assign(again(first, left), sizes, 1)
    standbys = {name: first.targets[name].standby for name in left}
    taken = {task: name for task, name in owners(second).items() if owners(first)[task] == "c"}
    assert taken
    ready = sum(task in standbys[name] for task, name in taken.items())
    assert ready >= len(taken) - 1


def test_standbys_need_other_processes() -> None:
    members = {"a1": spec("a"), "a2": spec("a")}
    found = assign(members, subtopologies(s=4), 2)
    assert found.unplaced_standby_count == 8
    assert not any(tasks.standby for tasks in found.targets.values())


def test_stateless_tasks_have_no_standbys() -> None:
    found = assign({"a": spec("a"), "b": spec("b")}, subtopologies(x=4, s=2), 1)
    standbys = {task for tasks in found.targets.values() for task in tasks.standby}
    assert standbys == {TaskId("s", 0), TaskId("s", 1)}


@pytest.mark.parametrize("seed", range(20))
def test_random_histories(seed: int) -> None:
    """Members come and go; always: each task once, in a process once, standbys as many as fit."""
    source = random.Random(seed)
    sizes = subtopologies(x=source.randint(1, 9), s=source.randint(1, 9), s2=source.randint(1, 5))
    replicas = source.choice((0, 0, 1, 2))
    processes: dict[str, str] = {}
    assignment = Assignment({}, 0)
    everything = {
        TaskId(name, number) for name, each in sizes.items() for number in range(each.task_count)
    }
    stateful = {task for task in everything if sizes[task.subtopology_id].is_stateful}
    for step in range(25):
        if processes and source.random() < 0.4 and len(processes) > 1:
            del processes[source.choice(list(processes))]
        else:
            processes[f"m{step}"] = source.choice(("p1", "p2", "p3", f"p{step}"))
        before = owners(assignment)
        stayed = {name for name in processes if name in assignment.targets}
        assignment = assign(again(assignment, processes), sizes, replicas)
        assert assignment.targets.keys() == processes.keys()
        active = Counter(task for each in assignment.targets.values() for task in each.active)
        assert active == dict.fromkeys(everything, 1)
        standby = Counter(task for each in assignment.targets.values() for task in each.standby)
        fit = min(replicas, len(set(processes.values())) - 1)
        assert standby == (dict.fromkeys(stateful, fit) if fit else {})
        assert assignment.unplaced_standby_count == (replicas - fit) * len(stateful)
        in_process = Counter(
            (processes[name], task)
            for name, each in assignment.targets.items()
            for task in (*each.active, *each.standby)
        )
        assert max(in_process.values()) == 1
        counts = [len(each.active) for each in assignment.targets.values()]
        assert max(counts) <= -(-len(everything) // len(processes)) + 1
        share = -(-len(everything) // len(processes))
        kept = Counter(
            name for task, name in owners(assignment).items() if before.get(task) == name
        )
        for name in stayed:
            had = sum(owner == name for owner in before.values())
            assert kept[name] >= min(had, share) - 1, "sticky"
