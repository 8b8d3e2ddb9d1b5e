"""Settings of Confluent's JDBC connectors that would have no effect are refused."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.jdbc.connectors import JdbcSink, JdbcSource
from barnabas.schemas.data.errors import ConfigError

URL = {"connection.url": "jdbc:sqlite:/nowhere/at/all"}
SOURCE = {**URL, "mode": "bulk", "topic.prefix": "p"}


@pytest.mark.parametrize(
    ("connector", "given", "name", "value"),
    [
        (JdbcSource(), SOURCE, "schema.pattern", "public"),
        (JdbcSource(), SOURCE, "timestamp.granularity", "nanos_long"),
        (JdbcSource(), SOURCE, "table.types", "VIEW"),
        (JdbcSink(), URL, "timestamp.fields.list", "a"),
        (JdbcSink(), URL, "table.types", "VIEW"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    connector: JdbcSource | JdbcSink, given: dict[str, str], name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is not supported"):
        connector.start(None, {**given, name: value})
    (errors,) = connector.validate({**given, name: value}).values()
    assert errors[0].startswith(name)


def test_defaults_of_confluents_are_accepted() -> None:
    JdbcSource().start(None, {**SOURCE, "table.types": "TABLE", "schema.pattern": ""})
    JdbcSink().start(None, {**URL, "table.types": "TABLE"})
