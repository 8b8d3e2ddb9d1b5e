"""Why a query stopped, in a line, and whose fault it is: USER, SYSTEM or UNKNOWN, as in ksqlDB.

USER: a person has to change something (a topic is gone, an authorisation is missing). SYSTEM: the
machines have to (no broker answers, the disk is full). Both may pass by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from barnabas.spark.supervision import python_cause

CLASSIFIER_PREFIX = "ksql.error.classifier.regex"
"""Settings whose names begin so: a type and a regular expression, before what is known here."""

USER, SYSTEM, UNKNOWN = "USER", "SYSTEM", "UNKNOWN"

_USER = re.compile(
    r"unknown[ _]?topic|UnknownTopicOrPart|MissingTopicError"
    r"|\bTopic \S+ (of query \S+ )?(is missing|does not exist)"
    r"|authorization ?failed|AuthorizationException|AUTHORIZATION_FAILED"
    r"|message size too large|RecordTooLarge|MSG_SIZE_TOO_LARGE"
    r"|is the checkpoint of|CheckpointError: Topic|QueryFailedError|subject .*not found",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"no space left|file too large|disk quota|input/output error|read-only file system"
    r"|cannot read .*plan\.json|schema registry|KafkaError|KafkaException|timed? ?out"
    r"|TimeoutException|broker connections are down|ALL_BROKERS_DOWN|_TRANSPORT|transport failure"
    r"|connection (refused|reset)|broker not available|records could not be written"
    r"|cannot write to the brokers|CoordinatorError"
    r"|OutOfMemory|Cannot allocate memory|Python worker exited|ExecutorLost|executor .*lost"
    r"|SparkContext was shut down",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QueryFailure:
    """Why a query stopped; `type` is USER, SYSTEM or UNKNOWN."""

    timestamp_ms: int
    message: str
    type: str = "UNKNOWN"


def failure_of(
    error: BaseException, settings: Mapping[str, Any] | None, timestamp_ms: int
) -> QueryFailure:
    """Describe an error for a user who looks at the query."""
    message = shortened(python_cause(str(error))) or type(error).__name__
    text = f"{type(error).__name__}: {message}"
    return QueryFailure(timestamp_ms, message, failure_type(text, settings))


def failure_type(message: str, settings: Mapping[str, Any] | None = None) -> str:
    """USER, SYSTEM or UNKNOWN; `settings` may have classifiers of their own."""
    for kind, pattern in _own_patterns(settings or {}):
        if pattern.search(message):
            return kind
    if _USER.search(message):
        return USER
    return SYSTEM if _SYSTEM.search(message) else UNKNOWN


def _own_patterns(settings: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The settings' classifiers; those that cannot be read are passed over."""
    for name, value in settings.items():
        kind, _, text = str(value).strip().partition(" ")
        if not name.startswith(CLASSIFIER_PREFIX) or kind.upper() not in (USER, SYSTEM) or not text:
            continue
        with suppress(re.error):
            yield kind.upper(), re.compile(text.strip())


_LINES_MAX = 30
"""The traceback of an error in a micro-batch takes more than 20 before it says what happened."""
_TEXT_MAX = 4_000


def shortened(message: str) -> str:
    """A message without the rest of what a JVM has to say."""
    lines = [line for line in message.strip().splitlines() if not line.startswith("\tat ")]
    return "\n".join(lines[:_LINES_MAX])[:_TEXT_MAX]
