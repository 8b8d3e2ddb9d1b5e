"""An administrator who moves replicas between the log directories of a node (KIP-113)."""

from typing import TYPE_CHECKING, Any

from barnabas.node.broker.apis.partitions import handle_alter_replica_log_dirs
from barnabas.node.replication.throttle import UNLIMITED
from barnabas.protocol.messages.partitions import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from sim.machine import Machine

if TYPE_CHECKING:
    from sim.faults import Nemesis, Repair

MOVE_REPLICA = "move-replica"
RATES = (UNLIMITED, 20_000, 2_000, 200)
"""Bytes a second: most moves are to be under way when something else happens."""


def move_replica(nemesis: "Nemesis", machine: Machine) -> "Repair | None":
    """Have a replica move to a directory, perhaps that in which it is; perhaps think better of it.

    The node is asked without a network between, since it does not matter who asks.
    """
    random = nemesis.random
    topic = random.choice(nemesis.plan.topics)
    index = random.randrange(topic.partitions)
    first, second = (random.choice(machine.config.log_dirs) for _ in range(2))
    is_changed = random.random() < 0.3
    rate = random.choice(RATES)
    if not _ask(machine, topic.name, index, first):
        return None
    limit_moves(machine, rate)
    nemesis.note(f"{topic.name}-{index} on {machine} is to move to {first}")

    def repair() -> None:
        if is_changed:
            _ask(machine, topic.name, index, second)

    return repair


def limit_moves(machine: Machine, rate: int) -> None:
    """Limit what a node that serves copies in a second, as an administrator may at any time."""
    replicas = machine.replicas
    if replicas is not None:
        replicas.moves.rate.rate_max = rate


def _ask(machine: Machine, topic: str, index: int, path: str) -> bool:
    node: Any = machine.node
    if node is None or not machine.is_serving or machine.is_paused:
        return False
    if machine.process is None or "broker" not in machine.roles:
        return False
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
            )
        ]
    )
    machine.loop.call_soon(
        handle_alter_replica_log_dirs,
        node.broker.services,
        None,
        request,
        context=machine.process.context,
    )
    return True
