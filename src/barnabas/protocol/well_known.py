"""Names and numbers with a fixed meaning in requests: internal topics, the anonymous principal,
replica ids, isolation levels, the offsets that ListOffsets can ask for, epochs of sessions.
"""

from typing import Final

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics that coordinators write; clients may not."""
CLUSTER_METADATA = "__cluster_metadata"
"""The topic of the metadata log. The cluster image does not contain it."""

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of clients that have not authenticated, as text (see `security.principal`)."""

CONSUMER_ID: Final = -1
"""The replica id of a client, which is not a replica."""
DEBUG_REPLICA_ID: Final = -2
READ_COMMITTED: Final = 1
"""The isolation level of a reader that skips records of open and aborted transactions."""

# Offsets that ListOffsets can ask for in place of a time.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6


NO_SESSION: Final = 0
"""The id of a fetch session in requests that open one, and in answers that opened none."""
INITIAL_EPOCH: Final = 0
"""The epoch of a request that opens a fetch or share session."""
FINAL_EPOCH: Final = -1
"""The epoch of a request that ends its session."""
EPOCH_MAX: Final = 2**31 - 1


def epoch_after(epoch: int) -> int:
    """The epoch of the session's next request (KIP-227, KIP-932).

    The highest one is followed by 1, since 0 and -1 have meanings.
    """
    return 1 if epoch == EPOCH_MAX else epoch + 1
