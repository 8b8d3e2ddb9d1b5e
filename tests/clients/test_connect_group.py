"""Workers in one group: who gets what, as they come, go and fail."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from barnabas.app.testing import Kafka
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.group_messages import (
    PROTOCOL_TYPE,
    Assignment,
    Compatibility,
)
from barnabas.connect.worker.distributed.leading import Owners
from barnabas.connect.worker.distributed.membership import Membership
from barnabas.connect.worker.distributed.share import NOTHING, Share
from barnabas.kafka.membership import GroupSettings
from barnabas.kafka.wire import Access
from support.patience import PATIENCE_S


class Configured:
    """The configuration that all workers have read, as if they shared a topic."""

    def __init__(self) -> None:
        self.state = ConfigState(offset=0)

    def put(self, **tasks: int) -> None:
        state = ConfigState(offset=self.state.offset + 1)
        state.connectors = {name: {} for name in tasks}
        state.task_counts = dict(tasks)
        self.state = state

    def work(self) -> Share:
        names = tuple(sorted(self.state.connectors))
        return Share(names, tuple(task for name in names for task in self.state.tasks(name)))


class Worker:
    """A member, and what it runs."""

    def __init__(self, group: Group, url: str, compatibility: Compatibility) -> None:
        self.running = NOTHING
        self.busy_for_s = 0.0
        self.assignment: Assignment | None = None
        self.group = group
        settings = GroupSettings(group.id, PROTOCOL_TYPE, 60_000, heartbeat_interval_ms=200)
        self.member = Membership(
            Access(group.servers),
            settings,
            self,
            lambda: group.configured.state,
            url,
            compatibility=compatibility,
            delay_ms_max=group.delay_ms,
        )

    def busy_s(self) -> float:
        return self.busy_for_s

    def revoked(self, work: Share) -> None:
        with self.group.changed:
            self.running = self.running.without(work)
            self.group.changed.notify_all()

    def assigned(self, assignment: Assignment, generation: int, *, is_leader: bool) -> None:
        with self.group.changed:
            self.assignment = assignment
            if not assignment.has_failed:
                self.running = assignment.work
            self.group.check()
            self.group.changed.notify_all()


class Group:
    """Workers of one group, and what never happens to them."""

    def __init__(self, kafka: Kafka, delay_ms: int) -> None:
        self.servers = kafka.bootstrap_servers
        self.id = kafka.name("workers")
        self.delay_ms = delay_ms
        self.configured = Configured()
        self.changed = threading.Condition()
        self.workers: dict[str, Worker] = {}
        self.twice: set[object] = set()

    def check(self) -> None:
        seen: set[object] = set()
        for worker in self.workers.values():
            items = {*worker.running.connectors, *worker.running.tasks}
            self.twice |= items & seen
            seen |= items

    def add(self, url: str, compatibility: Compatibility = "sessioned") -> Worker:
        worker = self.workers[url] = Worker(self, url, compatibility)
        worker.member.start()
        return worker

    def wait(self, until: Callable[[], bool], *, is_once: bool = True) -> None:
        with self.changed:
            assert self.changed.wait_for(until, PATIENCE_S), self.told()
        if is_once:
            assert not self.twice

    def wait_for_all(self, members: int, *, is_once: bool = True) -> None:
        """Wait until all work runs, evenly."""

        def is_even() -> bool:
            parts = [worker.running for worker in self.workers.values()]
            work = self.configured.work()
            for kind in ("connectors", "tasks"):
                sizes = [len(getattr(part, kind)) for part in parts]
                if sum(sizes) != len(getattr(work, kind)) or max(sizes) - min(sizes) > 1:
                    return False
            return len(parts) == members

        self.wait(is_even, is_once=is_once)

    def owners(self) -> Owners:
        """Return which worker runs what, as the leader knows it between rounds."""
        found: list[Owners] = []

        def is_known() -> bool:
            found[:] = [w.member.owners for w in self.workers.values() if w.member.owners]
            return bool(found)

        self.wait(is_known)
        return found[0]

    def told(self) -> dict[str, Assignment | None]:
        return {url: worker.assignment for url, worker in self.workers.items()}


@contextlib.contextmanager
def workers(kafka: Kafka, delay_ms: int = 0) -> Iterator[Group]:
    group = Group(kafka, delay_ms)
    try:
        yield group
    finally:
        for worker in group.workers.values():
            worker.member.close()


@pytest.mark.parametrize(
    ("compatibility", "version"),
    [
        pytest.param("eager", 0, marks=pytest.mark.slow),
        pytest.param("compatible", 1, marks=pytest.mark.slow),
        ("sessioned", 2),
    ],
)
def test_workers_share_what_is_configured(
    kafka: Kafka, compatibility: Compatibility, version: int
) -> None:
    with workers(kafka) as group:
        group.configured.put(a=2, b=2)
        one = group.add("http://one:8083/", compatibility)
        group.wait_for_all(1)
        two = group.add("http://two:8083/", compatibility)
        group.wait_for_all(2)
        assert one.member.protocol_version == two.member.protocol_version == version
        owners = group.owners()
        assert set(owners.tasks) == set(group.configured.work().tasks)
        assert owners.connectors[one.running.connectors[0]] == "http://one:8083/"
        group.configured.put(b=3)
        two.member.rejoin("there is another task")
        group.wait_for_all(2)
        gone = group.workers.pop("http://one:8083/")
        gone.member.close()
        group.wait_for_all(1)


@pytest.mark.slow
def test_an_old_worker_makes_all_eager(kafka: Kafka) -> None:
    with workers(kafka) as group:
        group.configured.put(a=2, b=2)
        one = group.add("http://one:8083/")
        group.wait_for_all(1)
        group.add("http://two:8083/", "eager")
        group.wait(lambda: one.member.protocol_version == 0, is_once=False)
        group.wait_for_all(2, is_once=False)
        group.twice.clear()  # while the group changed over
        group.configured.put(a=3, b=2)
        one.member.rejoin("there is another task")
        group.wait_for_all(2)


@pytest.mark.slow
def test_lost_work_waits_for_its_worker(kafka: Kafka) -> None:
    with workers(kafka, delay_ms=2_000) as group:
        group.configured.put(a=2, b=2)
        one = group.add("http://one:8083/")
        group.wait_for_all(1)
        group.add("http://two:8083/")
        group.wait_for_all(2)
        lost = group.workers.pop("http://two:8083/")
        held = lost.running
        lost.member.close()
        group.wait(lambda: one.assignment is not None and one.assignment.delay_ms > 0)
        assert not one.running.within(held)
        group.wait_for_all(1)
        assert set(held.tasks) <= set(one.running.tasks)


@pytest.mark.slow
def test_a_worker_that_is_stuck_leaves_until_it_is_free(kafka: Kafka) -> None:
    with workers(kafka) as group:
        group.configured.put(a=2, b=2)
        one = group.add("http://one:8083/")
        group.wait_for_all(1)
        two = group.add("http://two:8083/")
        group.wait_for_all(2)
        one.busy_for_s = 61.0  # rebalance.timeout.ms and a second
        group.wait(
            lambda: set(two.running.tasks) == set(group.configured.work().tasks), is_once=False
        )
        group.wait(lambda: two.member.owners is not None, is_once=False)  # it leads
        one.busy_for_s = 0.0
        # It says what it still has, so that none of it is left running twice.
        group.wait_for_all(2, is_once=False)


@pytest.mark.slow
def test_a_leader_that_has_read_less_assigns_nothing(kafka: Kafka) -> None:
    with workers(kafka) as group:
        group.configured.put(a=1)
        one = group.add("http://one:8083/")
        group.wait_for_all(1)
        behind = group.configured.state
        ahead = Configured()
        ahead.state = behind.copy()
        ahead.state.offset += 5
        one.member._leading._snapshot = lambda: behind
        group.configured.state = ahead.state
        one.member.rejoin("it has read more")
        group.wait(lambda: one.assignment is not None and one.assignment.has_failed)
        one.member._leading._snapshot = lambda: ahead.state
        group.wait(lambda: one.assignment is not None and not one.assignment.has_failed)
        assert one.running == Share(("a",), (TaskId("a", 0),))
