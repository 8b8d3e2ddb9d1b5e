"""Settings of Debezium's connector that would have no effect here, and are refused for it."""

from __future__ import annotations

from typing import Final

from barnabas.connect.config.unsupported import Unsupported

_COLUMNS: Final = "Kafka's transforms MaskField and Cast, or a view, can do the like"
UNSUPPORTED: Final = (
    Unsupported(r"column\.mask\.(hash|with)\..*", instead=_COLUMNS),
    Unsupported(r"column\.truncate\.to\..*", instead=_COLUMNS),
    Unsupported(r"incremental\.snapshot\.allow\.schema\.changes", ("false",)),
    Unsupported(r"(schema|field)\.name\.adjustment\.mode", ("none",)),
    Unsupported(r"topic\.naming\.strategy", ("io.debezium.schema.SchemaTopicNamingStrategy",)),
    Unsupported(
        r"transaction\.metadata\.factory",
        ("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",),
    ),
    Unsupported(r"snapshot\.query\.mode", ("select_all",)),
    Unsupported(r"schema\.refresh\.mode", ("columns_diff",)),
    Unsupported(r"slot\.failover|openlineage\.integration\.enabled", ("false",)),
    Unsupported(r"converters|post\.processors|replica\.identity\.autoset\.values"),
)
