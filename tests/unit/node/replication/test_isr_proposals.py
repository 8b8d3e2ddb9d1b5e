"""A proposal is asked for whenever it is made."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.replication.isr_proposals import IsrProposals
from barnabas.node.replication.leadership import IsrProposal
from barnabas.protocol.messages.partitions import (
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from sim.manual_clock import ManualClock
from support.patience import PATIENCE_S

TOPIC_ID = Uuid(b"t" * 16)


class FakeLeadership:
    """As much of a Leadership as a proposal needs."""

    leader_recovery_state = 0

    def __init__(self) -> None:
        self.pending: IsrProposal | None = None
        self.granted_count = 0
        self.changed = asyncio.Event()

    def granted(self, proposal: IsrProposal, *_: object) -> None:
        assert self.pending is proposal
        self.pending = None
        self.granted_count += 1
        self.changed.set()


async def grant(request: Any) -> AlterPartitionResponse:
    """Do as asked, at once."""
    return AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    AlterPartitionResponsePartitionData(partition_index=asked.partition_index)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_a_proposal_of_the_moment_in_which_the_last_was_answered() -> None:
    """Made when nothing is left to ask, but the end of the asking is not known yet."""
    proposals = IsrProposals(1, ManualClock(), grant, lambda: 5)
    leadership: Any = FakeLeadership()

    def propose() -> None:
        proposal = IsrProposal(leadership, TOPIC_ID, 0, 0, 0, ((1, 5),), None)
        leadership.pending = proposal
        assert proposals.propose(proposal)

    for ticks in range(6):
        done = leadership.granted_count
        propose()
        for _ in range(ticks):
            await asyncio.sleep(0)
        if leadership.pending is None:
            done += 1
            propose()
        async with asyncio.timeout(PATIENCE_S):
            while leadership.granted_count <= done:
                leadership.changed.clear()
                await leadership.changed.wait()
    await proposals.close()
