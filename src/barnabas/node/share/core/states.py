"""The states of a record that a share group has begun with, and what moves it between them.

Delivery acquires a record for one member. That member acknowledges it, or gives it back, or lets
its lock run out; a record that was delivered as often as it may be is archived instead of given
back. A change that is being written down is not binding yet: it is undone if the write fails.

    AVAILABLE --delivered--> ACQUIRED --accepted--> ACKNOWLEDGED
        ^                       |  |
        +--released, timed out--+  +--rejected, gap, given up--> ARCHIVED

Source: Kafka's RecordState and InFlightState, KIP-932.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode

NOBODY: Final = ""
"""The holder of a record that nobody has acquired; no member has this id."""
NEVER_MS: Final = -1


class RecordState(IntEnum):
    """Kafka's numbers, which are also written down."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """On its way to a dead-letter topic (KIP-1191): a number that nothing uses yet."""
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """A member's verdict on a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcquireMode(IntEnum):
    """The delivery of whole batches beyond the limit of records: allowed or not (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


TRANSITIONS: Final = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
    RecordState.ACQUIRED: frozenset(
        {RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
    ),
    RecordState.ACKNOWLEDGED: frozenset[RecordState](),
    RecordState.ARCHIVING: frozenset({RecordState.ARCHIVED}),
    RecordState.ARCHIVED: frozenset[RecordState](),
}
"""The states that can follow a state. Records before a log's start are archived in any state."""

STATE_AFTER: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""The state of a record after an acknowledgement; a renewal changes only its deadline."""

TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """The current settings of one group."""

    lock_duration_ms: int = 30_000
    delivery_count_max: int = 5
    records_in_flight_max: int = 2_000
    is_renewal_enabled: bool = True

    @property
    def throttle_from(self) -> int:
        """Deliveries from which on fewer records are given out at a time.

        A record that makes its readers fail would otherwise take those around it along.
        """
        return max(2, (self.delivery_count_max + 1) // 2)


class Acquired(NamedTuple):
    """Records that a member holds from now on."""

    first_offset: int
    last_offset: int
    delivery_count: int


class AckBatch(NamedTuple):
    """A member's acknowledgement of a range of records: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: list[int]

    def runs(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """(type, first, last) for the records of this batch from `first` to `last`."""
        first = max(self.first_offset, first)
        last = min(self.last_offset, last)
        types = self.types
        if len(types) == 1:
            yield types[0], first, last
            return
        run_first = first
        kind = types[first - self.first_offset]
        for offset in range(first + 1, last + 1):
            following = types[offset - self.first_offset]
            if following != kind:
                yield kind, run_first, offset - 1
                run_first, kind = offset, following
        yield kind, run_first, last


class Refused(NamedTuple):
    """Why an acknowledgement changes nothing."""

    error: ErrorCode
    reason: str
