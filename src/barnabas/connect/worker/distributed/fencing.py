"""Fencing of an exactly-once source's older tasks, before new ones write (KIP-618).

The config topic says how many tasks may have written (`tasks-fencing-<connector>`); when their
configurations have changed since, the producers of all of them are fenced, and the new number is
written. Only then may new tasks begin. One task after one task needs no round: it takes the same
transactional id.

Source: DistributedHerder.doFenceZombieSourceTasks and Worker.fenceZombies (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.connect.tasks.kafka_output import fenced_ids
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import CoordinatorError
from barnabas.schemas.data.errors import ConnectError


def tasks_to_fence(state: ConfigState, connector: str) -> int | None:
    """Return how many older tasks' producers are to be fenced; None where the number is enough."""
    recorded = state.fenced_task_counts.get(connector)
    count = state.task_counts.get(connector, 0)
    if connector not in state.pending_fencing or recorded is None or recorded == count == 1:
        return None
    return recorded


class Fencer:
    """Fences producers by their ids."""

    def __init__(self, clients: Clients, group_id: str) -> None:
        self._clients = clients
        self._group_id = group_id

    def fence(self, connector: str, count: int, is_wanted: Callable[[], bool]) -> None:
        """Fence the producers of a connector's first `count` tasks. Raises ConnectError."""
        control = TransactionControl(self._clients.access)
        try:
            for number in range(count):
                if not is_wanted():
                    return
                for one in fenced_ids(self._group_id, connector, number):
                    control.abort(one)
        except CoordinatorError as error:
            raise ConnectError(f"Failed to perform zombie fencing: {error}") from error
        finally:
            control.close()
