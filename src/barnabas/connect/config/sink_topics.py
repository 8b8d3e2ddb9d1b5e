"""The topics that a sink reads, and what may be wrong with them.

Source: SinkConnectorConfig (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config.common import DLQ_TOPIC, TOPICS, TOPICS_REGEX
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError


def sink_errors(settings: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return what is wrong with a sink's topics, per setting (SinkConnectorConfig.validate)."""
    topics, pattern = settings.get(TOPICS) or "", settings.get(TOPICS_REGEX) or ""
    dlq = (settings.get(DLQ_TOPIC) or "").strip()
    found: dict[str, list[str]] = {}
    if topics.strip() and pattern.strip():
        text = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        found = {TOPICS: [text], TOPICS_REGEX: [text]}
    elif not topics.strip() and not pattern.strip():
        text = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
        found = {TOPICS: [text], TOPICS_REGEX: [text]}
    names = topic_names(settings)
    if dlq and dlq in names:
        found.setdefault(TOPICS, []).append(
            f"The DLQ topic '{dlq}' may not be included in the list of topics "
            f"('{TOPICS}=[{', '.join(names)}]') consumed by the connector"
        )
    if dlq and pattern.strip() and _matches(pattern, dlq):
        found.setdefault(TOPICS_REGEX, []).append(
            f"The DLQ topic '{dlq}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={pattern}') consumed by the connector"
        )
    return found


def topic_names(settings: Mapping[str, str | None]) -> list[str]:
    """Return the topics that a sink names, each once."""
    names = [name.strip() for name in (settings.get(TOPICS) or "").split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _matches(pattern: str, topic: str) -> bool:
    try:
        return compile_java(pattern).matches(topic)
    except PatternError as error:
        raise ConfigError(f"{TOPICS_REGEX}: {error}") from None
