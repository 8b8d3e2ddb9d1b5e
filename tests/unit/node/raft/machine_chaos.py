"""Random faults and operations for a world of replicas, drawn from its seed."""

from collections.abc import Callable

from machine_world import RuleBrokenError, World

from barnabas.node.raft.core.events import ResignRequested
from barnabas.node.raft.core.messages import AddVoter, RemoveVoter
from barnabas.node.raft.core.state import Role


class Chaos:
    """Draws faults and operations from a world's seed; `run` ends with everything repaired."""

    def __init__(
        self,
        world: World,
        *,
        membership: bool = False,
        snapshots: bool = False,
        pause_ms: int = 200,
        appends: int = 60,
    ) -> None:
        """An act every `pause_ms` at most, `appends` against some 50 faults of all kinds."""
        self.world = world
        self.pause_ms = pause_ms
        self.acts: list[tuple[Callable[[], None], int]] = [
            (self._append, appends),
            (self._crash, 8),
            (self._crash_leader, 6),
            (self._restart, 16),
            (self._cut, 6),
            (self._isolate_leader, 3),
            (self._mend, 8),
            (self._resign, 2),
            (self._crash_all, 1),
            (self._change_voters, 10 if membership else 0),
            (self._snapshot, 5 if snapshots else 0),
        ]

    def run(self, duration_ms: int) -> None:
        world, chance = self.world, self.world.random
        for node_id in world.nodes:
            world.start(node_id)
        end_ms = world.now_ms + duration_ms
        acts, weights = zip(*self.acts, strict=True)
        while world.now_ms < end_ms:
            world.run(chance.randint(1, self.pause_ms))
            chance.choices(acts, weights)[0]()
        self.heal()

    def _up(self) -> list[int]:
        return [i for i, node in self.world.nodes.items() if node.state is not None]

    def _append(self) -> None:
        leader = self.world.leader()
        if leader is None:
            return
        for _ in range(self.world.random.randint(1, 4)):
            if leader.state is not None and leader.state.role is Role.LEADER:
                self.world.append(leader)

    def _crash(self) -> None:
        up = self._up()
        if up:
            chance = self.world.random
            self.world.crash(chance.choice(up), power=chance.random() < 0.8)

    def _crash_leader(self) -> None:
        leader = self.world.leader()
        if leader is not None:
            self.world.crash(leader.local.key.id)

    def _crash_all(self) -> None:
        for node_id in self._up():
            self.world.crash(node_id)

    def _restart(self) -> None:
        down = [i for i, node in self.world.nodes.items() if node.state is None]
        if down:
            self.world.start(self.world.random.choice(down))

    def _cut(self) -> None:
        a, b = self.world.random.sample(sorted(self.world.nodes), 2)
        self.world.cut.add((a, b))
        if self.world.random.random() < 0.5:
            self.world.cut.add((b, a))

    def _isolate_leader(self) -> None:
        leader = self.world.leader()
        if leader is not None:
            node_id = leader.local.key.id
            for other in self.world.nodes:
                self.world.cut |= {(node_id, other), (other, node_id)}

    def _mend(self) -> None:
        self.world.cut.clear()

    def _resign(self) -> None:
        leader = self.world.leader()
        if leader is not None:
            self.world.step(leader, ResignRequested())

    def _snapshot(self) -> None:
        up = self._up()
        if up:
            self.world.snapshot(self.world.nodes[self.world.random.choice(up)])

    def _change_voters(self) -> None:
        world = self.world
        leader = world.leader()
        if leader is None:
            return
        assert leader.state is not None
        node = world.nodes[world.random.choice(sorted(world.nodes))]
        if node.local.key.id in leader.state.voters.by_id:
            world.ask(leader, RemoveVoter(node.local.key))
        else:
            world.ask(leader, AddVoter(node.local))

    def heal(self) -> None:
        """Let everything work, and see that it does: all agree, and can still commit."""
        world = self.world
        world.cut.clear()
        world.drop = 0.0
        for node_id, node in world.nodes.items():
            if node.state is None:
                world.start(node_id)
        world.run(20_000)
        leader = world.leader()
        if leader is None:
            raise RuleBrokenError("no leader is elected though everything works")
        before = len(world.committed)
        world.append(leader)
        world.run(10_000)  # one message in twenty takes up to 1.5 s, also several in a row
        if len(world.committed) <= before:
            raise RuleBrokenError("nothing is committed though everything works")
        for node in world.nodes.values():
            assert node.state is not None
            if node.high_watermark != len(world.committed):
                raise RuleBrokenError(f"node {node.local.key.id} does not catch up")
