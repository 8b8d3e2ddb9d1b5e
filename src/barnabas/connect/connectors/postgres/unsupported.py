"""Settings of Debezium's connector that would have no effect here, and are refused for it.

Settings that nobody knows are ignored, as Connect does. Of these somebody expects something: masked
columns, say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.connect.errors.kinds import ConfigError

_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "schema.name.adjustment.mode": ("none",),
    "field.name.adjustment.mode": ("none",),
    "topic.naming.strategy": ("io.debezium.schema.SchemaTopicNamingStrategy",),
    "transaction.metadata.factory": (
        "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
        "io.debezium.connector.postgresql.PostgresTransactionMetadataFactory",
    ),
    "snapshot.query.mode": ("select_all",),
    "schema.refresh.mode": ("columns_diff",),
    "slot.failover": ("false",),
    "read.only": ("false",),
    "signal.enabled.channels": ("",),
    "signal.data.collection": ("",),
    "notification.enabled.channels": ("",),
    "converters": ("",),
    "post.processors": ("",),
    "replica.identity.autoset.values": ("",),
    "openlineage.integration.enabled": ("false",),
}
"""By name, the values that ask for nothing that is not done."""
_PATTERNS: Final = re.compile(
    r"column\.(mask\.(hash\.|with\.)|truncate\.to\.|propagate\.source\.type$).*"
    r"|datatype\.propagate\.source\.type|incremental\.snapshot\..*|signal\.kafka\..*"
)


def check_unsupported(settings: Mapping[str, str]) -> None:
    """Raises ConfigError for a setting that would have no effect."""
    for name, value in settings.items():
        allowed = _ALLOWED.get(name)
        if allowed is None and _PATTERNS.fullmatch(name):
            allowed = ("",)
        if allowed is not None and value.strip() not in allowed:
            raise ConfigError(
                f"{name} is not supported by this connector: remove it{_instead(name)}"
            )


def _instead(name: str) -> str:
    if name.startswith("column."):
        return "; Kafka's transforms MaskField and Cast, or a view, can do the like"
    if name.startswith(("signal.", "incremental.")):
        return (
            "; to read tables again, stop the connector, reset its offsets (DELETE"
            " /connectors/{name}/offsets) and resume it"
        )
    return ""
