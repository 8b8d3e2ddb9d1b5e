"""Elections and changes of membership as transcripts: commands, and everything that they cause.

A line that begins with `>` is a command; what follows until the next one is what the replicas did,
each line with the milliseconds since the command began. Fetches and beginnings of epochs are left
out, since every follower sends them all the time. The world is that of `machine_world.py`, with
messages and disks of a fixed delay. After an intended change, run with UPDATE_GOLDEN=1 and read
the difference.

    > nodes voters=3 observers=1 kraft.version=0     must come first; kraft.version is 1 by default
    > start 1 2 3             > run 3000             lets time pass
    > settle 3000             lets time pass and tells only who leads then
    > crash 1                 > power-cut 1          which loses what was not flushed
    > cut 1 2 3               node 1 hears nothing from the others, and they nothing from it
    > heal                    > append 5             records that the leader gets
    > add 4, remove 1         asks the leader        > upgrade      raises kraft.version
    > resign 1, stop 1        > snapshot 1           > show         each node's state
"""

import os
from pathlib import Path

import pytest
from machine_world import Node, World

from barnabas.node.raft.core.events import (
    AdvanceHighWatermark,
    Answer,
    AppendVoters,
    Effect,
    Event,
    InstallSnapshot,
    PersistElection,
    ResignRequested,
    Send,
    StopRequested,
    TruncateLog,
)
from barnabas.node.raft.core.messages import AddVoter, EndEpoch, RemoveVoter, Reply, Vote, VoteReply
from barnabas.protocol.errors import ErrorCode

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "raft"
TRANSCRIPTS = sorted(path.name for path in GOLDEN.glob("*.txt"))
DELAY_MS = 2


class NotedWorld(World):
    """A world whose messages take a fixed time and which notes what its replicas do."""

    def __init__(self, voters: int, observers: int, kraft_version: int) -> None:
        self.happened: list[str] = []
        self.began_ms = 0
        super().__init__(0, voters, observers, kraft_version=kraft_version)

    def note(self, node: Node, text: str) -> None:
        self.happened.append(
            f"    {self.now_ms - self.began_ms:5d} node {node.local.key.id} {text}"
        )

    def step(self, node: Node, event: Event) -> None:
        before = None if node.state is None else (node.state.role, node.state.epoch)
        super().step(node, event)
        state = node.state
        if state is not None and (state.role, state.epoch) != before:
            self.note(node, f"is {state.role.name.lower()} in epoch {state.epoch}")

    def _do(self, node: Node, effect: Effect) -> Event | None:
        match effect:
            case Send(peer_id=peer_id, request=Vote() as vote):
                asks = "whether it would vote" if vote.is_pre_vote else "to vote"
                last = f"epoch {vote.last.epoch}, end {vote.last.offset}"
                self.note(node, f"asks {peer_id} {asks} in epoch {vote.epoch} ({last})")
            case Send(peer_id=peer_id, request=EndEpoch(epoch=epoch, preferred=preferred)):
                ids = " ".join(str(key.id) for key in preferred)
                self.note(node, f"tells {peer_id} that it ends epoch {epoch}, best first: {ids}")
            case PersistElection(election) if election.voted is not None:
                self.note(node, f"persists its vote for {election.voted.id} in {election.epoch}")
            case TruncateLog(offset):
                self.note(node, f"truncates its log to {offset}")
            case AppendVoters(voters=voters):
                self.note(node, f"appends voters {' '.join(map(str, sorted(voters.by_id)))}")
            case InstallSnapshot(snapshot_id):
                self.note(node, f"installs the snapshot that ends at {snapshot_id.end_offset}")
            case AdvanceHighWatermark(offset):
                self.note(node, f"commits up to {offset}")
            case Answer(reply=reply):
                self._note_answer(node, reply)
            case _:
                pass
        return super()._do(node, effect)

    def _note_answer(self, node: Node, reply: Reply) -> None:
        if isinstance(reply, VoteReply):
            self.note(node, "grants it" if reply.is_granted else "does not grant it")
        elif hasattr(reply, "message"):
            error = ErrorCode(reply.error)
            self.note(node, f"answers {error.name}{': ' + reply.message if reply.message else ''}")

    def _delay_ms(self) -> int:
        return DELAY_MS


