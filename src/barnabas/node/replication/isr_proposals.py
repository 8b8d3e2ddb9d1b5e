"""Asking the controller for ISRs: all that are wanted in one AlterPartition, one under way.

A question is repeated until it has an answer or the image has overtaken it (then the answer means
nothing to its partition). Source: Kafka's AlterPartitionManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.ids import Uuid
from barnabas.node.replication.leadership import IsrProposal
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)

RETRY_MS = 50

telemetry = logging.getLogger(__name__)


class IsrProposals:
    """The questions of one node."""

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        ask_controller: Callable[[Any], Awaitable[Any]],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._clock = clock
        self._ask_controller = ask_controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[tuple[Uuid, int], IsrProposal] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def propose(self, proposal: IsrProposal) -> bool:
        """Ask for an ISR; False while an older question about the partition has no answer."""
        key = (proposal.topic_id, proposal.index)
        older = self._waiting.get(key)
        if self._is_closed or (older is not None and older.leadership.pending is older):
            return False
        self._waiting[key] = proposal  # an older one was overtaken: its answer means nothing
        if self._task is None:
            self._start()
        return True

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if task.cancelled():
            return
        if task.exception() is not None:
            telemetry.error("proposing ISRs failed", exc_info=task.exception())
        elif self._waiting and not self._is_closed:
            self._start()  # proposed after the task had nothing left, before this was called

    async def _run(self) -> None:
        while self._waiting:
            asked = dict(self._waiting)
            error = ErrorCode.NONE
            try:
                response = await self._ask_controller(self._request(list(asked.values())))
            except OSError as failure:
                telemetry.info("cannot ask the controller to change the ISR: %s", failure)
                error = ErrorCode.NETWORK_EXCEPTION
            else:
                error = ErrorCode.of(response.error_code)
                if not error:
                    error = self._take(asked, response)
            if error:
                telemetry.info("AlterPartition failed: %s", error.name)
                await self._pause()
            self._drop_overtaken()

    async def _pause(self) -> None:
        over = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(RETRY_MS, lambda: _settle(over))
        try:
            await over
        finally:
            timer.cancel()

    def _request(self, proposals: list[IsrProposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, AlterPartitionRequestTopicData] = {}
        for proposal in proposals:
            topic = topics.setdefault(
                proposal.topic_id, AlterPartitionRequestTopicData(topic_id=proposal.topic_id)
            )
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=proposal.index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=broker_id, broker_epoch=epoch)
                        for broker_id, epoch in proposal.isr
                    ],
                    leader_recovery_state=proposal.leadership.leader_recovery_state,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=list(topics.values()),
        )

    def _take(
        self, asked: dict[tuple[Uuid, int], IsrProposal], response: AlterPartitionResponse
    ) -> ErrorCode:
        """Tell the partitions; returns the error of one that is to be asked again."""
        retried = ErrorCode.NONE
        for topic in response.topics:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                proposal = asked.pop(key, None)
                if proposal is None:
                    continue
                if self._waiting.get(key) is proposal:
                    del self._waiting[key]
                if not answer.error_code:
                    proposal.leadership.granted(
                        proposal, answer.leader_epoch, answer.partition_epoch, tuple(answer.isr)
                    )
                elif proposal.leadership.refused(proposal, ErrorCode.of(answer.error_code)):
                    self._waiting[key] = proposal
                    retried = ErrorCode.of(answer.error_code)
        return retried

    def _drop_overtaken(self) -> None:
        """Forget what was not answered and is not wanted any more."""
        for key, proposal in list(self._waiting.items()):
            if proposal.leadership.pending is not proposal:
                del self._waiting[key]

    async def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
