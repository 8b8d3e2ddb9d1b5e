"""The door to share groups: what needs both the group coordinator and the share coordinators.

A group's records say which share-partitions have been initialised; the persister keeps how far
each is. Here the one follows the other: a heartbeat that meets new partitions has them
initialised beside it, and an administrator's request waits until both have it.
Source: Kafka's GroupCoordinatorService.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.group.share.heartbeat import Heard, Initialization, check_request
from barnabas.node.coordinator.group.share.offsets import Alteration, Deletion
from barnabas.node.coordinator.group.share.requests import ShareGroupRequests
from barnabas.node.coordinator.group.step import Client, ClientInfo, Refusal
from barnabas.node.coordinator.share.end_offsets import EndOffsets
from barnabas.node.coordinator.share.joins import HeldJoins
from barnabas.node.coordinator.share.state import (
    Persister,
    SharePartitionKey,
    ShareStateError,
    ShareSummary,
)
from barnabas.node.loop.promise import Promise, flat, then
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_groups as describing
from barnabas.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribedGroup,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

R = TypeVar("R")
Errors = dict[tuple[Uuid, int], ShareStateError]
Partitions = Mapping[Uuid, Iterable[int]]

telemetry = logging.getLogger(__name__)


class ShareGroupService:
    """Share groups whose partitions of `__consumer_offsets` this node leads."""

    def __init__(
        self,
        groups: GroupCoordinator,
        persister: Persister,
        ends: EndOffsets,
        image: Callable[[], MetadataImage],
        clock: Clock,
    ) -> None:
        self._groups = groups
        self._persister = persister
        self._ends = ends
        self._image = image
        self._joins = HeldJoins(clock, self._hear)
        self._tasks: dict[asyncio.Future[None], None] = {}
        self._beginning: dict[SharePartitionKey, None] = {}
        """Initializations that heartbeats requested and that are still under way."""

    async def close(self) -> None:
        """Wait for what is under way; the persister must have been closed before."""
        self._joins.close()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    # Members

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: ClientInfo
    ) -> ShareGroupHeartbeatResponse | Promise[ShareGroupHeartbeatResponse]:
        """Join a share group, stay in it, follow its assignment, leave it."""
        refusal = check_request(request)
        if refusal is not None:
            return _refused(refusal)
        sender = client.sender
        return flat(self._hear(request, sender), lambda heard: self._answer(request, sender, heard))

    def _hear(self, request: ShareGroupHeartbeatRequest, sender: Client) -> Any:
        """Run a heartbeat, and begin with what it has found to begin with."""
        outcome: Any = self._groups.run(
            request.group_id,
            lambda shard, _, now: shard.shares.heartbeat(request, sender, now),
            lambda error: Refusal(error, None),
        )
        return then(outcome, self._heard)

    def _heard(self, heard: Heard | Refusal) -> Heard | Refusal:
        if isinstance(heard, Heard) and heard.initialization is not None:
            initialization = self._not_begun(heard.initialization)
            if initialization.start_offsets:
                self._beginning.update(dict.fromkeys(_keys(initialization)))
                self._joins.begun(initialization.group_id)
                task = asyncio.ensure_future(self._initialize_beside(initialization))
                self._tasks[task] = None
                task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return heard

    def _not_begun(self, initialization: Initialization) -> Initialization:
        """The part that is not under way from here.

        A group asks again for what has not come in time, with a higher state epoch by then. Were
        both under way, the second might come when members have begun with what the first has
        initialised, and take back what was acknowledged. Not as in Kafka, where it may.
        """
        left: dict[Uuid, dict[int, int]] = {}
        for key in _keys(initialization):
            if key not in self._beginning:
                offset = initialization.start_offsets[key.topic_id][key.partition]
                left.setdefault(key.topic_id, {})[key.partition] = offset
        return replace(initialization, start_offsets=left)

    def _answer(
        self, request: ShareGroupHeartbeatRequest, sender: Client, heard: Heard | Refusal
    ) -> ShareGroupHeartbeatResponse | Promise[ShareGroupHeartbeatResponse]:
        if isinstance(heard, Refusal):
            return _refused(heard)
        return self._joins.answer(request, sender, heard)

    async def _initialize_beside(self, initialization: Initialization) -> None:
        """Initialise share-partitions, and tell those who wait for it."""
        is_done = False
        try:
            is_done = await self._initialize_all(initialization)
        finally:
            for key in _keys(initialization):
                del self._beginning[key]
            self._joins.ended(initialization.group_id, is_done=is_done)

    async def _initialize_all(self, initialization: Initialization) -> bool:
        """Initialise all of the share-partitions, or give them up until the next look."""
        errors = await self._initialize(initialization)
        group_id, partitions = initialization.group_id, initialization.partitions
        if not errors:
            error = await self._run(
                group_id, lambda shares, now: shares.initialized(group_id, partitions, now)
            )
            if not error:
                return True
            telemetry.warning(
                "group %s: cannot record initialized partitions: %s", group_id, error.name
            )
        else:
            first = next(iter(errors.values()))
            telemetry.warning("group %s: cannot initialize partitions: %s", group_id, first)
        await self._run(group_id, lambda shares, now: shares.given_up(group_id, partitions, now))
        return False

    async def _initialize(self, initialization: Initialization) -> Errors:
        group_id = initialization.group_id
        return await _each(
            {
                (topic_id, index): self._persister.initialize(
                    group_id, topic_id, index, initialization.state_epoch, offset
                )
                for topic_id, offsets in initialization.start_offsets.items()
                for index, offset in offsets.items()
            }
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, members and assignments of share groups."""
        return self._groups.describe(
            group_ids, lambda shard, group_id: shard.shares.describe(group_id), DescribedGroup
        )

    # Offsets

    async def describe_offsets(
        self, request: describing.DescribeShareGroupOffsetsRequestGroup
    ) -> describing.DescribeShareGroupOffsetsResponseGroup:
        """Describe a share group's start offset and lag in partitions; in all of them for None."""
        group_id = request.group_id
        topics = self._image().topics
        missing = []
        wanted: dict[Uuid, Iterable[int]] = {}
        if request.topics is None:
            known: Any = await self._run(
                group_id, lambda shares, _now: shares.initialized_partitions(group_id)
            )
            if isinstance(known, ErrorCode):
                return describing.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group_id, error_code=known, error_message=known.message
                )
            wanted = {key: numbers for key, numbers in known.items() if key in topics.by_id}
        else:
            for asked in request.topics:
                topic = topics.by_name.get(asked.topic_name)
                if topic is not None:
                    wanted[topic.id] = list(dict.fromkeys(asked.partitions))
                else:
                    missing.append(_unknown(asked.topic_name, asked.partitions))
        described = await self._offsets(group_id, wanted)
        return describing.DescribeShareGroupOffsetsResponseGroup(
            group_id=group_id, topics=[*described, *missing]
        )

    async def _offsets(
        self, group_id: str, wanted: Partitions
    ) -> list[describing.DescribeShareGroupOffsetsResponseTopic]:
        topics = self._image().topics.by_id
        names = {topic_id: topics[topic_id].name for topic_id in wanted}
        places = [
            (topic_id, index)
            for topic_id, numbers in wanted.items()
            for index in numbers
            if index in topics[topic_id].partitions
        ]
        outcomes = await asyncio.gather(
            *(self._persister.read_summary(group_id, *place) for place in places),
            return_exceptions=True,
        )
        summaries: dict[tuple[Uuid, int], ShareSummary] = {}
        for place, outcome in zip(places, outcomes, strict=True):
            if isinstance(outcome, ShareSummary):
                summaries[place] = outcome
            elif not isinstance(outcome, ShareStateError):
                raise outcome
        counted = {
            place: TopicPartition(names[place[0]], place[1])
            for place, summary in summaries.items()
            if summary.start_offset >= 0 and summary.delivery_complete_count >= 0
        }
        ends = await self._ends.find(counted.values())
        described = []
        for topic_id, numbers in wanted.items():
            answer = describing.DescribeShareGroupOffsetsResponseTopic(
                topic_name=names[topic_id], topic_id=topic_id
            )
            for index in numbers:
                place = topic_id, index
                end = ends[counted[place]] if place in counted else None
                answer.partitions.append(_described(index, summaries.get(place), end))
            described.append(answer)
        return described

    async def alter_offsets(
        self, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Move the start offsets of a group without members."""
        group_id = request.group_id
        if not group_id:
            return _not_altered(ErrorCode.INVALID_GROUP_ID)
        outcome: Any = await self._run(group_id, lambda shares, now: shares.alter(request, now))
        if isinstance(outcome, ErrorCode):
            return _not_altered(outcome)
        if isinstance(outcome, Refusal):
            return _not_altered(*outcome)
        assert isinstance(outcome, Alteration)
        response, initialization = outcome.response, outcome.initialization
        if not initialization.start_offsets:
            return response
        errors = await self._initialize(initialization)
        for topic in response.responses:
            for partition in topic.partitions:
                error = errors.get((topic.topic_id, partition.partition_index))
                if error is not None and not partition.error_code:
                    partition.error_code = error.error
                    partition.error_message = str(error)
        if not errors:
            partitions = initialization.partitions
            failure = await self._run(
                group_id, lambda shares, now: shares.initialized(group_id, partitions, now)
            )
            if failure:
                return _not_altered(failure)
        return response

    async def delete_offsets(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Have a group without members forget topics."""
        group_id = request.group_id
        if not group_id:
            return _not_deleted(ErrorCode.INVALID_GROUP_ID)
        outcome: Any = await self._run(
            group_id, lambda shares, now: shares.begin_deletion(request, now)
        )
        if isinstance(outcome, ErrorCode):
            return _not_deleted(outcome)
        if isinstance(outcome, Refusal):
            return _not_deleted(*outcome)
        assert isinstance(outcome, Deletion)
        errors = await self._delete(group_id, outcome.partitions)
        failed = {topic_id: error for (topic_id, _), error in errors.items()}
        done = [topic_id for topic_id in outcome.partitions if topic_id not in failed]
        topics = self._image().topics.by_id
        responses = list(outcome.errors)
        if done:
            failure = await self._run(
                group_id, lambda shares, now: shares.end_deletion(group_id, done, now)
            )
            if failure:
                return _not_deleted(failure)
        for topic_id in (*failed, *done):
            answer = DeleteShareGroupOffsetsResponseTopic(
                topic_id=topic_id,
                topic_name=topics[topic_id].name if topic_id in topics else "",
            )
            if topic_id in failed:
                answer.error_code = failed[topic_id].error
                answer.error_message = failed[topic_id].error.message
            responses.append(answer)
        return DeleteShareGroupOffsetsResponse(responses=responses)

    async def _delete(self, group_id: str, partitions: Partitions) -> Errors:
        return await _each(
            {
                (topic_id, index): self._persister.delete(group_id, topic_id, index)
                for topic_id, numbers in partitions.items()
                for index in numbers
            }
        )

    # Groups

    async def delete_groups(self, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """Delete groups of any type; share groups once the share coordinators forgot them."""
        doomed: Any = await _settled(
            self._groups.run_by_partition(
                request.groups_names,
                lambda shard, ids, now: shard.shares.begin_group_deletions(ids, now),
            )
        )
        refused: dict[str, ErrorCode] = {}
        for group_id, partitions in doomed.items():
            if isinstance(partitions, ErrorCode):
                refused[group_id] = partitions
                continue
            errors = await self._delete(group_id, partitions)
            for error in errors.values():
                telemetry.warning("share group %s cannot be deleted: %s", group_id, error)
                refused[group_id] = error.error
        left = [group_id for group_id in request.groups_names if group_id not in refused]
        response = await _settled(
            self._groups.delete_groups(DeleteGroupsRequest(groups_names=left))
        )
        response.results += [
            DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in refused.items()
        ]
        return response

    def on_topics_deleted(self, topic_ids: Iterable[Uuid]) -> None:
        """Forget topics that are gone, in every shard of this node."""
        gone = frozenset(topic_ids)
        self._groups.remove_everywhere(
            "deleted topics from share groups",
            lambda shard, _waiter, _now: shard.shares.topics_deleted(gone),
        )

    # Helpers

    async def _run(
        self, group_id: str, step: Callable[[ShareGroupRequests, Moment], Decision]
    ) -> Any:
        """The response of a step, or an error code."""
        return await _settled(
            self._groups.run(
                group_id, lambda shard, _, now: step(shard.shares, now), lambda error: error
            )
        )


def _keys(initialization: Initialization) -> list[SharePartitionKey]:
    return [
        SharePartitionKey(initialization.group_id, topic_id, index)
        for topic_id, offsets in initialization.start_offsets.items()
        for index in offsets
    ]


async def _settled(outcome: R | Promise[R]) -> R:
    return await outcome if isinstance(outcome, Promise) else outcome


async def _each(asked: Mapping[tuple[Uuid, int], Awaitable[None]]) -> Errors:
    """Ask all at once; the errors by share-partition."""
    outcomes = await asyncio.gather(*asked.values(), return_exceptions=True)
    errors: Errors = {}
    for place, outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, ShareStateError):
            errors[place] = outcome
        elif outcome is not None:
            raise outcome
    return errors


def _refused(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)


def _not_altered(error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=message or error.message)


def _not_deleted(error: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=message or error.message)


def _unknown(
    name: str, partitions: Iterable[int]
) -> describing.DescribeShareGroupOffsetsResponseTopic:
    """A topic that does not exist has no offsets; that is no error, as for OffsetFetch."""
    return describing.DescribeShareGroupOffsetsResponseTopic(
        topic_name=name, partitions=[_described(index, None, None) for index in partitions]
    )


def _described(
    index: int, summary: ShareSummary | None, end: int | ErrorCode | None
) -> describing.DescribeShareGroupOffsetsResponsePartition:
    result = describing.DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=-1
    )
    if isinstance(end, ErrorCode):
        result.start_offset = 0
        result.error_code = end
        result.error_message = end.message
        return result
    if summary is not None:
        result.start_offset = summary.start_offset
        result.leader_epoch = summary.leader_epoch
        if end is not None:
            result.lag = end - summary.start_offset - summary.delivery_complete_count
    return result
