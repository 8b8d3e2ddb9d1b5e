"""The planner's input and output."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from barnabas.base.errors import ShownError


class Standing(StrEnum):
    """The operations that a plan may do with a broker."""

    TARGET = "target"
    """It lives and may take replicas."""
    PINNED = "pinned"
    """It is down and may come back: what it holds stays, and it gets nothing."""
    LEAVING = "leaving"
    """It shall hold nothing."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that replicas are on, or may go to."""

    id: int
    rack: str | None = None
    standing: Standing = Standing.TARGET


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition where it is; the first of its replicas is the preferred leader."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    size_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True)
class Move:
    """A partition's replicas as they are and as they shall be."""

    topic: str
    index: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int = 0

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that have to copy the partition."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that give it up."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def moved_bytes(self) -> int:
        """The bytes that go over the network."""
        return self.size_bytes * len(self.adding)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True)
class Load:
    """The content of one broker."""

    broker: int
    replicas: int = 0
    leaders: int = 0
    size_bytes: int = 0


class PlanError(ShownError, ValueError):
    """No placement does what was asked; the text says why and what would help."""


def moved_bytes(moves: Sequence[Move]) -> int:
    """The bytes that all moves send over the network."""
    return sum(move.moved_bytes for move in moves)


def loads(
    brokers: Sequence[Broker], partitions: Sequence[Partition], moves: Sequence[Move] = ()
) -> list[Load]:
    """Return what each broker holds once `moves` are done, in the order of `brokers`.

    Leaders are the preferred ones.
    """
    after = {(move.topic, move.index): move.after for move in moves}
    replicas = dict.fromkeys((broker.id for broker in brokers), 0)
    leaders, sizes = dict(replicas), dict(replicas)
    for partition in partitions:
        placed = after.get((partition.topic, partition.index), partition.replicas)
        for position, broker in enumerate(placed):
            if broker in replicas:
                replicas[broker] += 1
                leaders[broker] += position == 0
                sizes[broker] += partition.size_bytes
    return [
        Load(broker.id, replicas[broker.id], leaders[broker.id], sizes[broker.id])
        for broker in brokers
    ]
