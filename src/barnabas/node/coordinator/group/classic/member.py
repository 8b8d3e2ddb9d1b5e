"""A member of a classic group, and the topics in its subscription. Source: ClassicGroupMember."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.node.coordinator.decision import Waiter
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.groups import ConsumerProtocolSubscription

Protocols = list[tuple[str, bytes]]
"""Names of the protocols (assignors) that a member can follow, preferred first, with metadata."""


@dataclass(slots=True)
class Member:
    """A member: its protocols and its assignment.

    `join_waiter` and `sync_waiter` are its parked requests. `is_new` holds until its first
    generation begins: such a member knows no id yet with which it could send heartbeats.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join_waiter: Waiter | None = None
    sync_waiter: Waiter | None = field(default=None)
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        """True if the member has a group.instance.id (KIP-345)."""
        return self.instance_id is not None

    @property
    def is_exempt_from_session(self) -> bool:
        """True if the member need not send heartbeats: it waits for the coordinator."""
        if self.is_new:
            return False
        return self.join_waiter is not None or self.sync_waiter is not None

    def metadata(self, protocol_name: str) -> bytes | None:
        """The member's metadata for `protocol_name`; None if it does not support that protocol."""
        return next((data for name, data in self.protocols if name == protocol_name), None)

    def vote(self, candidates: Iterable[str]) -> str | None:
        """The candidate that the member likes best; None if it supports none of them."""
        allowed = set(candidates)
        return next((name for name, _ in self.protocols if name in allowed), None)


CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in the subscriptions of consumers; None where one of them cannot be read.

    Read as version 0, which every version begins with, so that newer clients are understood.
    """
    topics: set[str] = set()
    try:
        for data in subscriptions:
            if len(data) < 2 or data[0] & 0x80:
                return None
            subscription, _ = decode_at(ConsumerProtocolSubscription, 0, data, 2)
            topics.update(subscription.topics)
    except DecodeError:
        return None
    return frozenset(topics)
