"""Where a worker stands: what it has read, what the group gave it, what it must still do.

Changed on the herder's thread only, but for what other threads note under the lock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from barnabas.connect.errors.requests import RebalanceNeededError
from barnabas.connect.worker.distributed.config_log import (
    ConfigState,
    ConnectorChanged,
    ConnectorRemoved,
    RestartRequested,
    SessionKeyChanged,
    TargetStateChanged,
    TasksChanged,
    Update,
)
from barnabas.connect.worker.distributed.group_messages import Assignment
from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.connect.worker.state import RestartRequest


@dataclass(slots=True)
class Wishes:
    """Changes that the config topic's records require of this worker, collected until it has
    time."""

    needs_rejoin: bool = False
    connectors: set[str] = field(default_factory=set)
    """Reconfigured or deleted."""
    targets: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    """Connectors whose tasks are reconfigured."""
    restarts: dict[str, RestartRequest] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(
            self.needs_rejoin or self.connectors or self.targets or self.tasks or self.restarts
        )


class Position:
    """`generation` is the group's, -1 before the first."""

    def __init__(self) -> None:
        self.state = ConfigState()
        self.assignment: Assignment | None = None
        self.generation = -1
        self.is_leader = False
        self.session_key: SessionKey | None = None
        self._wishes = Wishes()
        self._lock = threading.Lock()

    @property
    def leader_url(self) -> str | None:
        """The leader's URL."""
        return None if self.assignment is None else self.assignment.leader_url or None

    def note(self, update: Update) -> None:
        """Remember what a record asks for; from the thread that reads."""
        with self._lock:
            wishes = self._wishes
            match update:
                case ConnectorChanged(name):
                    if name in self.state.connectors:
                        wishes.connectors.add(name)
                    else:
                        wishes.needs_rejoin = True
                case ConnectorRemoved(name):
                    if name in self.state.connectors:
                        wishes.needs_rejoin = True
                    else:
                        wishes.connectors.add(name)
                case TasksChanged(name, tasks):
                    wishes.needs_rejoin = True
                    if tasks:
                        wishes.tasks.add(name)
                case TargetStateChanged(name):
                    wishes.targets.add(name)
                case RestartRequested(request):
                    known = wishes.restarts.get(request.connector)
                    if known is None or impact(request) > impact(known):
                        wishes.restarts[request.connector] = request
                case SessionKeyChanged(key):
                    self.session_key = key
                case _:
                    pass

    def take(self, state: ConfigState) -> Wishes:
        """Return what is asked for, and take what is configured now."""
        with self._lock:
            self.state = state
            wishes, self._wishes = self._wishes, Wishes()
            return wishes

    def catch_up(self, state: ConfigState) -> None:
        """Take what is configured now; what was asked for stays."""
        with self._lock:
            self.state = state
            if self.session_key is None:
                self.session_key = state.session_key

    def has_wishes(self) -> bool:
        """Return whether anything is asked for."""
        with self._lock:
            return bool(self._wishes)

    def check_settled(self) -> None:
        """Raises RebalanceNeededError if the group is about to rebalance."""
        with self._lock:
            if self._wishes.needs_rejoin:
                raise RebalanceNeededError


def impact(request: RestartRequest) -> int:
    """Return how much a request to restart does; the greater one replaces the other."""
    return 2 * request.include_tasks + (not request.only_failed)
