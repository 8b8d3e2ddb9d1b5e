"""States of a transactional id, and what leads from one to the other.

`DEAD` is only passed through: its record is a tombstone. `PREPARE_EPOCH_FENCE` is a state of
Kafka's that is never written; it is known by name to those who filter by it. Source: Kafka's
TransactionState.
"""

from enum import Enum, IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The number is what the log says; `label` is what clients are told."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name of the state, such as `PrepareCommit`."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """True if the outcome is decided and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_at_rest(self) -> bool:
        """True if no transaction is under way; such an id may expire."""
        return self in _AT_REST


class TransactionEvent(Enum):
    """Events of a transactional id."""

    PRODUCER_INITIALIZED = "a producer took the id"
    PARTITIONS_ADDED = "partitions were added"
    COMMIT_DECIDED = "the transaction is to be committed"
    ABORT_DECIDED = "the transaction is to be aborted"
    MARKERS_WRITTEN = "every partition has its marker"
    EXPIRED = "nobody used the id for long"


_State, _Event = TransactionState, TransactionEvent

_AT_REST: Final = frozenset({_State.EMPTY, _State.COMPLETE_COMMIT, _State.COMPLETE_ABORT})

TRANSITIONS: Final[dict[tuple[TransactionState, TransactionEvent], TransactionState]] = {
    (_State.EMPTY, _Event.PRODUCER_INITIALIZED): _State.EMPTY,
    (_State.COMPLETE_COMMIT, _Event.PRODUCER_INITIALIZED): _State.EMPTY,
    (_State.COMPLETE_ABORT, _Event.PRODUCER_INITIALIZED): _State.EMPTY,
    (_State.EMPTY, _Event.PARTITIONS_ADDED): _State.ONGOING,
    (_State.ONGOING, _Event.PARTITIONS_ADDED): _State.ONGOING,
    (_State.COMPLETE_COMMIT, _Event.PARTITIONS_ADDED): _State.ONGOING,
    (_State.COMPLETE_ABORT, _Event.PARTITIONS_ADDED): _State.ONGOING,
    (_State.ONGOING, _Event.COMMIT_DECIDED): _State.PREPARE_COMMIT,
    (_State.ONGOING, _Event.ABORT_DECIDED): _State.PREPARE_ABORT,
    # Since KIP-890 a producer may abort before a partition was added: a batch may be under way.
    (_State.EMPTY, _Event.ABORT_DECIDED): _State.PREPARE_ABORT,
    (_State.COMPLETE_COMMIT, _Event.ABORT_DECIDED): _State.PREPARE_ABORT,
    (_State.COMPLETE_ABORT, _Event.ABORT_DECIDED): _State.PREPARE_ABORT,
    (_State.PREPARE_COMMIT, _Event.MARKERS_WRITTEN): _State.COMPLETE_COMMIT,
    (_State.PREPARE_ABORT, _Event.MARKERS_WRITTEN): _State.COMPLETE_ABORT,
    (_State.EMPTY, _Event.EXPIRED): _State.DEAD,
    (_State.COMPLETE_COMMIT, _Event.EXPIRED): _State.DEAD,
    (_State.COMPLETE_ABORT, _Event.EXPIRED): _State.DEAD,
}
"""A pair that is not listed raises KeyError: it is a bug."""
