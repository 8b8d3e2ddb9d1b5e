"""Interfaces of a replica of the metadata log to the outside."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.snapshot_files import Snapshot, SnapshotId
from barnabas.protocol.schema import Message


class NotLeaderError(Exception):
    """This replica may not append: it does not lead the quorum (any more)."""


class RandomSource(Protocol):
    """`random.Random` and `random.SystemRandom` are such sources."""

    def randrange(self, stop: int, /) -> int:
        """An integer in [0, stop)."""


class RaftTransport(Protocol):
    """Requests to other controllers.

    A Fetch may be held for `fetch_max_wait_ms` by the one that answers, and what comes after it
    on the same connection is held with it: give Fetch and FetchSnapshot a connection of their own.
    """

    def send(self, host: str, port: int, request: Message, timeout_ms: int) -> Awaitable[Any]:
        """Send `request` and return its response.

        Raises OSError; ConnectionRefusedError only where nobody listens, for that is taken as
        evidence that the process is dead.
        """


class RaftListener(Protocol):
    """The state machine that applies committed records. Called from the event loop, one call at a
    time."""

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Start over from a snapshot."""

    def apply(self, batches: list[LogBatch]) -> None:
        """Apply committed batches that this replica did not append itself as leader."""

    def committed(self, high_watermark: int) -> None:
        """Everything before `high_watermark` is committed, and applied if it had to be."""

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """`leader_id` leads `epoch`, or nobody is known to (-1).

        For this replica itself it is called when everything before the start of its epoch is
        committed and applied: now it may decide. Once another (or -1) is named, what it appended
        and was not committed is void.
        """


@dataclass(frozen=True, slots=True)
class Appended:
    """The offsets of appended records."""

    base_offset: int
    last_offset: int
