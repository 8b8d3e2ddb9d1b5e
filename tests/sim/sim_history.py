"""The history of a run: what simulated clients did and saw, in order of time."""

from dataclasses import dataclass, field
from enum import Enum

from barnabas.base.ids import TopicPartition


class Outcome(Enum):
    """The outcome of an operation, as far as its client knows."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    """It has certainly not taken effect."""
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
    """True if the faults of this run do not excuse its loss once it is acknowledged."""
    invoked_s: float
    completed_s: float = 0.0
    outcome: Outcome = Outcome.PENDING
    base_offset: int = -1
    attempts: int = 0
    may_have_happened: bool = False
    """Some attempt ended without saying whether it was appended."""


@dataclass(slots=True, eq=False)
class Poll:
    """The records that one consumer read from one partition at once, in order."""

    consumer: str
    topic_partition: TopicPartition
    run: int
    """Changes whenever the consumer itself moves to another position."""
    records: list[tuple[int, str]]
    """(offset, value)"""
    polled_s: float
    is_final: bool = False


@dataclass(slots=True, eq=False)
class Tenure:
    """A group's member's having one partition, from the answer that gave it on."""

    group: str
    member: str
    topic_partition: TopicPartition
    epoch: int
    """The member's epoch, or the group's generation, in which it was given."""
    coordinator: int
    """The node that gave it."""
    began_s: float
    confirmed_s: dict[int, float] = field(default_factory=dict)
    """By node: when the last heartbeat left that it answered without taking the partition away."""


@dataclass(slots=True, eq=False)
class OffsetCommit:
    """One attempt to commit an offset of a group."""

    group: str
    member: str
    topic_partition: TopicPartition
    offset: int
    invoked_s: float
    completed_s: float = 0.0
    outcome: Outcome = Outcome.PENDING
    epoch: int = -1
    """The epoch or generation that was named; -1 for one that is checked elsewhere."""


@dataclass(slots=True, eq=False)
class OffsetFetch:
    """An answer about a group's committed offset; 0 for none."""

    group: str
    who: str
    topic_partition: TopicPartition
    offset: int
    invoked_s: float
    completed_s: float
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
    """Anomalies that clients, nodes and invariants reported during the run."""
    final_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """How far the final read went; partitions that could not be read to the end are missing."""
    tenures: list[Tenure] = field(default_factory=list)
    commits: list[OffsetCommit] = field(default_factory=list)
    offset_fetches: list[OffsetFetch] = field(default_factory=list)
    group_of: dict[str, str] = field(default_factory=dict)
    """Consumer → the group for which it reads."""
    damaged: set[str] = field(default_factory=set)
    """Machines whose files were damaged on purpose."""

    def saw(self, name: str, text: str) -> None:
        """Record an anomaly at once."""
        self.observed.append(Anomaly(name, text))

    @property
    def operation_count(self) -> int:
        """Records sent and records polled."""
        return sum(len(send.values) for send in self.sends) + sum(
            len(poll.records) for poll in self.polls
        )
