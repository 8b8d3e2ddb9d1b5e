"""OffsetCommits that repeat themselves.

A consumer commits the same partitions of the same topic for the same group again and again; only
correlation id, offsets and leader epochs differ. So a request whose other bytes are equal to those
of the last one is not decoded, nor are its topics looked up or its answer encoded again. The
coordinator takes the offsets as they are (`node/coordinator/group/repeated_commit.py`), and what
it does not take so as any other request.

What the client may do is asked again when it may have changed: with every new generation of the
authorizer the next commit is handled as the first was.

`python -m bench.commit_cost` shows the gain."""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, TypeVar

from barnabas.base.network import Part
from barnabas.node.broker.apis.group_requests import client_of
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.responses import answer_later, frame_response
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.offset_requests import commit_error
from barnabas.node.coordinator.group.repeated_commit import RepeatedCommit
from barnabas.node.loop.promise import Promise
from barnabas.node.net.connection import Connection, Reply
from barnabas.protocol.answers import encode_answer
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import CORRELATION_END
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

R = TypeVar("R")

FLEXIBLE_FROM: Final = 8
PARTITIONS_MAX: Final = 64
"""Of a commit that is remembered."""
_BETWEEN: Final = 6
"""Bytes between a partition's offset and leader epoch, and those of the next: empty metadata, no
tags, the next index."""
_END: Final = 4
"""Bytes after the last: empty metadata, no tags of partition, topic and request."""


class CommitShape:
    """The common part of a connection's OffsetCommits.

    A `RepeatedRequests`, which `learn` registers.
    """

    __slots__ = (
        "_answer",
        "_between",
        "_client",
        "_head",
        "_offsets_at",
        "_prefix",
        "_repeated",
        "_request",
        "_services",
        "_size_bytes",
        "_topics",
        "_unpack",
        "_version",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: OffsetCommitRequest,
        frame: bytearray,
    ) -> None:
        """`frame` is that of `request`, which has one topic and is complete."""
        partitions = request.topics[0].partitions
        count = len(partitions)
        layout = Struct(">" + f"qi{_BETWEEN}s" * (count - 1) + f"qi{_END}s")
        self._size_bytes = len(frame)
        self._offsets_at = len(frame) - layout.size
        self._head = bytes(frame[:4])
        self._prefix = bytes(frame[CORRELATION_END : self._offsets_at])
        self._unpack = layout.unpack_from
        self._between = self._unpack(frame, self._offsets_at)[2::3]
        self._services = services
        self._topics = services.image.topics
        self._request = request
        self._version = context.api_version
        self._client = client_of(context)
        self._repeated = RepeatedCommit(services.groups, request, context.api_version)
        topic = request.topics[0]
        stored = OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition_index=partition.partition_index)
                for partition in partitions
            ],
        )
        body = encode(OffsetCommitResponse(topics=[stored]), context.api_version)
        self._answer = (len(body) + 5).to_bytes(4, "big"), b"\0" + body

    def answer(
        self, connection: Connection, frame: bytearray, *, alone: bool = False
    ) -> Sequence[Part] | Reply | None:
        """Answer a whole frame that repeats the last one; None: it does not."""
        values = self.take(frame)
        if values is None:
            return None
        correlation = frame[4:CORRELATION_END]
        outcome = self._repeated.commit(values)
        if outcome is not None:
            if isinstance(outcome, Promise):
                return self._later(connection, correlation, outcome, self._respond_all)
            return self._respond_all(correlation, outcome)
        self._fill_in(values)
        response = self._services.groups.offset_commit(self._request, self._client)
        if isinstance(response, Promise):
            return self._later(connection, correlation, response, self._respond)
        return self._respond(correlation, response)

    def take(self, frame: bytearray) -> Sequence[Any] | None:
        """(Offset, leader epoch, what is between) of each partition, if `frame` repeats the last.

        All in one sequence.
        """
        if (
            len(frame) != self._size_bytes
            or not frame.startswith(self._prefix, CORRELATION_END)
            or not frame.startswith(self._head)
            or self._services.image.topics is not self._topics
        ):
            return None
        values = self._unpack(frame, self._offsets_at)
        return values if values[2::3] == self._between else None

    def _fill_in(self, values: Sequence[Any]) -> None:
        """Put what `take` has found into the request."""
        at = 0
        for partition in self._request.topics[0].partitions:
            partition.committed_offset = values[at]
            partition.committed_leader_epoch = values[at + 1]
            at += 3

    def _stored(self, correlation: bytearray) -> Sequence[Part]:
        """The answer to the request with this correlation id, all of which is stored."""
        size, body = self._answer
        return (b"".join((size, correlation, body)),)

    def _respond(self, correlation: bytearray, response: OffsetCommitResponse) -> Sequence[Part]:
        """The answer to the request with this correlation id."""
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    body = encode_answer(response, self._version)
                    return frame_response(_number(correlation), True, body)
        return self._stored(correlation)

    def _respond_all(self, correlation: bytearray, error: ErrorCode) -> Sequence[Part]:
        """The answer where all partitions have met the same."""
        if not error:
            return self._stored(correlation)
        return self._respond(correlation, commit_error(self._request, error))

    def _later(
        self,
        connection: Connection,
        correlation: bytearray,
        promise: Promise[R],
        respond: Callable[[bytearray, R], Sequence[Part]],
    ) -> Reply:
        """The answer when it is there."""
        context = RequestContext(
            ApiKey.OFFSET_COMMIT,
            self._version,
            _number(correlation),
            self._client.client_id,
            connection,
            self._client.principal,
        )
        return answer_later(promise, context, lambda _, outcome: respond(correlation, outcome))


class GuardedCommitShape(CommitShape):
    """A commit's shape on a node with an authorizer, valid as long as the authorizer's answers."""

    __slots__ = ("_authorizer", "_generation")

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: OffsetCommitRequest,
        frame: bytearray,
        generation: int,
    ) -> None:
        """`generation` is that of the answers by which `request` is allowed."""
        super().__init__(services, context, request, frame)
        self._authorizer = services.authorizer
        self._generation = generation

    def take(self, frame: bytearray) -> Sequence[Any] | None:
        """As its base, unless what is allowed may have changed."""
        return super().take(frame) if self._authorizer.generation == self._generation else None


def _number(correlation: bytearray) -> int:
    return int.from_bytes(correlation, "big", signed=True)


def learn(
    services: BrokerServices,
    context: RequestContext,
    request: OffsetCommitRequest,
    frame: bytearray,
    position: int,
    generation: int,
) -> None:
    """Remember a request, whose body begins at `position`, if it may be repeated.

    `generation` is that of the authorizer when it was asked.
    """
    version = context.api_version
    if version < FLEXIBLE_FROM or len(request.topics) != 1:
        return
    topic = request.topics[0]
    partitions = topic.partitions
    if (
        0 < len(partitions) <= PARTITIONS_MAX
        and not any(partition.committed_metadata for partition in partitions)
        and not any(part.unknown_tags for part in (request, topic, *partitions))
        # It is written as we would write it, so that all is where it is thought to be.
        and frame[position:] == encode(request, version)
    ):
        state = client_state(context.connection)
        if services.authorizer.is_enabled:
            state.repeated = GuardedCommitShape(services, context, request, frame, generation)
        else:
            state.repeated = CommitShape(services, context, request, frame)
