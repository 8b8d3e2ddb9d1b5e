"""Numbers with a meaning in the requests that read a log: Fetch and ListOffsets."""

from typing import Final

CONSUMER_ID: Final = -1
"""The replica id of who is no replica."""
DEBUG_REPLICA_ID: Final = -2
READ_COMMITTED: Final = 1
"""The isolation level of who wants no record of a transaction that is open or aborted."""

# What ListOffsets asks for in place of a time.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
