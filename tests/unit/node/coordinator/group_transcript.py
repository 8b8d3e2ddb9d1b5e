"""The runner of transcripts of groups whose members send heartbeats, and how it shows records.

A line that begins with `>` is a command; what follows until the next one is what was answered
(`<-`) and written (`log:`). Commands that every kind of group has:

    > topics t=3 u=1        the topics that there are, with their numbers of partitions
    > leave a               > wait 3000              lets time pass, without heartbeats
    > move                  the coordinator moves    > crash   and loses what was not committed
    > show                  members and what they have, by the coordinator's memory
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import OffsetCommitKey
from support.consumer_world import ConsumerWorld, topic_id
from support.group_world import records_of

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
KINDS = ("ConsumerGroup", "StreamsGroup", "ShareGroup")


class GroupTranscript:
    """Runs commands and notes what happens; each kind of group adds its own."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.world.log.on_append = self._appended
        self.happened: list[str] = []

    def run(self, line: str) -> list[str]:
        """Run one command; return what it made happen."""
        command, *words = line.split()
        self.happened = []
        getattr(self, "do_" + command.replace("-", "_"))(*words)
        return self.happened

    def do_topics(self, *words: str) -> None:
        self.world.set_topics({name: int(count) for name, count in _pairs(words)})

    def do_wait(self, duration_ms: str) -> None:
        clock = self.world.clock
        start = clock.time_ms
        end = start + int(duration_ms)
        while clock.time_ms < end:
            due = [int(t.due_ms) for t in clock.timers if not t.is_cancelled]
            before = len(self.happened)
            clock.advance(max(min([end, *due]) - clock.time_ms, 1))
            if len(self.happened) > before:
                self.happened.insert(before, f"    after {clock.time_ms - start} ms")

    def do_move(self) -> None:
        self.world.reload()

    def do_crash(self) -> None:
        self.world.crash()

    def note(self, text: str) -> None:
        """Add a line to what the command made happen."""
        self.happened.append(f"    {text}")

    def answer(self, name: str, response: Any, *having: str) -> None:
        """Note the answer to a heartbeat."""
        error = ErrorCode(response.error_code)
        if error:
            self.note(f"{name} <- {error.name}")
            return
        told = [f"epoch {response.member_epoch}", *having]
        self.note(f"{name} <- {', '.join(told)}")

    def partitions(self, found: Iterable[Any] | None) -> str:
        """Partitions of topics by id, as `t-0 t-1`."""
        names = {topic_id(name): name for name in self.world.topics}
        return " ".join(
            sorted(
                f"{names.get(each.topic_id, '?')}-{number}"
                for each in found or ()
                for number in each.partitions
            )
        )

    def _appended(self, batch: bytearray) -> None:
        for record in records_of(batch):
            self.note("log: " + self._shown(record))

    def _shown(self, record: CoordinatorRecord) -> str:
        key, value = record.key, record.value
        what = type(key).__name__.removesuffix("Key")
        for kind in KINDS:
            what = what.removeprefix(kind)
        whose = f" of {key.member_id}" if hasattr(key, "member_id") else ""
        if isinstance(key, OffsetCommitKey):
            whose = f" of {key.topic}-{key.partition}"
        if value is None:
            return f"{what}{whose} is deleted"
        parts = [
            f"{name} {shown}"
            for name in type(value).__annotations__
            if (shown := self._field(name, getattr(value, name)))
        ]
        return f"{what}{whose}: {', '.join(parts) or 'nothing'}"

    def _field(self, name: str, value: Any) -> str:
        """One field of a record, or nothing where it says nothing here."""
        if name in SILENT_FIELDS or value in (None, "", [], ()):
            return ""
        if not isinstance(value, list):
            return str(value)
        if hasattr(value[0], "topic_name"):
            return " ".join(
                " ".join(f"{each.topic_name}-{n}" for n in getattr(each, "partitions", ["*"]))
                for each in value
            )
        if hasattr(value[0], "topic_id"):
            return self.partitions(value)
        if hasattr(value[0], "subtopology_id"):
            return tasks(value)
        return " ".join(map(str, value))


SILENT_FIELDS = frozenset(
    {
        "assignment_timestamp",
        "classic_member_metadata",
        "client_host",
        "client_id",
        "client_tags",
        "commit_timestamp",
        "expire_timestamp",
        "last_assignment_configs",
        "leader_epoch",
        "metadata",
        "metadata_hash",
        "rebalance_timeout_ms",
        "subtopologies",
        "timestamp",
        "topic_id",
        "topology_epoch",
        "validated_topology_epoch",
        "version",
    }
)
"""The same in all transcripts, or of no interest to their readers."""


def tasks(found: Iterable[Any] | None) -> str:
    """Tasks as `0_1 1_0`."""
    return " ".join(
        sorted(f"{each.subtopology_id}_{n}" for each in found or () for n in each.partitions)
    )


def transcripts(kind: str) -> list[str]:
    """The names of the transcripts of a kind of group."""
    return sorted(path.name for path in (GOLDEN / kind).glob("*.txt"))


def compare(kind: str, name: str, transcript: GroupTranscript) -> None:
    """Run a transcript and compare it with its file, or rewrite the file."""
    path = GOLDEN / kind / name
    expected = path.read_text()
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


def _pairs(words: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in words)]
