"""A member of a group whose coordinator assigns. Source: Kafka's ModernGroupMember."""

from dataclasses import dataclass

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""A static member has left and may come back under another member id within its session."""


@dataclass(frozen=True, slots=True)
class ModernMember:
    """A member, and the assignment epoch that it has reached."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    """The time limit for giving up revoked partitions or tasks; members of share groups have none.
    """

    @property
    def is_classic(self) -> bool:
        """True if the member speaks the classic protocol."""
        return False

    @property
    def own_session_timeout_ms(self) -> int | None:
        """Its session time-out, if the member sets it and not the group."""
        return None

    @property
    def must_give_up(self) -> bool:
        """True if it must revoke something and has not confirmed that it did."""
        return False

    @property
    def is_settled(self) -> bool:
        """True if it has exactly its target assignment of its epoch."""
        return True

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has exactly the assignment of `epoch`."""
        return self.is_settled and self.member_epoch == epoch
