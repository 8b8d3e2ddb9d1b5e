"""Settings of change capture that would have no effect are refused, and say so."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.errors.kinds import ConfigError

GIVEN = {
    "topic.prefix": "p",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.dbname": "d",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signal.data.collection", "public.signals"),
        ("signal.enabled.channels", "source"),
        ("incremental.snapshot.chunk.size", "100"),
        ("column.mask.hash.SHA-256.with.salt.x", "public.t.name"),
        ("column.mask.with.3.chars", "public.t.name"),
        ("column.truncate.to.20.chars", "public.t.name"),
        ("column.propagate.source.type", ".*"),
        ("datatype.propagate.source.type", ".*"),
        ("schema.name.adjustment.mode", "avro"),
        ("topic.naming.strategy", "org.example.Mine"),
        ("converters", "isbn"),
        ("post.processors", "reselector"),
        ("slot.failover", "true"),
    ],
)
def test_what_would_have_no_effect_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is not supported by this connector"):
        PostgresSettings.parse({**GIVEN, name: value})
    (errors,) = PostgresConnector().validate({**GIVEN, name: value}).values()
    assert errors[0].startswith(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signal.data.collection", ""),
        ("schema.name.adjustment.mode", "none"),
        ("topic.naming.strategy", "io.debezium.schema.SchemaTopicNamingStrategy"),
        ("slot.failover", "false"),
        ("unknown.to.all", "x"),
    ],
)
def test_what_asks_for_nothing_is_accepted(name: str, value: str) -> None:
    PostgresSettings.parse({**GIVEN, name: value})


def test_who_wants_an_incremental_snapshot_is_told_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"reset its offsets \(DELETE"):
        PostgresSettings.parse({**GIVEN, "signal.data.collection": "public.signals"})
