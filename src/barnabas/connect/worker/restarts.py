"""Failed connectors and tasks start again by themselves, later each time.

The worker's settings, each of which a connector's configuration may override:

    barnabas.connect.restart.enabled          true
    barnabas.connect.restart.backoff.ms       10 s before the first attempt, doubled each time
    barnabas.connect.restart.backoff.max.ms   5 min at most
    barnabas.connect.restart.max.attempts     -1: no end

An error of the configuration does not heal by itself: it waits for another one. After running for
longer than the longest pause, the pauses start again with the first. Kafka's worker leaves what
failed to its
users; with `enabled=false` ours does too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from barnabas.base.backoff import doubled
from barnabas.connect.config.values import number_of, truth_of
from barnabas.connect.tasks.base import TaskId
from barnabas.schemas.data.errors import ConfigError

_PREFIX: Final = "barnabas.connect.restart."
Name = str | TaskId


@dataclass(slots=True, frozen=True)
class RestartPolicy:
    """When to start again."""

    is_enabled: bool = True
    backoff_ms: int = 10_000
    backoff_ms_max: int = 300_000
    attempts_max: int = -1

    def delay_ms(self, attempt: int) -> int:
        """Return the pause before an attempt; the first is 1."""
        longest_ms = max(self.backoff_ms_max, self.backoff_ms)
        return int(doubled(self.backoff_ms, longest_ms, attempt - 1))


def read_policy(worker: Mapping[str, str], connector: Mapping[str, str]) -> RestartPolicy:
    """Read the settings of a worker, and a connector's own. Raises ConfigError."""
    given = {**worker, **connector}
    default = RestartPolicy()
    return RestartPolicy(
        truth_of(given, f"{_PREFIX}enabled", default=default.is_enabled),
        number_of(given, f"{_PREFIX}backoff.ms", default.backoff_ms, 1),
        number_of(given, f"{_PREFIX}backoff.max.ms", default.backoff_ms_max, 1),
        number_of(given, f"{_PREFIX}max.attempts", default.attempts_max, -1),
    )


def can_heal(error: BaseException) -> bool:
    """Return whether the same configuration may work later."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, ConfigError):
            return False
        seen.add(id(cause))
        cause = cause.__cause__
    return True


@dataclass(slots=True, frozen=True)
class Attempt:
    """A restart that is due; `note` is for the status' trace."""

    name: Name
    number: int
    due_ms: int
    note: str


class Restarts:
    """Failed connectors and tasks, and when they restart. Pure: times are given."""

    def __init__(self, policy_of: Callable[[str], RestartPolicy]) -> None:
        self._policy_of = policy_of
        self._attempts: dict[Name, int] = {}
        self._started_ms: dict[Name, int] = {}
        self._due: dict[Name, Attempt] = {}

    def failed(self, name: Name, error: BaseException, now_ms: int) -> Attempt | None:
        """A connector or task failed; returns when it starts again, None for not."""
        try:
            policy = self._policy_of(name if isinstance(name, str) else name.connector)
        except ConfigError:
            return None
        started_ms = self._started_ms.pop(name, now_ms)
        if now_ms - started_ms > policy.backoff_ms_max:
            self._attempts.pop(name, None)
        number = self._attempts.get(name, 0) + 1
        if not policy.is_enabled or not can_heal(error):
            self._due.pop(name, None)
            return None
        if 0 <= policy.attempts_max < number:
            self._due.pop(name, None)
            return None
        due_ms = now_ms + policy.delay_ms(number)
        what = "Connector" if isinstance(name, str) else "Task"
        at = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="seconds")
        of = f" of {policy.attempts_max}" if policy.attempts_max >= 0 else ""
        note = f"{what} {name} restarts at {at} (attempt {number}{of})"
        self._attempts[name] = number
        attempt = self._due[name] = Attempt(name, number, due_ms, note)
        return attempt

    def started(self, name: Name, now_ms: int) -> None:
        """It starts, for any reason: nothing is due any more."""
        self._started_ms[name] = now_ms
        self._due.pop(name, None)

    def forget(self, connector: str) -> None:
        """A connector was deleted, or reconfigured as a whole: it begins with no failures."""
        for name in self._of(connector):
            self.drop(name)

    def drop(self, name: Name) -> None:
        """A connector or task is no longer ours."""
        self._attempts.pop(name, None)
        self._started_ms.pop(name, None)
        self._due.pop(name, None)

    def renew(self, connector: str) -> None:
        """A connector was reconfigured: failures so far do not count.

        A task that waits for its start does so still: where its own configuration is as it was,
        nobody else starts it.
        """
        for name in self._of(connector):
            waiting = self._due.get(name)
            self.drop(name)
            if waiting is not None and not isinstance(name, str):
                self._due[name] = waiting

    def _of(self, connector: str) -> set[Name]:
        names = {*self._attempts, *self._started_ms, *self._due}
        return {
            name
            for name in names
            if (name if isinstance(name, str) else name.connector) == connector
        }

    def take_due(self, now_ms: int) -> list[Attempt]:
        """Return what is to start now."""
        due = [attempt for attempt in self._due.values() if attempt.due_ms <= now_ms]
        for attempt in due:
            del self._due[attempt.name]
        return due

    def next_due_ms(self) -> int | None:
        """Return when the next one is due."""
        return min((attempt.due_ms for attempt in self._due.values()), default=None)
