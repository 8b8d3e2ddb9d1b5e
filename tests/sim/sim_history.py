"""What simulated clients did and saw, in the order in which it happened."""

from dataclasses import dataclass, field
from enum import Enum

from barnabas.base.ids import TopicPartition


class Outcome(Enum):
    """How an operation ended, as far as its client knows."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    """It has certainly not happened."""
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Send:
    """One batch that a producer sent to one partition, however often."""

    producer: str
    topic_partition: TopicPartition
    values: list[str]
    number: int
    """Ascends by one for each batch of this producer to this partition."""
    acks: int
    is_idempotent: bool
    is_durable: bool
    """Whether the faults of this run leave no excuse for losing it once acknowledged."""
    invoked_s: float
    completed_s: float = 0.0
    outcome: Outcome = Outcome.PENDING
    base_offset: int = -1
    attempts: int = 0
    may_have_happened: bool = False
    """Some attempt ended without saying whether it was appended."""


@dataclass(slots=True, eq=False)
class Poll:
    """What one consumer read of one partition at once, in order."""

    consumer: str
    topic_partition: TopicPartition
    run: int
    """Changes whenever the consumer moves to another position of its own will."""
    records: list[tuple[int, str]]
    """(offset, value)"""
    polled_s: float
    is_final: bool = False


@dataclass(slots=True)
class Anomaly:
    """Something that must not happen."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(slots=True)
class History:
    """Everything that was recorded in one run."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    observed: list[Anomaly] = field(default_factory=list)
    """What clients, nodes and invariants complained of while it happened."""
    final_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """How far the final read went; partitions that could not be read to the end are missing."""

    def saw(self, name: str, text: str) -> None:
        """Record an anomaly at once."""
        self.observed.append(Anomaly(name, text))

    @property
    def operation_count(self) -> int:
        """Records sent and records polled."""
        return sum(len(send.values) for send in self.sends) + sum(
            len(poll.records) for poll in self.polls
        )
