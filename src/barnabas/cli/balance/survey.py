"""Survey of a cluster, the planner's input."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import (
    Admin,
    LogDirectory,
    Reassignment,
    log_directories,
    partitions,
    reassignments,
    sizes_on,
)
from barnabas.cli.balance.model import Broker, Move, Partition
from barnabas.cli.balance.planner import standing_of
from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka.wire_admin import ClusterInfo
from barnabas.kafka.wire_routing import PartitionState


@dataclass(frozen=True, slots=True)
class Survey:
    """Brokers, partitions, what is being moved, and what lies where."""

    cluster: ClusterInfo
    partitions: list[PartitionState]
    in_flight: Mapping[TopicPartition, Reassignment]
    directories: Mapping[int, list[LogDirectory]]

    def size_bytes(self, key: TopicPartition) -> int:
        """The size of a partition's largest replica."""
        sizes = [
            directory.sizes_bytes.get(key, 0)
            for directories in self.directories.values()
            for directory in directories
        ]
        return max(sizes, default=0)

    def brokers(self, leaving: frozenset[int] = frozenset()) -> list[Broker]:
        """Every broker that is registered or holds something, as the planner takes them."""
        known = self.cluster.brokers
        holding = {broker for state in self.partitions for broker in state.replicas}
        return [
            Broker(
                number,
                known[number].rack if number in known else None,
                standing_of(
                    number,
                    is_alive=number in known and not known[number].is_fenced,
                    leaving=leaving,
                ),
            )
            for number in sorted(holding | known.keys())
        ]

    def holds(self, node: int) -> bool:
        """Return whether replicas are on a node, or on their way there."""
        return any(node in partition.replicas for partition in self.placement())

    def placement(self) -> list[Partition]:
        """The partitions as they will be once what is under way has ended."""
        sizes: dict[TopicPartition, int] = {}
        for held in sizes_on(self.directories).values():
            for key, size_bytes in held.items():
                sizes[key] = max(size_bytes, sizes.get(key, 0))
        placed = []
        for state in self.partitions:
            moving = self.in_flight.get(state.key)
            replicas = state.replicas if moving is None else moving.target
            placed.append(Partition(state.topic, state.index, replicas, sizes.get(state.key, 0)))
        return placed

    def moves_in_flight(self) -> list[Move]:
        """Reassignments under way, as moves."""
        found = []
        for key, moving in self.in_flight.items():
            before = tuple(item for item in moving.replicas if item not in moving.adding)
            size_bytes = self.size_bytes(key)
            found.append(Move(key.topic, key.partition, before, moving.target, size_bytes))
        return found


def survey(admin: Admin) -> Survey:
    """Ask all live brokers. Raises CliError."""
    cluster = admin.cluster()
    in_flight = reassignments(admin)
    states = partitions(admin)
    return Survey(cluster, states, in_flight, log_directories(admin, cluster.live))


def check_known(found: Survey, node: int) -> None:
    """Raise CliError for a node that the cluster knows nothing of."""
    if all(broker.id != node for broker in found.brokers()):
        ids = ", ".join(map(str, sorted(found.cluster.brokers)))
        raise CliError(f"there is no node {node}; there are {ids}", ExitCode.NOT_FOUND)
