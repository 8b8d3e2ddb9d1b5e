"""Reactions to a failed transform or converter: retry, continue without the record, or fail.

An operation that raises RetriableError is tried again until `errors.retry.timeout` is over, with
pauses that double. Any other error, and that one then, fails the record: reporters hear of it, and
with `errors.tolerance=all` the record is left out, otherwise the task ends.

A task that is stopped between two tries ends before that record, which its next run reads again.
Kafka's fails the record, and all that fail after it: with `errors.tolerance=all` they are left out.

Source: RetryWithToleranceOperator, ProcessingContext (Kafka 4.3).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from time import monotonic
from typing import Any, Final, NoReturn, TypeVar

from barnabas.base.backoff import doubled
from barnabas.connect.config.definition import ConfigType
from barnabas.connect.config.values import invalid, number_of, truth_of
from barnabas.schemas.data.errors import ConnectError, RetriableError

RETRY_DELAY_MIN_MS: Final = 300
T = TypeVar("T")


class Stage(StrEnum):
    """Where a record was when something failed; logs and dead letters name it."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


@dataclass(slots=True, frozen=True)
class ErrorPolicy:
    """The `errors.*` settings of a connector. Times in milliseconds; -1 is without end."""

    tolerates_all: bool = False
    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    logs: bool = False
    logs_messages: bool = False
    dead_letter_topic: str = ""
    dead_letter_replicas: int = 3
    dead_letter_has_context: bool = False

    @staticmethod
    def read(settings: Mapping[str, str]) -> ErrorPolicy:
        """Take them from a connector's configuration. Raises ConfigError."""
        tolerance = settings.get("errors.tolerance", "none").lower()
        if tolerance not in ("none", "all"):
            text = "String must be one of (case insensitive): NONE, ALL"
            raise invalid("errors.tolerance", tolerance, text)
        dead_letters = "errors.deadletterqueue."
        return ErrorPolicy(
            tolerates_all=tolerance == "all",
            retry_timeout_ms=number_of(settings, "errors.retry.timeout", 0, type_=ConfigType.LONG),
            retry_delay_max_ms=number_of(
                settings, "errors.retry.delay.max.ms", 60_000, type_=ConfigType.LONG
            ),
            logs=truth_of(settings, "errors.log.enable"),
            logs_messages=truth_of(settings, "errors.log.include.messages"),
            dead_letter_topic=settings.get(f"{dead_letters}topic.name", "").strip(),
            dead_letter_replicas=number_of(
                settings, f"{dead_letters}topic.replication.factor", 3, type_=ConfigType.LONG
            ),
            dead_letter_has_context=truth_of(settings, f"{dead_letters}context.headers.enable"),
        )


@dataclass(slots=True)
class Failure:
    """A record that failed. `original` is as it was read, before transforms and converters."""

    stage: Stage
    class_name: str
    error: BaseException
    original: Any
    attempts: int = 1
    shown: BaseException | None = None
    """The error as status and log have it, if not as it is."""


Reporter = Callable[[Failure], None]


@dataclass(slots=True)
class ErrorCounts:
    """Figures under the names of Kafka's task-error-metrics."""

    failures: int = 0
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    dead_letters: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0

    def add(self, other: ErrorCounts) -> None:
        """Add those of another process."""
        self.failures += other.failures
        self.errors += other.errors
        self.skipped += other.skipped
        self.retries += other.retries
        self.logged += other.logged
        self.dead_letters += other.dead_letters
        self.dead_letter_failures += other.dead_letter_failures
        self.last_error_ms = max(self.last_error_ms, other.last_error_ms)

    def as_metrics(self) -> dict[str, float]:
        """Return them under Kafka's names."""
        return {
            "total-record-failures": self.failures,
            "total-record-errors": self.errors,
            "total-records-skipped": self.skipped,
            "total-retries": self.retries,
            "total-errors-logged": self.logged,
            "deadletterqueue-produce-requests": self.dead_letters,
            "deadletterqueue-produce-failures": self.dead_letter_failures,
            "last-error-timestamp": self.last_error_ms,
        }


