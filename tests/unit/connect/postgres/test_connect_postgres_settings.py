"""Settings of change capture that would have no effect are refused, and say so."""

from __future__ import annotations

import pytest

from barnabas.connect.cdc.settings import Patterns
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.schemas.data.errors import ConfigError

GIVEN = {
    "topic.prefix": "p",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.dbname": "d",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("incremental.snapshot.allow.schema.changes", "true"),
        ("column.mask.hash.SHA-256.with.salt.x", "public.t.name"),
        ("column.mask.with.3.chars", "public.t.name"),
        ("column.truncate.to.20.chars", "public.t.name"),
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


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (
            {"signal.enabled.channels": "source,jmx"},
            "names jmx, which this",
        ),
        ({"notification.enabled.channels": "jmx"}, "names jmx, which this"),
        ({"signal.enabled.channels": "kafka"}, "signal.kafka.bootstrap.servers"),
        ({"signal.data.collection": "signals"}, "needs a schema and a table"),
        ({"notification.enabled.channels": "sink"}, "notification.sink.topic.name"),
    ],
)
def test_channels_that_there_are_not_are_refused(more: dict[str, str], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        PostgresSettings.parse(GIVEN | more)


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ("shop.items", ["shop.items", "SHOP.Items"]),
        (r"shop\.\p{Lower}++", ["shop.items", "SHOP.Items", "shop.orders"]),
        (r"shop\.[a-z&&[^i]].*, other\..*", ["shop.orders", "other.items"]),
        ("", []),
    ],
)
def test_names_match_as_java_matches(patterns: str, found: list[str]) -> None:
    names = ["shop.items", "SHOP.Items", "shop.orders", "other.items"]
    assert [name for name in names if Patterns(patterns).matches(name)] == found


def test_what_java_does_not_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a list of regular expressions"):
        Patterns("shop.(items")
