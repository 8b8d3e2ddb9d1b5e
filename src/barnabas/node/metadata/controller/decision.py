"""Input and output of every controller handler.

A handler changes nothing: it reads the state, and returns the records that make the change and
the response that waits until they are committed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.ids import RandomSource
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import ANONYMOUS

RECORDS_PER_REQUEST_MAX = 10_000
"""The most records one request may lead to; beyond, POLICY_VIOLATION (KIP-1102's bound)."""

R = TypeVar("R")


class Failure(NamedTuple):
    """An expected error of one part of a request, with a text for people."""

    code: ErrorCode
    message: str | None = None


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records to append and the response to give once they are committed.

    Unless `is_atomic`, a long list may be appended and become visible in parts.
    """

    response: R
    records: list[MetadataRecord] = field(default_factory=list)
    is_atomic: bool = True
    kraft_version: int | None = None
    """To what the quorum's own feature level is raised, before the records are appended."""


class MutationQuota(Protocol):
    """The partitions that the sender of a request may still create and delete (KIP-599)."""

    @property
    def throttle_ms(self) -> int:
        """For how long the sender should wait, as far as the request has been decided."""

    def spend(self, partitions: int) -> bool:
        """Count as many more; False: nothing is counted, and it may not."""


class NoMutationQuota:
    """Nobody is limited."""

    throttle_ms = 0

    def spend(self, partitions: int) -> bool:
        return True


NO_MUTATION_QUOTA: Final = NoMutationQuota()
QUOTA_EXCEEDED: Final = Failure(
    ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.THROTTLING_QUOTA_EXCEEDED.message
)


@dataclass(slots=True)
class ControllerState:
    """The state that a handler may read.

    `image` includes records that are appended but not yet committed, so that decisions taken in
    between do not contradict each other.
    """

    image: MetadataImage
    effective: EffectiveConfig
    node_id: int
    random: RandomSource
    next_offset: int
    """The offset that the first record of the decision will have; it is a new broker's epoch."""
    mutations: MutationQuota = NO_MUTATION_QUOTA
    """The quota of the request's sender."""
    kraft_version: int = 0
    """The quorum's own feature level, which no metadata record sets."""
    requester: str = ANONYMOUS
    """The principal that asks, as text."""
    now_ms: int = 0
    """Wall-clock time, which may step."""
    kraft_version_refusal: Callable[[int], str | None] = lambda level: None
    """Why the quorum cannot have another; raises NotLeaderError where it has another leader."""

    @property
    def config(self) -> NodeConfig:
        """The node's configuration as its file gives it."""
        return self.effective.static
