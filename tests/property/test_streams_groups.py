"""Streams groups with random threads that join, leave, freeze and commit; several per process.

Threads behave as Kafka's do (`support/streams_world.py`). The coordinator is moved and killed,
topics grow, and standby replicas are requested. Checked after each step: no active task has two
owners that the group knows in their current epochs, no process has a task twice, and the state
after a move is the state before. Checked when all is quiet: every active task has exactly one
owner, standbys are as many as there is room for, shares are level, and a thread that joins or
leaves moves no more than its share. The same runs must find planted defects.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.node.coordinator.group.streams import target as targeting
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.tasks import AssignedTasks, TaskId
from barnabas.protocol.errors import ErrorCode
from support.effort import examples
from support.streams_world import StreamsWorld, StreamThread

STEPS = 120
QUIET_ROUNDS = 60
ROUND_MS = 3_000
SEEDS_PER_DEFECT = 16
ALLOWED_COMMIT_ERRORS = (
    ErrorCode.NONE,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Run:
    """One random history."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = StreamsWorld(
            seed,
            group_streams_assignment_interval_ms=self.random.choice((0, 0, 1_000, 5_000)),
            group_streams_initial_rebalance_delay_ms=self.random.choice((0, 3_000)),
        )
        self.standby_replicas = 0
        self.set_topics({"in": self.random.randint(1, 6)})
        self.threads: list[StreamThread] = []
        self.frozen: set[str] = set()
        self.made = 0

    def set_topics(self, topics: dict[str, int]) -> None:
        replicas = str(self.standby_replicas)
        self.world.set_topics(
            topics, group_configs={"g": {"streams.num.standby.replicas": replicas}}
        )

    def play(self) -> None:
        """Random steps, then quiet."""
        for _ in range(STEPS):
            action = self.random.choices(
                (
                    self._come,
                    self._go,
                    self._freeze,
                    self._thaw,
                    self._want_standbys,
                    self._move,
                    self._commit,
                    self._heartbeats,
                ),
                (12, 6, 4, 6, 3, 4, 10, 60),
            )[0]
            action()
            self.world.clock.advance(self.random.choice((10, 300, 1_000, 5_000)))
            self.check_owners()
        self.frozen.clear()
        if not self.threads:
            self._come()
        self.quiet()
        self.check_rest()
        self._check_stickiness()

    def quiet(self) -> None:
        """Let everyone come to rest."""
        for _ in range(QUIET_ROUNDS):
            for thread in self.threads:
                thread.step()
                self.check_owners()
            self.world.clock.advance(ROUND_MS)

    def _come(self) -> None:
        if len(self.threads) > 7:
            return
        self.made += 1
        process_id = self.random.choice(("p1", "p2", "p3", f"p{self.made}"))
        thread = StreamThread(self.world, f"m{self.made}", process_id)
        self.threads.append(thread)
        thread.step()

    def _some(self) -> StreamThread | None:
        return self.random.choice(self.threads) if self.threads else None

    def _go(self) -> None:
        thread = self._some()
        if thread is not None:
            if self.random.random() < 0.7:
                thread.leave()
            self.threads.remove(thread)

    def _freeze(self) -> None:
        thread = self._some()
        if thread is not None:
            self.frozen.add(thread.member_id)

    def _thaw(self) -> None:
        self.frozen.clear()

    def _want_standbys(self) -> None:
        self.standby_replicas = self.random.choice((0, 1, 2))
        self.set_topics(self.world.topics)

    def _move(self) -> None:
        before = state_of(self.world)
        if self.random.random() < 0.5:
            self.world.reload()
        else:
            self.world.crash()
        if before is not None:
            assert state_of(self.world) == before

    def _commit(self) -> None:
        thread = self._some()
        if thread is None or not thread.has[0] or thread.member_id in self.frozen:
            return
        error = thread.commit(min(thread.has[0]))
        assert error in ALLOWED_COMMIT_ERRORS, error

    def _heartbeats(self) -> None:
        for thread in self.threads:
            if thread.member_id not in self.frozen:
                thread.step()

    def check_owners(self) -> None:
        """No active task of two threads that are as the group knows them; none twice in a process.

        A task that a thread must give up still counts as its own.
        """
        group = self.world.shard.groups.get("g")
        if not isinstance(group, StreamsGroup):
            return
        owners: dict[TaskId, str] = {}
        in_process: dict[tuple[str, TaskId], str] = {}
        for thread in self.threads:
            if thread.member_id not in group.members or thread.epoch <= 0:
                continue
            active, standby = thread.has
            for task in active:
                other = owners.setdefault(task, thread.member_id)
                assert other == thread.member_id, f"{task}: {other}, {thread.member_id}"
            for task in active | standby:
                other = in_process.setdefault((thread.process_id, task), thread.member_id)
                assert other == thread.member_id, f"{task}: {other}, {thread.member_id}"
            assert not active & standby

    def check_rest(self) -> None:
        """Everyone has what it should have."""
        assert self.world.streams_group().state is ModernGroupState.STABLE
        count = self.world.topics["in"]
        everything = [TaskId(each, number) for each in "01" for number in range(count)]
        owners = Counter(task for thread in self.threads for task in thread.has[0])
        assert owners == dict.fromkeys(everything, 1)
        standbys = Counter(task for thread in self.threads for task in thread.has[1])
        processes = len({thread.process_id for thread in self.threads})
        replicas = min(self.standby_replicas, processes - 1)
        assert standbys == dict.fromkeys(
            (task for task in everything if task[0] == "1"), replicas
        ) or (not replicas and not standbys)
        if not replicas:
            shares = [len(thread.has[0]) for thread in self.threads]
            limit = -(-len(everything) // len(self.threads))
            assert max(shares) <= limit + 1

    def _check_stickiness(self) -> None:
        """One that joins takes its share and no more; nothing moves between the others."""
        before = self._active_owners()
        share = -(-len(before) // (len(self.threads) + 1))
        self.made += 1
        self.threads.append(StreamThread(self.world, f"m{self.made}", f"p{self.made}"))
        self.quiet()
        self.check_rest()
        new = f"m{self.made}"
        moved = {task for task, owner in self._active_owners().items() if owner != before[task]}
        moved_elsewhere = {task for task in moved if self._active_owners()[task] != new}
        if not self.standby_replicas:
            assert len(moved) - len(moved_elsewhere) <= share + 1
            assert len(moved_elsewhere) <= share

    def _active_owners(self) -> dict[TaskId, str]:
        return {task: thread.member_id for thread in self.threads for task in thread.has[0]}


def state_of(world: StreamsWorld) -> dict[str, Any] | None:
    """All of the group that must survive a move."""
    group = world.shard.groups.get("g")
    if not isinstance(group, StreamsGroup):
        return None
    hidden = {"checked_topics", "configured", "endpoint_epoch", "shutdown_member_id"}
    return {name: getattr(group, name) for name in StreamsGroup.__slots__ if name not in hidden}


@pytest.mark.parametrize("seed", range(examples(4)))
def test_random_threads(seed: int) -> None:
    Run(seed).play()


def gives_taken_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroup, "active_process", lambda self, task: None)


def forgets_the_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroup, "is_kept_by", lambda self, process_id, task: False)


