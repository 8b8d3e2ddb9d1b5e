"""A member of a group whose coordinator follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from barnabas.kafka import membership
from barnabas.kafka.membership import (
    CoordinatorLostError,
    GroupMember,
    GroupRefusedError,
    GroupSettings,
    Joined,
    Part,
    RejoinError,
    UnknownMemberError,
)
from barnabas.kafka.wire import Access
from support.patience import PATIENCE_S

SETTINGS = GroupSettings("g", "own", heartbeat_interval_ms=1)


class Coordinator:
    """In place of Coordination: heartbeats raise what is planned, one after the other."""

    def __init__(self, _access: object, _settings: object) -> None:
        self.changed = threading.Condition()
        self.said: list[str] = []
        self.plan: list[Exception | None] = []
        self.join_plan: list[Exception] = []
        self.generation = 0
        self.leader = "m1"
        self.ids = 0
        self.on_wait: Callable[[], None] = lambda: None
        """Called while the group waits for its members."""

    def say(self, what: str) -> None:
        with self.changed:
            self.said.append(what)
            self.changed.notify_all()

    def wait_for(self, what: str, times: int = 1) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.said.count(what) >= times, PATIENCE_S), (
                self.said
            )

    def find(self) -> None: ...

    def forget(self) -> None:
        self.say("forget")

    def abort(self) -> None: ...

    def join(
        self,
        member_id: str,
        protocols: Sequence[tuple[str, bytes]],
        reason: str,
        keep: Callable[[str], None],
    ) -> Joined:
        self.say(f"join as {member_id or 'new'}: {reason}")
        if self.join_plan:
            raise self.join_plan.pop(0)
        if not member_id:
            self.ids += 1
            member_id = f"m{self.ids}"
            keep(member_id)
        self.on_wait()
        self.generation += 1
        members = {member_id: protocols[0][1], "other": b"o"}
        return Joined(self.generation, member_id, self.leader, protocols[0][0], members)

    def sync(self, joined: Joined, assignments: Mapping[str, bytes]) -> bytes:
        return assignments.get(joined.member_id, b"by another")

    def heartbeat(self, member_id: str, generation: int) -> None:
        assert generation == self.generation
        problem = self.plan.pop(0) if self.plan else None
        self.say("heartbeat" if problem is None else type(problem).__name__)
        if problem is not None:
            raise problem

    def leave(self, member_id: str, reason: str) -> None:
        self.say(f"leave as {member_id}: {reason}")


class Own(Part):
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.assignments: list[tuple[int, bytes]] = []
        self.failures: list[tuple[str, int]] = []
        self.forgets = self.lefts = self.heards = 0
        self.away: str | None = None
        self.on_assigned: Callable[[], None] = lambda: None
        self.on_protocols: Callable[[], None] = lambda: None

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        self.on_protocols()
        return [("v0", b"me")]

    def deal(self, joined: Joined) -> Mapping[str, bytes]:
        return {member: b"for " + data for member, data in joined.members.items()}

    def assigned(self, joined: Joined, assignment: bytes) -> None:
        self.assignments.append((joined.generation, assignment))
        self.on_assigned()

    def heard(self, sent_at: float) -> None:
        self.heards += 1

    def forgotten(self, error: UnknownMemberError) -> None:
        self.forgets += 1

    def failed(self, error: Exception, failures: int, silent_s: float) -> None:
        self.failures.append((str(error), failures))

    def left(self) -> None:
        self.lefts += 1

    def away_reason(self) -> str | None:
        return self.away


class World:
    def __init__(self) -> None:
        self.part = Own()
        self.member = GroupMember(Access("h:1"), SETTINGS, self.part, backoff_ms=(1, 1))
        self.coordinator: Any = self.member._coordination


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(membership, "Coordination", Coordinator)
    made = World()
    yield made
    made.member.close()
    made.member.ended.exception(PATIENCE_S)


def test_a_leader_deals_and_the_others_are_dealt_to(world: World) -> None:
    coordinator, part = world.coordinator, world.part
    world.member.start()
    coordinator.wait_for("heartbeat", 3)
    assert part.assignments == [(1, b"for me")]
    assert part.heards >= 4
    coordinator.leader = "other"
    world.member.rejoin("it wants to")
    coordinator.wait_for("join as m1: it wants to")
    coordinator.wait_for("heartbeat", 6)
    assert part.assignments[1:] == [(2, b"by another")]


def test_a_group_that_begins_again_is_joined_with_the_same_id(world: World) -> None:
    world.coordinator.plan = [None, RejoinError()]
    world.member.start()
    world.coordinator.wait_for("join as m1: the group begins again")
    assert world.part.failures == []


def test_a_member_that_is_unknown_joins_as_a_new_one(world: World) -> None:
    world.coordinator.plan = [UnknownMemberError("gone")]
    world.member.start()
    world.coordinator.wait_for("join as new: the group begins again")
    world.coordinator.wait_for("heartbeat")
    assert (world.part.forgets, world.member.member_id) == (1, "m2")


def test_a_coordinator_that_is_lost_or_refuses_is_looked_for_again(world: World) -> None:
    world.coordinator.join_plan = [
        CoordinatorLostError("moved"),
        GroupRefusedError("no"),
    ]
    world.member.start()
    world.coordinator.wait_for("heartbeat")
    assert world.part.failures == [("moved", 1), ("no", 2)]
    assert world.coordinator.said.count("forget") == 2


def test_a_member_that_cannot_take_part_leaves_until_it_can(world: World) -> None:
    world.member.start()
    world.coordinator.wait_for("heartbeat")
    world.part.away = "busy"
    world.coordinator.wait_for("leave as m1: busy")
    assert world.part.lefts == 1
    joins = len(world.part.assignments)
    world.part.away = None
    world.coordinator.wait_for("join as new: the group begins again")
    assert joins == 1


def test_a_member_leaves_for_a_while_when_it_is_asked_to(world: World) -> None:
    world.member.start()
    world.coordinator.wait_for("heartbeat")
    world.member.leave("out of step", 0.0)
    world.coordinator.wait_for("leave as m1: out of step")
    world.coordinator.wait_for("join as new: the group begins again")


def test_a_member_joins_again_when_a_delay_is_over(world: World) -> None:
    delays = [0.01]

    def assigned() -> None:
        if delays:
            world.member.rejoin_after(delays.pop(), "the delay is over")

    world.part.on_assigned = assigned
    world.member.start()
    world.coordinator.wait_for("join as m1: the delay is over")


def test_a_delay_ends_where_the_group_begins_again_before(world: World) -> None:
    delays = [0.3]

    def assigned() -> None:
        if delays:
            world.member.rejoin_after(delays.pop(), "the delay is over")
            world.member.rejoin("sooner")

    world.part.on_assigned = assigned
    world.member.start()
    world.coordinator.wait_for("join as m1: sooner")
    world.member.sleep(0.5)
    assert "join as m1: the delay is over" not in world.coordinator.said


def test_a_member_stays_in_its_group_while_it_works(world: World) -> None:
    def work() -> None:
        beats = world.coordinator.said.count("heartbeat")
        world.coordinator.wait_for("heartbeat", beats + 3)

    tasks = [work]

    def assigned() -> None:
        if tasks:
            world.coordinator.plan = [None, RejoinError()]
            world.member.while_beating(tasks.pop())

    world.part.on_assigned = assigned
    world.member.start()
    world.member.rejoin("once more")
    world.coordinator.wait_for("RejoinError")
    world.coordinator.wait_for("heartbeat", 5)
    assert not tasks


def test_a_wish_is_heard_while_the_member_says_what_it_has(world: World) -> None:
    wishes = ["there is more"]

    def change() -> None:
        if wishes:
            world.member.rejoin(wishes.pop())

    world.part.on_protocols = change
    world.member.start()
    world.coordinator.wait_for("join as m1: there is more")


def test_a_member_that_is_closed_while_it_joins_leaves_under_its_new_id(world: World) -> None:
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        world.member._closed.wait(PATIENCE_S)
        raise CoordinatorLostError("it is closed")

    world.coordinator.on_wait = wait
    world.member.start()
    assert waits.wait(PATIENCE_S)
    world.member.close("it ends")
    assert "leave as m1: it ends" in world.coordinator.said


def test_a_member_whose_join_was_cut_off_joins_under_the_same_id(world: World) -> None:
    failures = [CoordinatorLostError("cut off")]

    def wait() -> None:
        if failures:
            raise failures.pop()

    world.coordinator.on_wait = wait
    world.member.start()
    world.coordinator.wait_for("join as m1: the group begins again")


def test_a_member_that_is_refused_while_it_works_joins_when_it_is_done(world: World) -> None:
    done: list[int] = []

    def work() -> None:
        world.coordinator.wait_for("GroupRefusedError")
        world.member.sleep(0.1)
        done.append(world.coordinator.generation)

    tasks = [work]

    def assigned() -> None:
        if tasks:
            world.coordinator.plan = [GroupRefusedError("no")]
            world.member.while_beating(tasks.pop())
            assert done == [1]

    world.part.on_assigned = assigned
    world.member.start()
    world.coordinator.wait_for("heartbeat")
    assert done == [1]


def test_closing_does_not_wait_for_the_heartbeat_of_a_member_that_works(world: World) -> None:
    works, may_end = threading.Event(), threading.Event()

    def work() -> None:
        works.set()
        may_end.wait(PATIENCE_S)

    world.part.on_assigned = lambda: world.member.while_beating(work)
    world.member._heartbeat_s = 2 * PATIENCE_S
    world.member.start()
    assert works.wait(PATIENCE_S)
    world.member.close()
    assert world.member.ended.done()
    may_end.set()


def test_an_error_of_our_own_ends_the_member_and_is_told(world: World) -> None:
    def stumble() -> None:
        raise KeyError("x")

    world.part.on_assigned = stumble
    world.member.start()
    with pytest.raises(KeyError):
        world.member.ended.result(PATIENCE_S)


def test_closing_leaves_the_group(world: World) -> None:
    world.member.start()
    world.coordinator.wait_for("heartbeat")
    world.member.close("it ends")
    assert world.coordinator.said[-2:] == ["leave as m1: it ends", "forget"]
