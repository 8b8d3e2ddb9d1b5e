"""Rebalances as transcripts: commands, and everything that they make happen.

A line that begins with `>` is a command; what follows until the next one is what was answered
(`<-`), written (`log`) and which state the group is in afterwards. Members are shown as
`client#n`. After a change that is meant, run with UPDATE_GOLDEN=1 and read the difference.

    > join a instance=one protocols=range,sticky version=9 session=10000 rebalance=30000
    > rejoin a              joins with the id that it was given
    > sync a a=0,1 b=2      the leader's assignment; without it a follower's
    > heartbeat|leave a     > leave-instance one     > commit a t-0=5
    > wait 3000             lets time pass
    > hold, release         keeps the log from committing, and lets it
    > fail NOT_ENOUGH_REPLICAS, heal      > move      > crash      > show
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from support.group_world import Call, GroupWorld, records_of

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "coordinator"
TRANSCRIPTS = sorted(path.name for path in GOLDEN.glob("*.txt"))


class Transcript:
    """Runs commands and notes what happens."""

    def __init__(self) -> None:
        self.world = GroupWorld()
        self.world.log.on_append = self._appended
        self.labels: dict[str, str] = {}
        self.member_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.instances: dict[str, str | None] = {}
        self.options: dict[str, dict[str, Any]] = {}
        self.waiting: list[tuple[str, str, Call]] = []
        self.happened: list[str] = []
        self.state = "none"

    def run(self, line: str) -> list[str]:
        """Run one command; return what it made happen."""
        command, *words = line.split()
        self.happened = []
        getattr(self, "do_" + command.replace("-", "_"))(*words)
        self._collect()
        group = self.world.shard.groups.get_of(ClassicGroup, "g")
        state = "none" if group is None else str(group.state)
        if state != self.state:
            self.happened.append(f"    group is {state}")
            self.state = state
        return self.happened

    # Commands

    def do_join(self, name: str, *words: str, member_id: str = "") -> None:
        given = dict(word.split("=", 1) for word in words)
        options: dict[str, Any] = dict(self.options.get(name, {}))
        readers: dict[str, tuple[str, Callable[[str], object]]] = {
            "instance": ("instance_id", str),
            "protocols": ("protocols", lambda text: tuple(text.split(","))),
            "topics": ("topics", lambda text: tuple(text.split(","))),
            "version": ("version", int),
            "session": ("session_timeout_ms", int),
            "rebalance": ("rebalance_timeout_ms", int),
            "reason": ("reason", str),
        }
        for key, text in given.items():
            option, read = readers[key]
            options[option] = read(text)
        self.options[name] = options
        self.instances[name] = options.get("instance_id")  # type: ignore[assignment]
        self._park(name, "join", self.world.join(name, member_id, **options))

    def do_rejoin(self, name: str, *words: str) -> None:
        self.do_join(name, *words, member_id=self.member_ids[name])

    def do_sync(self, name: str, *words: str) -> None:
        assignments = {}
        for word in words:
            member, _, parts = word.partition("=")
            assignments[self.member_ids[member]] = parts.encode()
        call = self.world.sync(
            self.member_ids[name],
            self.generations[name],
            assignments,
            instance_id=self.instances[name],
        )
        self._park(name, "sync", call)

    def do_heartbeat(self, name: str) -> None:
        member_id, generation = self.member_ids[name], self.generations[name]
        call = self.world.heartbeat(member_id, generation, instance_id=self.instances[name])
        self._park(name, "heartbeat", call)

    def do_leave(self, name: str) -> None:
        call = self.world.leave((self.member_ids[name], self.instances[name]))
        self._park(name, "leave", call)

    def do_leave_instance(self, instance: str) -> None:
        self._park("admin", "leave", self.world.leave(("", instance)))

    def do_commit(self, name: str, *words: str) -> None:
        offsets = {}
        for word in words:
            partition, _, offset = word.partition("=")
            topic, _, number = partition.rpartition("-")
            offsets[topic, int(number)] = int(offset)
        call = self.world.commit(offsets, self.member_ids[name], self.generations[name])
        self._park(name, "commit", call)

    def do_wait(self, duration_ms: str) -> None:
        start = self.world.clock.time_ms
        end = start + int(duration_ms)
        while self.world.clock.time_ms < end:
            due = [t.due_ms for t in self.world.clock.timers if not t.is_cancelled]
            step = min([end, *(int(d) for d in due)]) - self.world.clock.time_ms
            self.world.clock.advance(max(step, 1))
            before = len(self.happened)
            self._collect()
            if len(self.happened) > before:
                self.happened.insert(before, f"    after {self.world.clock.time_ms - start} ms")

    def do_hold(self) -> None:
        self.world.log.holds_commits = True

    def do_release(self) -> None:
        self.world.log.holds_commits = False
        self.world.log.commit()

    def do_fail(self, error: str) -> None:
        self.world.log.append_error = ErrorCode[error]

    def do_heal(self) -> None:
        self.world.log.append_error = None

    def do_move(self) -> None:
        self.world.reload()

    def do_crash(self) -> None:
        self.world.crash()
        self.waiting = []
        self.world.log.holds_commits = False

    def do_show(self) -> None:
        group = self.world.group()
        self.happened.append(f"    generation {group.generation_id}")
        for member in group.members.values():
            mark = "*" if member.member_id == group.leader_id else " "
            parts = member.assignment.decode() or "nothing"
            self.happened.append(f"    {mark} {self._label(member.member_id)} has {parts}")

    # What happens

    def _park(self, name: str, what: str, call: Call) -> None:
        self.waiting.append((name, what, call))

    def _collect(self) -> None:
        still = []
        for name, what, call in self.waiting:
            if call.is_done:
                self.happened.append(f"    {name} {what} <- {self._render(name, what, call)}")
            else:
                still.append((name, what, call))
        self.waiting = still

    def _render(self, name: str, what: str, call: Call) -> str:
        response = call.response
        if what == "join":
            return self._render_join(name, response)
        if what == "leave":
            return " ".join(ErrorCode(member.error_code).name for member in response.members)
        if what == "commit":
            partitions = [p for topic in response.topics for p in topic.partitions]
            return " ".join(ErrorCode(partition.error_code).name for partition in partitions)
        error = ErrorCode(response.error_code)
        if what == "sync" and error is ErrorCode.NONE:
            return response.assignment.decode() or "nothing"
        return error.name

    def _render_join(self, name: str, response) -> str:
        error = ErrorCode(response.error_code)
        if error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_ids[name] = response.member_id
            label = self._label(response.member_id)
            if error is not ErrorCode.NONE:
                return f"{error.name} {label}"
            self.generations[name] = response.generation_id
            text = f"{label} generation {response.generation_id} {response.protocol_name}"
            if response.leader != response.member_id:
                return f"{text} led by {self._label(response.leader)}"
            members = " ".join(self._label(member.member_id) for member in response.members)
            skip = " without assigning" if response.skip_assignment else ""
            return f"{text} leads {members}{skip}"
        return error.name

    def _appended(self, batch: bytearray) -> None:
        for record in records_of(batch):
            key, value = record.key, record.value
            if isinstance(key, OffsetCommitKey):
                assert value is None or isinstance(value, OffsetCommitValue)
                text = "forgotten" if value is None else str(value.offset)
                self.happened.append(f"    log: {key.topic}-{key.partition} at {text}")
            elif isinstance(key, GroupMetadataKey):
                assert value is None or isinstance(value, GroupMetadataValue)
                text = "deleted"
                if value is not None:
                    members = " ".join(
                        f"{self._label(member.member_id)}={member.assignment.decode() or '-'}"
                        for member in value.members
                    )
                    text = f"generation {value.generation} {members or 'empty'}"
                self.happened.append(f"    log: group {text}")

    def _label(self, member_id: str) -> str:
        """`client#n` in place of a random id."""
        if member_id not in self.labels:
            name = member_id[:-37]
            count = sum(label.startswith(name + "#") for label in self.labels.values())
            self.labels[member_id] = f"{name}#{count + 1}"
        return self.labels[member_id]


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcript(name):
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


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 8
