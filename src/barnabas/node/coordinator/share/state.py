"""State of a share-partition: how far a share group is with a partition of a topic.

Everything before the start offset is done. Of what follows, the batches say in which state it is
and how often it was delivered; what no batch covers was never delivered. A `Persister` stores it.
Source: KIP-932.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from barnabas.base.ids import Uuid, uuid_from_text, uuid_to_text
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_state

UNINITIALIZED_EPOCH: Final = -1
UNINITIALIZED_OFFSET: Final = -1
"""As start offset: the group has not begun with the partition (or: leave it as it is)."""
UNKNOWN_COUNT: Final = -1


class SharePartitionKey(NamedTuple):
    """One group's view of one partition of one topic."""

    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key of FindCoordinator; it also decides on the partition of the state topic."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "SharePartitionKey":
        """Read a key of FindCoordinator; group ids may hold colons. Raises ValueError."""
        parts = text.rsplit(":", 2)
        if len(parts) < 3 or not parts[0].strip():
            raise ValueError(f"{text!r} is not group:topicId:partition")
        return cls(parts[0], uuid_from_text(parts[1]), int(parts[2]))


@dataclass(frozen=True, slots=True)
class StateBatch:
    """Records from `first_offset` to `last_offset`, both included, all in one state.

    `delivery_state` is Kafka's number: 0 available, 2 acknowledged, 4 archived.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @classmethod
    def of(cls, batch: share_state.StateBatch) -> "StateBatch":
        """The batch of a message or record."""
        return cls(
            batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
        )

    def encoded(self) -> share_state.StateBatch:
        """The batch for a message or record."""
        return share_state.StateBatch(
            first_offset=self.first_offset,
            last_offset=self.last_offset,
            delivery_state=self.delivery_state,
            delivery_count=self.delivery_count,
        )


@dataclass(frozen=True, slots=True)
class ShareState:
    """The kept state of a share-partition, as it is read.

    `leader_epoch` and `delivery_complete_count` are -1 where the coordinator does not tell them:
    Kafka's ReadShareGroupState has neither.
    """

    state_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = UNKNOWN_COUNT
    leader_epoch: int = UNINITIALIZED_EPOCH


@dataclass(frozen=True, slots=True)
class ShareSummary:
    """The kept state of a share-partition without its batches."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class Done:
    """An outcome that says no more than that it is done."""

    __slots__ = ()


DONE: Final = Done()


class Failure(NamedTuple):
    """Why nothing came of a request for one share-partition."""

    error: ErrorCode
    message: str


class ShareStateError(Exception):
    """The share coordinator refused, or could not be reached in time.

    `error` is Kafka's code: FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, INVALID_REQUEST (never
    initialised), UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND; what could be retried was.
    """

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error


class Persister(Protocol):
    """Keeps the state of share-partitions. Every method raises ShareStateError.

    The share-partition's leader reads the stored state when it begins and writes every change; the
    group coordinator initialises and deletes. One call is for one share-partition. Errors that
    pass are retried with a growing pause by the persister itself.
    """

    async def read(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int
    ) -> ShareState:
        """Read the stored state. Fences leaders of the partition before `leader_epoch`.

        A start offset of -1 says that the group has not begun with the partition yet.
        """

    async def write(
        self,
        group_id: str,
        topic_id: Uuid,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Keep that `batches` are in new states. A start offset of -1 leaves it where it is.

        Returns once that is committed. Batches replace what is kept of the same offsets; what
        lies before the start offset is forgotten. Batches must neither be empty nor overlap.
        """

    async def initialize(
        self, group_id: str, topic_id: Uuid, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        """Initialize the state of a share-partition, or reinitialize it with a higher epoch."""

    async def delete(self, group_id: str, topic_id: Uuid, partition: int) -> None:
        """Keep it no more. Nothing to delete is no error."""

    async def read_summary(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int = -1
    ) -> ShareSummary:
        """The stored state without the batches.

        If nothing is stored, the start offset and the count are -1, and the epochs 0.
        """
