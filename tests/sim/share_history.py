"""What happened to the records of share groups: as members saw it, and as leaders gave them out.

A member sees a *hold* of each record that an answer gave it, and what came of what it said of
the record. Who gave a record out, and in which leader epoch, no answer tells; that is noted in
the nodes where the answer is made (`deliveries`), with the virtual time of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.node.share.share_partition_host import HostedSharePartition
from sim.loop import PROCESS, SimLoop
from sim.planting import Patch
from sim.sim_history import Outcome

NEVER_S = float("inf")


@dataclass(slots=True, eq=False)
class SessionSeen:
    """A member's session with one node, as far as its answers confirm it."""

    member: str
    node: str
    confirmed_s: float = 0.0
    """When the last request left that was served in it."""


@dataclass(slots=True, eq=False)
class Hold:
    """A record that an answer gave to a member, and what the member said of it."""

    group: str
    member: str
    topic_partition: TopicPartition
    offset: int
    delivery_count: int
    session: SessionSeen
    received_s: float
    kind: int = -1
    """The acknowledgement that ends the hold; -1 before it."""
    said_s: float = NEVER_S
    answered_s: float = NEVER_S
    outcome: Outcome = Outcome.PENDING
    renewals: list[tuple[float, float]] = field(default_factory=list)
    """(left, answered) of those that were granted."""


@dataclass(slots=True, eq=False)
class ShareDelivery:
    """Records that a leader gave to a member, whether or not the answer arrived."""

    group: str
    member: str
    topic_partition: TopicPartition
    first: int
    last: int
    delivery_count: int
    at_s: float
    node: str
    hosted: int
    """Which share partition at work gave it: another one after each loading."""
    leader_epoch: int


@dataclass(slots=True, eq=False)
class StartSeen:
    """Where a group starts in a partition, as somebody was told; -1 for nowhere yet."""

    group: str
    topic_partition: TopicPartition
    start_offset: int
    invoked_s: float
    completed_s: float


@dataclass(slots=True)
class ShareHistory:
    """Everything about share groups that was recorded in one run."""

    lock_duration_ms: int = 30_000
    delivery_count_max: int = 5
    holds: list[Hold] = field(default_factory=list)
    deliveries: list[ShareDelivery] = field(default_factory=list)
    starts: list[StartSeen] = field(default_factory=list)
    is_drained: bool = False
    """True if every group came to the end of every partition."""
    _hosted: dict[HostedSharePartition, int] = field(default_factory=dict)

    def given(
        self, loop: SimLoop, hosted: HostedSharePartition, member: str, acquired: Any
    ) -> None:
        """A leader has given records out."""
        number = self._hosted.setdefault(hosted, len(self._hosted))
        process = PROCESS.get()
        for entry in acquired:
            self.deliveries.append(
                ShareDelivery(
                    hosted.key.group_id,
                    member,
                    hosted.partition.topic_partition,
                    entry.first_offset,
                    entry.last_offset,
                    entry.delivery_count,
                    loop.time(),
                    "" if process is None else process.name,
                    number,
                    hosted.leader_epoch,
                )
            )

    @contextmanager
    def noting(self, loop: SimLoop) -> Iterator[None]:
        """Note what the leaders of all nodes give out."""
        deliver = HostedSharePartition.deliver
        patch = Patch()

        def deliver_and_tell(hosted: Any, read: Any, member: str, *rest: Any) -> Any:
            delivery = deliver(hosted, read, member, *rest)
            if delivery.acquired:
                self.given(loop, hosted, member, delivery.acquired)
            return delivery

        patch.set(HostedSharePartition, "deliver", deliver_and_tell)
        try:
            yield
        finally:
            patch.undo()
