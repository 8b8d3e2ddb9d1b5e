"""A member of a group of the consumer protocol (KIP-848): one heartbeat that says and asks all."""

from barnabas.base.ids import TopicPartition, Uuid, uuid_to_text
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from sim.clients import Client
from sim.members import HEARTBEAT_S, GroupPlan, Member, Work

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
REJOIN = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class ConsumerMember(Member):
    """See the module."""

    def __init__(self, client: Client, plan: GroupPlan, work: Work) -> None:
        super().__init__(client, plan, work)
        self.member_id = uuid_to_text(Uuid(client.random.randbytes(16)))
        self._told: list[TopicPartition] | None = None
        """What the coordinator last heard that it has; None: everything is to be said."""

    async def join(self) -> None:
        """The first heartbeat."""
        self.epoch = JOINING_EPOCH
        self._told = None
        await self.heartbeat()

    async def heartbeat(self) -> None:
        """Say what has changed, and do what the answer says."""
        if not all(topic in self.client.topic_ids for topic in self.plan.topics):
            await self.client.back_off()
            return
        sent_s = self.client.loop.time()
        self.heartbeat_due_s = sent_s + HEARTBEAT_S
        has = list(self.tenures)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.plan.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        if self._told is None:
            request.rebalance_timeout_ms = self.plan.rebalance_timeout_ms
            request.subscribed_topic_names = self.plan.topics
        if self._told is None or self._told != has:
            request.topic_partitions = self._by_id(has)
        response = await self.ask(request)
        error = None if response is None else ErrorCode.of(response.error_code)
        if response is not None and not error:
            self._told = has
            await self._follow(response, sent_s)
            return
        self._told = None
        self.heartbeat_due_s = sent_s
        if response is None or error is None or await self.is_elsewhere(error):
            return
        if error not in REJOIN:
            self.client.history.saw(
                "unexpected-error",
                f"{self.client.name} was answered {error.name} in its group: "
                f"{response.error_message}",
            )
        self.lose_all()
        self.epoch = JOINING_EPOCH
        await self.client.back_off()

    def _by_id(
        self, partitions: list[TopicPartition]
    ) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        topics: dict[Uuid, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(self.client.topic_ids[topic], []).append(index)
        return [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in topics.items()
        ]

    async def _follow(self, response: ConsumerGroupHeartbeatResponse, sent_s: float) -> None:
        epoch, self.epoch = self.epoch, response.member_epoch
        self.is_joined = True
        if response.assignment is None:
            self.confirm(sent_s)
            return
        assigned = [
            TopicPartition(self.client.topic_names[topic.topic_id], index)
            for topic in response.assignment.topic_partitions
            for index in topic.partitions
        ]
        lost = [partition for partition in self.tenures if partition not in assigned]
        if not lost:
            self.confirm(sent_s)
        if lost and epoch == self.epoch:
            await self.revoke(lost)
        else:
            self.lose(lost)  # its epoch says that it does not have them any more
        self.gain([partition for partition in assigned if partition not in self.tenures])
        if self._told != list(self.tenures):
            self.heartbeat_due_s = sent_s  # say so at once

    async def leave(self) -> None:
        """Part of Member."""
        await self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.plan.group_id,
                member_id=self.member_id,
                member_epoch=LEAVING_EPOCH,
            )
        )
