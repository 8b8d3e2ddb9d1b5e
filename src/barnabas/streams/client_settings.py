"""Settings of Kafka's clients, as users give them, for both kinds that a pipeline has.

Spark reads topics with Kafka's Java clients; results are written with librdkafka. They name logins
and certificates differently, and each refuses or passes over the other's names. Either is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.streams.errors import PipelineError

_SECURITY: Final = ("security.protocol", "sasl.", "ssl.")
_SERVED: Final = ("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Other mechanisms, such as Kerberos, have their settings passed on as they are."""


def java_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return them for Java clients. Raises PipelineError."""
    if not _is_translated(given):
        return dict(given)
    from barnabas.sql.server.security.kafka import java

    authority = given.get("ssl.ca.location")
    more = {} if authority is None else {"ssl.truststore.location": authority}
    try:
        return _others(given) | java({**more, **given})
    except (ValueError, OSError) as error:
        raise PipelineError(str(error)) from error


def librdkafka_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return them for librdkafka's clients. Raises PipelineError."""
    if not _is_translated(given):
        return dict(given)
    from barnabas.sql.server.security.kafka import librdkafka

    try:
        return _others(given) | librdkafka(given)
    except (ValueError, OSError) as error:
        raise PipelineError(str(error)) from error


def _is_translated(given: Mapping[str, str]) -> bool:
    mechanism = given.get("sasl.mechanism", "").upper()
    return "security.protocol" in given and mechanism in _SERVED


def _others(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if not name.startswith(_SECURITY)}
