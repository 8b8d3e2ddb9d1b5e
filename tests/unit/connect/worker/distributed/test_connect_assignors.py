"""Who runs what: a group of workers that come, go and lose what they were told."""

from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import cooperative
from barnabas.connect.worker.distributed.leading import assign_eagerly
from barnabas.connect.worker.distributed.share import NOTHING, Share, total
from support.effort import examples

DELAY_MS = 300_000


def connectors(**tasks: int) -> Share:
    """Connectors with numbers of tasks."""
    return Share(
        tuple(tasks),
        tuple(TaskId(name, number) for name, count in tasks.items() for number in range(count)),
    )


def counted(shares: Iterable[Share]) -> Counter[object]:
    found: Counter[object] = Counter()
    for share in shares:
        found.update(share.connectors)
        found.update(share.tasks)
    return found


class Group:
    """Members that do as they are told, and a leader that remembers."""

    def __init__(self, *members: str, delay_ms: int = DELAY_MS) -> None:
        self.now_ms = 1_000_000
        self.configured = NOTHING
        self.delay_ms_max = delay_ms
        self.memory = cooperative.Memory(delay_ms)
        self.running: dict[str, Share] = dict.fromkeys(members, NOTHING)
        self.generation = self.last_generation = 0
        self.delay_ms = 0

    def join(self, *, deaf: Iterable[str] = ()) -> bool:
        """One round; `deaf` members do not hear of it. Returns whether it revoked anything."""
        self.generation += 1
        round_ = cooperative.assign(
            self.memory,
            self.configured,
            self.running,
            now_ms=self.now_ms,
            generation=self.generation,
            last_generation=self.last_generation,
        )
        self.last_generation = self.generation
        self.delay_ms = round_.delay_ms
        for member in self.running:
            if member not in deaf:
                kept = self.running[member].without(round_.revoked.get(member, NOTHING))
                self.running[member] = kept.plus(round_.assigned[member])
        assert all(count == 1 for count in counted(self.running.values()).values())
        return any(round_.revoked.values())

    def settle(self, *, passes_delays: bool) -> None:
        for _ in range(20):
            if not self.join():
                if not self.delay_ms or not passes_delays:
                    return
                self.now_ms += self.delay_ms
        raise AssertionError("the group does not settle")

    def fail(self, member: str) -> Share:
        return self.running.pop(member)

    def new_leader(self) -> None:
        self.memory = cooperative.Memory(self.delay_ms_max)


def sizes(group: Group) -> list[tuple[int, int]]:
    return sorted((len(s.connectors), len(s.tasks)) for s in group.running.values())


def test_new_work_is_dealt_out_evenly() -> None:
    group = Group("a", "b", "c")
    group.configured = connectors(x=4, y=4)
    assert not group.join()
    assert sizes(group) == [(0, 2), (1, 3), (1, 3)]


def test_a_new_worker_gets_its_part_in_two_rounds() -> None:
    group = Group("a")
    group.configured = connectors(x=3, y=3)
    group.join()
    group.running["b"] = NOTHING
    assert group.join()
    assert group.running["b"] == NOTHING
    assert not group.join()
    assert sizes(group) == [(1, 3), (1, 3)]


def test_a_deleted_connector_is_revoked() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=2, y=2)
    group.join()
    group.configured = connectors(y=2)
    assert group.join()
    group.settle(passes_delays=False)
    assert counted(group.running.values()) == counted([connectors(y=2)])


def test_a_lost_workers_tasks_wait_for_it() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=2, y=2)
    group.join()
    lost = group.fail("b")
    group.join()
    assert group.delay_ms == DELAY_MS
    assert not total(group.running.values()).within(lost)
    group.now_ms += 100_000
    group.join()
    assert group.delay_ms == 200_000
    group.now_ms += 200_000
    group.join()
    assert group.running["a"].within(group.configured) == group.running["a"]
    assert counted(group.running.values()) == counted([group.configured])


def test_a_worker_that_comes_back_in_time_gets_its_tasks() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=2, y=2)
    group.join()
    lost = group.fail("b")
    group.join()
    group.running["b2"] = NOTHING
    group.join()
    assert group.running["b2"] == NOTHING
    group.now_ms += group.delay_ms
    group.join()
    assert counted([group.running["b2"]]) == counted([lost])


def test_without_a_delay_lost_tasks_move_at_once() -> None:
    group = Group("a", "b", delay_ms=0)
    group.configured = connectors(x=2, y=2)
    group.join()
    group.fail("b")
    group.join()
    assert counted(group.running.values()) == counted([group.configured])


