"""Share groups (KIP-932) as transcripts; `group_transcript.py` has the common commands.

> join a t u            a member of these topics with its first heartbeat
> beat a                the next heartbeat
> initialized           the share coordinators have initialized what they were asked for
> given-up              they could not
"""

import pytest
from group_transcript import GroupTranscript, compare, transcripts

from barnabas.protocol.messages.share_groups import ShareGroupHeartbeatResponse
from support.share_group_world import ShareGroupWorld


class ShareTranscript(GroupTranscript):
    """Members of a share group."""

    def __init__(self) -> None:
        self.shares = ShareGroupWorld()
        super().__init__(self.shares)
        self.epochs: dict[str, int] = {}

    def do_join(self, name: str, *topics: str) -> None:
        self._heard(name, self.shares.join_share(name, *topics))

    def do_beat(self, name: str) -> None:
        response = self.shares.share_beat(member_id=name, member_epoch=self.epochs[name])
        self._heard(name, response)

    def do_leave(self, name: str) -> None:
        self._heard(name, self.shares.share_beat(member_id=name, member_epoch=-1))

    def do_initialized(self) -> None:
        self.shares.initialized()

    def do_given_up(self) -> None:
        self.shares.given_up()

    def do_show(self) -> None:
        group = self.shares.share_group()
        self.note(f"group epoch {group.epoch}, state {group.state}")

    def _heard(self, name: str, response: ShareGroupHeartbeatResponse) -> None:
        self.epochs[name] = response.member_epoch
        told = []
        if response.assignment is not None:
            having = self.partitions(response.assignment.topic_partitions)
            told.append(f"reads {having or 'nothing'}")
        self.answer(name, response, *told)
        if self.shares.asked:
            self.note(f"initializations under way: {len(self.shares.asked)}")


@pytest.mark.parametrize("name", transcripts("share"))
def test_share_group_transcript(name: str) -> None:
    compare("share", name, ShareTranscript())


def test_there_are_share_group_transcripts() -> None:
    assert len(transcripts("share")) >= 5