class Transcript:
    """Runs commands and returns what they caused."""

    def __init__(self) -> None:
        self.world = NotedWorld(voters=0, observers=0, kraft_version=1)

    def run(self, line: str) -> list[str]:
        """Run one command; return what happened."""
        command, *words = line.split()
        self.world.happened = []
        self.world.began_ms = self.world.now_ms
        getattr(self, "do_" + command.replace("-", "_"))(*words)
        return self.world.happened

    def do_nodes(self, *words: str) -> None:
        given = dict(word.split("=", 1) for word in words)
        self.world = NotedWorld(
            int(given["voters"]),
            int(given.get("observers", "0")),
            int(given.get("kraft.version", "1")),
        )

    def do_start(self, *ids: str) -> None:
        for node_id in ids:
            self.world.start(int(node_id))

    def do_run(self, duration_ms: str) -> None:
        self.world.run(int(duration_ms))

    def do_settle(self, duration_ms: str) -> None:
        self.world.run(int(duration_ms))
        leader = self._leader()
        assert leader.state is not None
        self.world.happened = [f"    node {leader.local.key.id} leads epoch {leader.state.epoch}"]

    def do_crash(self, node_id: str) -> None:
        self.world.crash(int(node_id), power=False)

    def do_power_cut(self, node_id: str) -> None:
        self.world.crash(int(node_id), power=True)

    def do_cut(self, node_id: str, *others: str) -> None:
        for other in others:
            self.world.cut |= {(int(node_id), int(other)), (int(other), int(node_id))}

    def do_heal(self) -> None:
        self.world.cut.clear()

    def do_append(self, count: str) -> None:
        for _ in range(int(count)):
            self.world.append(self._leader())

    def do_add(self, node_id: str) -> None:
        self.world.ask(self._leader(), AddVoter(self.world.nodes[int(node_id)].local))

    def do_remove(self, node_id: str) -> None:
        self.world.ask(self._leader(), RemoveVoter(self.world.nodes[int(node_id)].local.key))

    def do_upgrade(self) -> None:
        if not self.world.upgrade(self._leader()):
            self.world.happened.append("    refused")

    def do_resign(self, node_id: str) -> None:
        self.world.step(self.world.nodes[int(node_id)], ResignRequested())

    def do_stop(self, node_id: str) -> None:
        self.world.step(self.world.nodes[int(node_id)], StopRequested())

    def do_snapshot(self, node_id: str) -> None:
        self.world.snapshot(self.world.nodes[int(node_id)])

    def do_show(self) -> None:
        for node_id, node in self.world.nodes.items():
            state, log = node.state, node.log
            if state is None or log is None:
                self.world.happened.append(f"    node {node_id} is down")
                continue
            voters = " ".join(map(str, sorted(state.voters.by_id)))
            self.world.happened.append(
                f"    node {node_id} {state.role.name.lower()} epoch {state.epoch} "
                f"log {log.start_offset}-{log.end_offset} committed {node.high_watermark} "
                f"voters {voters}"
            )

    def _leader(self) -> Node:
        leader = self.world.leader()
        assert leader is not None
        return leader


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_raft_transcript(name: str) -> None:
    path = GOLDEN / name
    expected = path.read_text()
    transcript = Transcript()
    produced = []
    for line in expected.splitlines():
        if line.startswith(">"):
            produced.append(line)
            produced += transcript.run(line[1:].strip())
        elif line.startswith("#") or not line:
            produced.append(line)
    text = "\n".join(produced) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == expected


def test_there_are_raft_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 8
