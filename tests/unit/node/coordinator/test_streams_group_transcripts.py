"""Groups of Kafka Streams (KIP-1071) as transcripts; `group_transcript.py` has the common commands.

The application counts records by another key (`COUNTING` in `support/streams_world.py`): two
subtopologies, a repartition topic and a changelog.

    > join a process=p1     a stream thread with its first heartbeat
    > beat a                finishes what the last heartbeat asked for, and sends the next
    > no-topics             internal topics are not created from here on
"""

import pytest
from group_transcript import GroupTranscript, compare, tasks, transcripts

from support.streams_world import StreamsWorld, StreamThread, statuses


class StreamsTranscript(GroupTranscript):
    """Stream threads."""

    def __init__(self) -> None:
        self.streams = StreamsWorld()
        super().__init__(self.streams)
        self.members: dict[str, StreamThread] = {}

    def do_join(self, name: str, *words: str) -> None:
        given = dict(word.split("=", 1) for word in words)
        process = given.get("process", f"process of {name}")
        self.members[name] = StreamThread(self.streams, name, process)
        self.do_beat(name)

    def do_beat(self, name: str) -> None:
        member = self.members[name]
        before, topics = member.epoch, set(self.streams.topics)
        member.step()
        if member.epoch == 0:
            self.note(f"{name} <- fenced in epoch {before}")
            return
        assert member.last is not None
        told = []
        if member.last.active_tasks is not None:
            told.append(f"shall run {tasks(member.last.active_tasks) or 'nothing'}")
        if member.last.standby_tasks:
            told.append(f"standby {tasks(member.last.standby_tasks)}")
        if statuses(member.last):
            told.append(f"status {' '.join(map(str, statuses(member.last)))}")
        self.answer(name, member.last, *told)
        created = sorted(set(self.streams.topics) - topics)
        if created:
            self.note(f"created: {' '.join(f'{t}={self.streams.topics[t]}' for t in created)}")

    def do_no_topics(self) -> None:
        self.streams.creates_topics = False

    def do_leave(self, name: str) -> None:
        self.members[name].leave()

    def do_show(self) -> None:
        described = self.streams.describe_streams()
        self.note(f"group epoch {described.group_epoch}, state {described.group_state}")


@pytest.mark.parametrize("name", transcripts("streams"))
def test_streams_group_transcript(name: str) -> None:
    compare("streams", name, StreamsTranscript())


def test_there_are_streams_group_transcripts() -> None:
    assert len(transcripts("streams")) >= 5