def does_not_await_revocation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AssignedTasks, "overlaps", lambda self, tasks: False)


def never_assigns_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        targeting, "assigns_in_ms", lambda step, group: 1 if group.assignment_timestamp_ms else 0
    )


def loses_released_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsGroup, "_release", lambda self, member: None)


def forgets_sessions(patch: pytest.MonkeyPatch) -> None:
    from barnabas.node.coordinator.group.modern import timing
    from barnabas.node.coordinator.group.streams import heartbeat

    patch.setattr(heartbeat, "reset_session", lambda step, group, member: None)
    patch.setattr(timing, "reset_session", lambda step, group, member: None)


def overlooks_new_settings(patch: pytest.MonkeyPatch) -> None:
    from barnabas.node.coordinator.group.streams import heartbeat

    patch.setattr(heartbeat, "assignment_configs", lambda step, group_id: {})


def leaves_standbys_out(patch: pytest.MonkeyPatch) -> None:
    from barnabas.node.coordinator.group.streams import assignor

    patch.setattr(assignor, "_place_standby", lambda board, heap, task: False)


DEFECTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    gives_taken_tasks,
    forgets_the_process,
    does_not_await_revocation,
    never_assigns_again,
    loses_released_tasks,
    forgets_sessions,
    overlooks_new_settings,
    leaves_standbys_out,
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_planted_defects_are_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    for seed in range(SEEDS_PER_DEFECT):
        try:
            Run(seed).play()
        except (AssertionError, KeyError):
            return
    pytest.fail("no run noticed it")