class StoppedError(ConnectError):
    """The task is stopped while an operation waits for another try."""


class Dropped(Exception):  # noqa: N818  # a way out, not an error
    """The record is left out: it failed, as is tolerated, or a transform dropped it."""


@dataclass(slots=True)
class Tolerance:
    """Runs the operations of one task's records."""

    policy: ErrorPolicy
    reporters: Sequence[Reporter] = ()
    counts: ErrorCounts = field(default_factory=ErrorCounts)
    stopping: Event = field(default_factory=Event)
    now_ms: Callable[[], float] = lambda: monotonic() * 1000
    pause: Callable[[float], None] | None = None
    """Waits for seconds; None waits for `stopping`."""
    show: Callable[[Any, BaseException, Any], BaseException] = lambda _, error, __: error
    """Returns the error of a plugin at a record as status and log may have it."""

    def run(
        self, stage: Stage, operated: Any, original: Any, operation: Callable[..., T], *given: Any
    ) -> T:
        """Run one operation. Raises Dropped, or ConnectError where the task must end.

        Raises StoppedError if the task is stopped between two tries.
        """
        try:
            return operation(*given)
        except RetriableError as error:
            return self._retry(stage, operated, original, error, operation, given)
        except Exception as error:  # noqa: BLE001  # all that plugins raise
            self.counts.failures += 1
            self._fail(stage, operated, error, original)

    def fail(self, failure: Failure) -> NoReturn:
        """Report a record that failed. Raises Dropped or ConnectError."""
        self.counts.errors += 1
        for report in self.reporters:
            report(failure)
        if not self.policy.tolerates_all:
            shown = failure.shown or failure.error
            raise ConnectError("Tolerance exceeded in error handler") from shown
        self.counts.skipped += 1
        raise Dropped from None

    def _fail(
        self, stage: Stage, operated: Any, error: BaseException, original: Any, attempts: int = 1
    ) -> NoReturn:
        shown = self.show(operated, error, original)
        self.fail(Failure(stage, java_class(operated), error, original, attempts, shown))

    def _retry(
        self,
        stage: Stage,
        operated: Any,
        original: Any,
        error: RetriableError,
        operation: Callable[..., T],
        given: Sequence[Any],
    ) -> T:
        timeout_ms = self.policy.retry_timeout_ms
        deadline = float("inf") if timeout_ms < 0 else self.now_ms() + timeout_ms
        attempt = 1
        while True:
            self.counts.failures += 1
            now = self.now_ms()
            if now >= deadline:
                self._fail(stage, operated, error, original, attempt)
            if self.stopping.is_set():
                shown = self.show(operated, error, original)
                raise StoppedError(f"stopped before another try: {shown}") from shown
            delay_ms = retry_delay_ms(attempt, self.policy.retry_delay_max_ms)
            self._wait(max(0.0, min(delay_ms, deadline - now)) / 1000)
            self.counts.retries += 1
            attempt += 1
            try:
                return operation(*given)
            except RetriableError as again:
                error = again
            except Exception as other:  # noqa: BLE001  # all that plugins raise
                self.counts.failures += 1
                self._fail(stage, operated, other, original, attempt)

    def _wait(self, seconds: float) -> None:
        if self.pause is not None:
            self.pause(seconds)
        else:
            self.stopping.wait(seconds)


def retry_delay_ms(attempt: int, delay_max_ms: int) -> float:
    """Return the pause after a try that failed; 1 is the first."""
    delay_ms = doubled(RETRY_DELAY_MIN_MS, math.inf, attempt - 1)
    return delay_ms if delay_ms <= delay_max_ms else random.random() * delay_max_ms


def java_class(operated: Any) -> str:
    """Return the name that logs and dead letters have for what failed: that of configurations."""
    from barnabas.connect.plugins import HEADER_CONVERTERS, PLUGINS

    kind = operated if isinstance(operated, type) else type(operated)
    python_name = f"{kind.__module__}:{kind.__name__}"
    for plugin in (*PLUGINS.values(), *HEADER_CONVERTERS.values()):
        if plugin.target == python_name:
            return plugin.class_name
    return python_name.replace(":", ".")
