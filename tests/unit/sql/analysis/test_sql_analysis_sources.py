"""CREATE STREAM and CREATE TABLE over topics: columns, properties, formats, the schema registry."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql import types
from barnabas.sql.analysis.commands import (
    CreateSourceCommand,
    NothingCommand,
    QueryCommand,
    TopicWish,
)
from barnabas.sql.errors import SqlError
from barnabas.sql.plan.steps import FormatChoice, TimestampColumn, WindowInfo
from barnabas.sql.schema import Column, Part
from barnabas.sql.syntax.tree import WindowKind
from support.sql_statements import Statements


def created(text: str, statements: Statements | None = None) -> CreateSourceCommand:
    command = (statements or Statements()).run(text)
    assert isinstance(command, CreateSourceCommand)
    return command


def test_columns_go_where_they_are_declared() -> None:
    source = created(
        "CREATE STREAM s (v INT, k1 INT KEY, hs ARRAY<STRUCT<key STRING, value BYTES>> HEADERS, "
        "k2 STRING KEY, w DOUBLE) WITH (kafka_topic='s', format='JSON');"
    ).source

    assert [(column.name, column.part) for column in source.schema.columns] == [
        ("K1", Part.KEY),
        ("K2", Part.KEY),
        ("V", Part.VALUE),
        ("W", Part.VALUE),
        ("HS", Part.HEADERS),
    ]


def test_properties_say_how_the_topic_is_to_be_read() -> None:
    command = created(
        "CREATE TABLE t (k STRING PRIMARY KEY, ts STRING) WITH (kafka_topic='in', "
        "key_format='KAFKA', value_format='DELIMITED', value_delimiter='|', timestamp='ts', "
        "timestamp_format='yyyy', window_type='Tumbling', window_size='10 seconds', "
        "partitions=3, replicas='2');"
    )

    source = command.source
    assert source.formats.key == FormatChoice("KAFKA")
    assert source.formats.value.name == "DELIMITED"
    assert source.formats.value.properties == {"delimiter": "|"}
    assert source.timestamp == TimestampColumn("TS", "yyyy")
    assert source.window == WindowInfo(WindowKind.TUMBLING, 10_000)
    assert command.topic == TopicWish("in", 3, 2, None, "compact")


def test_formats_have_defaults_in_the_settings() -> None:
    statements = Statements(
        properties={
            "ksql.persistence.default.format.key": "JSON",
            "ksql.persistence.default.format.value": "DELIMITED",
            "ksql.persistence.wrap.single.values": "false",
        }
    )

    formats = created("CREATE STREAM s (a INT) WITH (kafka_topic='s');", statements).source.formats

    assert (formats.key.name, formats.value.name) == ("JSON", "DELIMITED")


def test_types_by_name_are_put_into_their_places() -> None:
    statements = Statements()
    source = created(
        "CREATE TYPE street AS STRUCT<name STRING>; CREATE TYPE address AS STRUCT<s street>;"
        "CREATE STREAM s (a address, l ARRAY<street>) WITH (kafka_topic='s', format='JSON');",
        statements,
    ).source

    street = types.Struct((types.Field("NAME", types.STRING),))
    assert source.schema.columns == (
        Column("A", types.Struct((types.Field("S", street),))),
        Column("L", types.Array(street)),
    )


REFUSED = {
    "(a INT) WITH (value_format='JSON')": 'Missing required property "KAFKA_TOPIC"',
    "(a INT) WITH (kafka_topic='', format='JSON')": "String must be non-empty",
    "(a INT) WITH (kafka_topic='s')": "Statement is missing the 'VALUE_FORMAT' property",
    "(a INT) WITH (kafka_topic='s', format='JSON', nope=1)": (
        "Failed to prepare statement: Invalid config variable(s) in the WITH clause: NOPE"
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', key_format='JSON')": (
        "Cannot supply both 'KEY_FORMAT' and 'FORMAT' properties"
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', partitions='x')": "Not a number of type INT",
    "(a INT) WITH (kafka_topic='s', format='JSON', replicas=99999)": "Not a number of type SHORT",
    "(a INT) WITH (kafka_topic='s', format='JSON', wrap_single_value='x')": (
        "Expected value to be either true or false"
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', cleanup_policy='delete')": (
        "Users can't set the CLEANUP_POLICY config manually."
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', window_type='weekly')": (
        "String must be one of: SESSION, HOPPING, TUMBLING, null"
    ),
    "(a INT KEY) WITH (kafka_topic='s', format='JSON', window_type='HOPPING')": (
        "HOPPING windows require 'WINDOW_SIZE' to be provided in the WITH clause."
    ),
    "(a INT KEY) WITH (kafka_topic='s', format='JSON', window_type='SESSION', "
    "window_size='1 DAY')": "'WINDOW_SIZE' should not be set for SESSION windows.",
    "(a INT KEY) WITH (kafka_topic='s', format='JSON', window_type='HOPPING', "
    "window_size='30 bobs')": (
        "Configuration WINDOW_SIZE is invalid: Invalid duration: '30 bobs'. Unknown time unit: "
        "'BOBS'"
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', window_type='SESSION')": (
        "Windowed sources require a key column."
    ),
    "(a INT) WITH (kafka_topic='s', format='DELIMITED', value_delimiter='<>')": (
        "Configuration VALUE_DELIMITER is invalid: Invalid delimiter value: '<>'."
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', value_delimiter=';')": (
        "JSON does not support the following configs: [delimiter]"
    ),
    "WITH (kafka_topic='s', format='JSON')": "No columns supplied.",
    "(a INT, a STRING) WITH (kafka_topic='s', format='JSON')": "Duplicate column names: `A`",
    "(a INT PRIMARY KEY) WITH (kafka_topic='s', format='JSON')": (
        "Line: 1, Col: 18: Column `A` is a 'PRIMARY KEY' column: please use 'KEY' for streams."
    ),
    "(rowtime INT) WITH (kafka_topic='s', format='JSON')": "'ROWTIME' is a reserved column name.",
    "(h INT HEADER('x')) WITH (kafka_topic='s', format='JSON')": (
        "Invalid type for HEADER('x') column: expected BYTES, got INTEGER"
    ),
    "(h BYTES HEADERS) WITH (kafka_topic='s', format='JSON')": (
        "expected ARRAY<STRUCT<`KEY` STRING, `VALUE` BYTES>>, got BYTES"
    ),
    "(h BYTES HEADER('x'), i BYTES HEADER('x'), a INT) WITH (kafka_topic='s', format='JSON')": (
        "Schema already contains a HEADER('x') column."
    ),
    "(k MAP<STRING, INT> KEY, a INT) WITH (kafka_topic='s', format='JSON')": (
        "Map keys, including types that contain maps, are not supported"
    ),
    "(a ARRAY<INT>) WITH (kafka_topic='s', value_format='DELIMITED')": (
        "The 'DELIMITED' format does not support type 'ARRAY'"
    ),
    "(a INT) WITH (kafka_topic='s', format='JSON', timestamp='a')": (
        "Timestamp column, `A`, should be LONG(INT64), TIMESTAMP, or a String"
    ),
    "(a BIGINT) WITH (kafka_topic='s', format='JSON', timestamp='a', timestamp_format='y')": (
        "can only be used when the timestamp column is of type STRING."
    ),
    "(a STRING) WITH (kafka_topic='s', format='JSON', timestamp='a', timestamp_format='yyyy b')": (
        "Invalid timestamp_format: 'yyyy b'. Unknown pattern letter: b"
    ),
    "(a INT) WITH (kafka_topic='s', value_format='KAFKA', value_schema_id=1)": (
        "VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. Current "
        "format is KAFKA."
    ),
    "(a INT) WITH (kafka_topic='s', value_format='AVRO', value_schema_id=1)": (
        "Table elements and VALUE_SCHEMA_ID cannot both exist for create statement."
    ),
    "WITH (kafka_topic='s', value_format='AVRO')": "without a schema registry",
}


@pytest.mark.parametrize(("rest", "message"), REFUSED.items(), ids=list(REFUSED))
def test_refused(rest: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        created(f"CREATE STREAM s {rest};")

    assert message in str(raised.value)


def test_tables_need_a_key() -> None:
    with pytest.raises(SqlError, match="Tables require a PRIMARY KEY"):
        created("CREATE TABLE t (a INT) WITH (kafka_topic='t', format='JSON');")
    with pytest.raises(SqlError, match="please use 'PRIMARY KEY' for tables"):
        created("CREATE TABLE t (a INT KEY) WITH (kafka_topic='t', format='JSON');")


def avro(*fields: str) -> str:
    made = [{"name": name, "type": ["null", "int"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": made})


def test_columns_are_inferred_from_the_registry() -> None:
    schemas = MemoryRegistry()
    schemas.register("s-value", "AVRO", avro("a", "b"))
    schema_id = schemas.register("other-value", "AVRO", avro("c"))
    statements = Statements(schemas=schemas)

    inferred = created(
        "CREATE STREAM s (k INT KEY) WITH (kafka_topic='s', value_format='AVRO');", statements
    )
    by_id = created(
        "CREATE STREAM s2 (k INT KEY) WITH (kafka_topic='s', value_format='AVRO', "
        f"value_schema_id={schema_id});",
        statements,
    )

    assert str(inferred.source.schema) == "`K` INTEGER KEY, `A` INTEGER, `B` INTEGER"
    assert str(by_id.source.schema) == "`K` INTEGER KEY, `c` INTEGER"
    with pytest.raises(SqlError, match="topic 'x' does not exist in the Schema Registry"):
        statements.run("CREATE STREAM x WITH (kafka_topic='x', value_format='AVRO');")
    with pytest.raises(SqlError, match="does not exist in the Schema Registry"):
        statements.run(
            "CREATE STREAM x WITH (kafka_topic='s', value_format='AVRO', value_schema_id=9);"
        )
    with pytest.raises(SqlError, match="VALUE_FORMAT to 'AVRO'"):
        statements.run("CREATE STREAM x WITH (kafka_topic='s', value_format='PROTOBUF');")


def test_results_must_have_the_columns_of_the_schema_that_is_asked_for() -> None:
    schemas = MemoryRegistry()
    schema_id = schemas.register("x-value", "AVRO", avro("A", "C"))
    statements = Statements(schemas=schemas)
    statements.run(
        "CREATE STREAM s (k INT KEY, a INT, b INT) WITH (kafka_topic='s', "
        "key_format='KAFKA', value_format='AVRO');"
    )
    query = "CREATE STREAM {} WITH (value_schema_id={}) AS SELECT k, a{} FROM s;"

    statements.run(query.format("o", schema_id, ""))

    with pytest.raises(SqlError) as raised:
        statements.run(query.format("p", schema_id, ", b"))
    assert (
        "The following value columns are changed, missing or reordered: [`B` INTEGER]. Schema from "
        "schema registry is [`A` INTEGER, `C` INTEGER]"
    ) in str(raised.value)


def test_if_not_exists_and_if_exists() -> None:
    statements = Statements()
    create = "CREATE STREAM IF NOT EXISTS s (a INT) WITH (kafka_topic='s', format='JSON');"
    statements.run(create)

    again = statements.run(create)
    query = statements.run("CREATE STREAM IF NOT EXISTS s AS SELECT * FROM s;")
    dropped = statements.run("DROP STREAM IF EXISTS nowhere;")
    type_dropped = statements.run("DROP TYPE IF EXISTS nothing;")

    assert again == NothingCommand(
        "Cannot add stream `S`: A stream with the same name already exists."
    )
    assert isinstance(query, NothingCommand)
    assert dropped == NothingCommand("Source `NOWHERE` does not exist.")
    assert type_dropped == NothingCommand("Type 'NOTHING' does not exist")


def test_sinks_take_formats_over_from_the_first_source() -> None:
    statements = Statements(properties={"ksql.output.topic.name.prefix": "out-"})
    statements.run(
        "CREATE STREAM s (k INT KEY, a INT, b INT) WITH (kafka_topic='s', key_format='KAFKA', "
        "value_format='DELIMITED', value_delimiter='$');"
        "CREATE STREAM bare (a INT) WITH (kafka_topic='b', key_format='NONE', value_format='JSON');"
    )

    inherits = statements.run("CREATE STREAM o AS SELECT * FROM s;")
    keyless = statements.run("CREATE STREAM p AS SELECT * FROM s PARTITION BY NULL;")
    keyed = statements.run("CREATE STREAM q AS SELECT *, 1 AS one FROM bare PARTITION BY a;")
    windowed = statements.run(
        "CREATE TABLE c WITH (kafka_topic='c', format='JSON', partitions=2) AS SELECT a, COUNT(*) "
        "FROM s WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 2 DAYS) GROUP BY a;"
    )

    made = [
        command.ddl
        for command in (inherits, keyless, keyed, windowed)
        if isinstance(command, QueryCommand) and command.ddl is not None
    ]
    formats = [(ddl.source.formats.key.name, ddl.source.formats.value.name) for ddl in made]
    assert formats == [
        ("KAFKA", "DELIMITED"),
        ("NONE", "DELIMITED"),
        ("KAFKA", "JSON"),
        ("JSON", "JSON"),
    ]
    assert made[0].source.formats.value.properties == {"delimiter": "$"}
    assert [ddl.topic for ddl in made] == [
        TopicWish("out-O", None, None, None, "delete", "s"),
        TopicWish("out-P", None, None, None, "delete", "s"),
        TopicWish("out-Q", None, None, None, "delete", "b"),
        TopicWish("c", 2, None, 172_800_000, "compact,delete", "s"),
    ]
