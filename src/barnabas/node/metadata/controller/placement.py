"""Placement of the replicas of new partitions.

Replicas are dealt like cards over racks, and within a rack over brokers, so that load is even,
no two replicas of a partition share a rack while there is another, and both the rack and the
broker that lead change from one partition to the next. Fenced brokers serve as followers where
there are too few others, never as first replica. After as many partitions as there are unfenced
brokers the order is shuffled, lest the same brokers always stand next to each other.
Source: Kafka's StripedReplicaPlacer, KIP-36.
"""

from collections.abc import Iterable, Mapping

from barnabas.base.ids import Uuid
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, RandomSource
from barnabas.node.metadata.image import BrokerImage
from barnabas.protocol.errors import ErrorCode


def place_replicas(
    brokers: Iterable[BrokerImage],
    *,
    partition_count: int,
    replication_factor: int,
    random: RandomSource,
) -> list[list[int]] | Failure:
    """Broker ids for each of `partition_count` new partitions, leader first.

    Fails with INVALID_REPLICATION_FACTOR if there are not that many brokers.
    """
    usable = [
        broker for broker in brokers if not broker.in_controlled_shutdown and _has_open_dir(broker)
    ]
    if replication_factor <= 0:
        return _bad_factor(f"Invalid replication factor {replication_factor}: it must be positive.")
    if not usable or all(broker.fenced for broker in usable):
        return _bad_factor("All brokers are currently fenced or in controlled shutdown.")
    if replication_factor > len(usable):
        return _bad_factor(
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(usable)} broker(s) are registered."
        )
    racks = _Racks(usable, random)
    return [racks.place(replication_factor) for _ in range(partition_count)]


def default_directories(
    replicas: Iterable[int], brokers: Mapping[int, BrokerImage]
) -> tuple[Uuid, ...]:
    """The directory of each new replica: known where its broker has one only.

    Source: Kafka's ClusterControlManager.defaultDir (KIP-858, KIP-1066).
    """
    return tuple(_default_directory(brokers.get(replica)) for replica in replicas)


def _default_directory(broker: BrokerImage | None) -> Uuid:
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.log_dirs:
        return DIRECTORY_MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else DIRECTORY_UNASSIGNED


def _has_open_dir(broker: BrokerImage) -> bool:
    """Return whether new replicas may go to the broker: not if all its directories are cordoned."""
    if not broker.log_dirs or broker.cordoned_log_dirs is None:
        return True
    return not set(broker.log_dirs) <= set(broker.cordoned_log_dirs)


def _bad_factor(message: str) -> Failure:
    return Failure(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Ring:
    """Brokers dealt in turn; each round (`epoch`) starts one further."""

    __slots__ = ("_dealt", "_epoch", "_offset", "brokers")

    def __init__(self, brokers: list[int], random: RandomSource) -> None:
        self.brokers = sorted(brokers)
        self._offset = random.randrange(len(brokers)) if brokers else 0
        self._dealt = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """The next broker of this round, or None when all were dealt."""
        if not self.brokers:
            return None
        if self._epoch != epoch:
            self._epoch = epoch
            self._dealt = 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._dealt == len(self.brokers):
            return None
        broker = self.brokers[(self._dealt + self._offset) % len(self.brokers)]
        self._dealt += 1
        return broker


class _Racks:
    """The brokers by rack, and whose turn it is."""

    __slots__ = ("_epoch", "_names", "_offset", "_racks", "_random", "_unfenced_count")

    def __init__(self, brokers: list[BrokerImage], random: RandomSource) -> None:
        self._names = sorted({broker.rack or "" for broker in brokers})
        self._racks = [
            (
                _Ring([b.id for b in brokers if (b.rack or "") == name and not b.fenced], random),
                _Ring([b.id for b in brokers if (b.rack or "") == name and b.fenced], random),
            )
            for name in self._names
        ]
        self._unfenced_count = sum(not broker.fenced for broker in brokers)
        self._offset = random.randrange(len(self._racks))
        self._random = random
        self._epoch = 0

    def place(self, replication_factor: int) -> list[int]:
        """Brokers for the next partition; there are at least `replication_factor`."""
        if self._epoch and self._unfenced_count > 1 and self._epoch % self._unfenced_count == 0:
            self._shuffle()
        self._offset %= len(self._racks)
        first_rack, leader = self._leader()
        replicas = [leader]
        # The leader's rack sits out the first turn: the others go first.
        skip: int | None = first_rack
        rack = self._offset
        while len(replicas) < replication_factor:
            if rack == skip:
                skip = None
            else:
                unfenced, fenced = self._racks[rack]
                broker = unfenced.next(self._epoch)
                if broker is None:
                    broker = fenced.next(self._epoch)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % len(self._racks)
        self._epoch += 1
        self._offset += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        """(rack, broker) of the first replica: the next rack that has an unfenced broker."""
        for step in range(len(self._racks)):
            rack = (self._offset + step) % len(self._racks)
            broker = self._racks[rack][0].next(self._epoch)
            if broker is not None:
                return rack, broker
        raise AssertionError("a round began without an unfenced broker")

    def _shuffle(self) -> None:
        order = list(range(len(self._racks)))
        self._random.shuffle(order)
        self._racks = [self._racks[index] for index in order]
        for unfenced, fenced in self._racks:
            self._random.shuffle(unfenced.brokers)
            self._random.shuffle(fenced.brokers)
