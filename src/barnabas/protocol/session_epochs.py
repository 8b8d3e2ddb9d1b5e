"""Epochs of fetch and share sessions: each request carries the next one (KIP-227, KIP-932)."""

from typing import Final

NO_SESSION: Final = 0
"""The id of a fetch session that is asked for, or that there is none of."""
INITIAL_EPOCH: Final = 0
"""Of a request that opens a session."""
FINAL_EPOCH: Final = -1
"""Of a request that ends its session."""
EPOCH_MAX: Final = 2**31 - 1


def epoch_after(epoch: int) -> int:
    """The epoch of the next request; after the last one it is 1, as 0 and -1 have meanings."""
    return 1 if epoch == EPOCH_MAX else epoch + 1