def test_a_new_leader_does_not_wait_for_what_it_never_knew() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=2, y=2)
    group.join()
    group.fail("b")
    group.new_leader()
    group.join()
    assert counted(group.running.values()) == counted([group.configured])


def test_what_runs_twice_stops_and_starts_once() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=1)
    group.running = {"a": connectors(x=1), "b": connectors(x=1)}
    group.generation += 1
    round_ = cooperative.assign(
        group.memory, group.configured, group.running,
        now_ms=0, generation=1, last_generation=0,
    )  # fmt: skip
    assert round_.revoked == {"a": connectors(x=1), "b": connectors(x=1)}
    assert not any(round_.assigned.values())
    group.running = {"a": NOTHING, "b": NOTHING}
    group.last_generation = 1
    group.join()
    assert counted(group.running.values()) == counted([group.configured])


def test_an_assignment_that_did_not_arrive_is_given_again() -> None:
    group = Group("a", "b")
    group.configured = connectors(x=2, y=2)
    group.join(deaf=("b",))
    group.join()
    assert counted(group.running.values()) == counted([group.configured])


def test_revoking_again_and_again_waits_longer() -> None:
    group = Group("a")
    group.configured = connectors(**{f"c{number}": 0 for number in range(12)})
    group.join()
    delays = []
    for name in "bcdef":
        group.running[name] = NOTHING
        group.join()
        delays.append(group.delay_ms)
    assert delays[0] == 0
    assert max(delays) > 0
    group.settle(passes_delays=True)
    assert [count for count, _ in sizes(group)] == [2] * 6


@given(
    st.dictionaries(st.text("xyz", min_size=1), st.integers(0, 5), max_size=6),
    st.sets(st.text("ab", min_size=1), min_size=1),
)
def test_eager_assigns_all_once_and_evenly(tasks: dict[str, int], members: set[str]) -> None:
    configured = connectors(**tasks)
    found = assign_eagerly(configured, members)
    assert found.keys() == members
    assert counted(found.values()) == counted([configured])
    loads = [len(share.connectors) + len(share.tasks) for share in found.values()]
    assert max(loads) - min(loads) <= 1


class Workers(RuleBasedStateMachine):
    """Random changes of a group: nothing runs twice; at rest everything runs, evenly spread."""

    def __init__(self) -> None:
        super().__init__()
        self.group = Group("w0")
        self.count = 1
        self.tasks: dict[str, int] = {}

    @rule(name=st.sampled_from("pqrst"), tasks=st.integers(0, 4))
    def configure(self, name: str, tasks: int) -> None:
        self.tasks[name] = tasks
        self.group.configured = connectors(**self.tasks)
        self.group.join()

    @rule(name=st.sampled_from("pqrst"))
    def delete(self, name: str) -> None:
        self.tasks.pop(name, None)
        self.group.configured = connectors(**self.tasks)
        self.group.join()

    @precondition(lambda self: len(self.group.running) < 5)
    @rule()
    def arrive(self) -> None:
        self.group.running[f"w{self.count}"] = NOTHING
        self.count += 1
        self.group.join()

    @precondition(lambda self: len(self.group.running) > 1)
    @rule(data=st.data(), was_leader=st.booleans())
    def fail(self, data: st.DataObject, was_leader: bool) -> None:
        self.group.fail(data.draw(st.sampled_from(sorted(self.group.running))))
        if was_leader:
            self.group.new_leader()
        self.group.join()

    @rule(data=st.data())
    def not_heard(self, data: st.DataObject) -> None:
        self.group.join(deaf=data.draw(st.sets(st.sampled_from(sorted(self.group.running)))))

    @rule(ms=st.integers(0, DELAY_MS))
    def wait(self, ms: int) -> None:
        self.group.now_ms += ms
        if self.group.delay_ms and ms >= self.group.delay_ms:
            self.group.join()

    @rule()
    def settle(self) -> None:
        self.group.settle(passes_delays=True)
        assert counted(self.group.running.values()) == counted([self.group.configured])
        for part in (0, 1):
            loads = [size[part] for size in sizes(self.group)]
            assert max(loads) - min(loads) <= 1

    @invariant()
    def nothing_runs_twice(self) -> None:
        assert all(count == 1 for count in counted(self.group.running.values()).values())


Workers.TestCase.settings = settings(
    max_examples=examples(8), stateful_step_count=25, deadline=None
)
TestWorkers = Workers.TestCase
