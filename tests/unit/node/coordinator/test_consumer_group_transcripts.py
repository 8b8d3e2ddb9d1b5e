"""Consumer groups (KIP-848) as transcripts; `group_transcript.py` has the common commands.

> join a topics=t,u     a member with its first heartbeat; also regex=t.* instance=one
> beat a                finishes what the last heartbeat asked for, and sends the next
> subscribe a u         wants other topics from the next heartbeat on
> commit a t-0          commits an offset in the member's epoch
> leave a               > leave-static a         a static member that will be back
"""

import pytest
from group_transcript import GroupTranscript, compare, transcripts

from support.consumer_world import ConsumerWorld, ModernMember


class ConsumerTranscript(GroupTranscript):
    """Members of the consumer protocol."""

    def __init__(self) -> None:
        self.consumers = ConsumerWorld()
        super().__init__(self.consumers)
        self.members: dict[str, ModernMember] = {}

    def do_join(self, name: str, *words: str) -> None:
        given = dict(word.split("=", 1) for word in words)
        self.members[name] = ModernMember(
            self.consumers,
            name,
            given["topics"].split(",") if "topics" in given else [],
            regex=given.get("regex"),
            instance_id=given.get("instance"),
            assignor=given.get("assignor"),
        )
        self.do_beat(name)

    def do_beat(self, name: str) -> None:
        member = self.members[name]
        before = member.epoch
        member.step()
        if member.epoch == 0:
            self.note(f"{name} <- fenced in epoch {before}")
            return
        has = " ".join(f"{topic}-{number}" for topic, number in sorted(member.owned))
        told = f"{name} <- epoch {member.epoch}, has {has or 'nothing'}"
        if member.assigned is not None:
            keeps = " ".join(f"{topic}-{number}" for topic, number in sorted(member.assigned))
            told += f", shall have {keeps or 'nothing'}"
        self.note(told)

    def do_subscribe(self, name: str, *topics: str) -> None:
        self.members[name].subscribe(*topics)

    def do_commit(self, name: str, partition: str) -> None:
        topic, _, number = partition.rpartition("-")
        error = self.members[name].commit((topic, int(number)))
        self.note(f"{name} commit <- {error.name}")

    def do_leave(self, name: str) -> None:
        self.members[name].leave()

    def do_leave_static(self, name: str) -> None:
        self.members[name].leave(epoch=-2)

    def do_show(self) -> None:
        group = self.consumers.consumer_group()
        self.note(f"group epoch {group.epoch}, state {group.state}")


@pytest.mark.parametrize("name", transcripts("consumer"))
def test_consumer_group_transcript(name: str) -> None:
    compare("consumer", name, ConsumerTranscript())


def test_there_are_consumer_group_transcripts() -> None:
    assert len(transcripts("consumer")) >= 6
