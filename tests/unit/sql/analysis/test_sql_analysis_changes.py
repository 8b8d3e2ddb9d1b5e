"""What statements do to the metastore: replacing, altering, dropping, inserting."""

from __future__ import annotations

import pytest

from barnabas.sql import types
from barnabas.sql.analysis.commands import InsertValuesCommand, QueryCommand
from barnabas.sql.analysis.timestamps import timestamp_of
from barnabas.sql.errors import SqlError
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import IntegerLiteral, NullLiteral, StringLiteral
from support.sql_statements import Statements

SOURCES = """
CREATE STREAM s (k INT KEY, a INT, b STRING) WITH (kafka_topic='s', format='JSON');
CREATE TABLE t (k INT PRIMARY KEY, a INT) WITH (kafka_topic='t', format='JSON');
"""


@pytest.fixture
def statements() -> Statements:
    made = Statements()
    made.run(SOURCES)
    return made


def test_messages_say_what_was_done(statements: Statements) -> None:
    statements.run(
        "CREATE TYPE x AS INT; DROP TYPE x; ALTER STREAM s ADD COLUMN c INT;"
        "CREATE STREAM o AS SELECT * FROM s; DROP TABLE t;"
    )

    assert statements.messages == [
        "Stream created",
        "Table created",
        "Registered custom type with name 'X' and SQL type INTEGER",
        "Dropped type 'X'",
        "Stream S altered.",
        "Created query with ID CSAS_O_0",
        "Source `T` (topic: t) was dropped.",
    ]


def test_who_reads_and_writes_what(statements: Statements) -> None:
    statements.run("CREATE STREAM o AS SELECT * FROM s; INSERT INTO o SELECT * FROM s;")
    store = statements.metastore

    assert store.writers("O") == ["CSAS_O_0", "INSERTQUERY_1"]
    assert store.readers("S") == ["CSAS_O_0", "INSERTQUERY_1"]
    with pytest.raises(SqlError) as raised:
        statements.run("DROP STREAM s;")
    assert "Cannot drop S.\nThe following streams and/or tables read from this source: [O]." in str(
        raised.value
    )
    statements.run("DROP STREAM o; DROP STREAM s;")
    assert set(store.sources) == {"T"}


def test_altered_sources_have_more_columns_and_both_texts(statements: Statements) -> None:
    statements.run("ALTER STREAM s ADD COLUMN c INT, ADD d ARRAY<STRING>;")

    source = statements.metastore.must("S")
    assert source.schema.columns[-2:] == (
        Column("C", types.INTEGER),
        Column("D", types.Array(types.STRING)),
    )
    assert source.text.count(";") == 2
    statements.run("CREATE STREAM o AS SELECT * FROM s;")
    with pytest.raises(SqlError, match=r"not supported for CREATE \.\.\. AS statements"):
        statements.run("ALTER STREAM o ADD COLUMN x INT;")


# --- CREATE OR REPLACE -----------------------------------------------------------------------


def test_queries_are_replaced_under_their_id(statements: Statements) -> None:
    statements.run("CREATE STREAM o AS SELECT k, a FROM s;")
    command = statements.run("CREATE OR REPLACE STREAM o AS SELECT k, a, b FROM s WHERE a > 1;")

    assert isinstance(command, QueryCommand)
    assert (command.plan.query_id, command.replaces) == ("CSAS_O_0", "CSAS_O_0")
    assert list(statements.metastore.queries) == ["CSAS_O_0"]
    assert len(statements.metastore.must("O").schema.columns) == 3


NOT_REPLACED = {
    "CREATE OR REPLACE STREAM s (k INT KEY, a STRING) WITH (kafka_topic='s', format='JSON');": (
        "The following columns are changed, missing or reordered: [`A` INTEGER, `B` STRING]"
    ),
    "CREATE OR REPLACE STREAM s (k BIGINT KEY, a INT, b STRING) "
    "WITH (kafka_topic='s', format='JSON');": (
        "Key columns must be identical. The following key columns are changed, missing or "
        "reordered: [`K` INTEGER KEY]"
    ),
    "CREATE OR REPLACE STREAM s (k INT KEY, a INT, b STRING) "
    "WITH (kafka_topic='x', format='JSON');": "DataSource '`S`' has topic = ",
    "CREATE OR REPLACE TABLE s (k INT PRIMARY KEY, a INT, b STRING) "
    "WITH (kafka_topic='s', format='JSON');": (
        "Cannot upgrade data source: DataSource '`S`' has type = STREAM which is not upgradeable to"
    ),
    "CREATE OR REPLACE TABLE g AS SELECT a, COUNT(*) AS n, COUNT(k) AS m FROM s GROUP BY a;": (
        "Plan step of type StreamAggregate must have matching functions."
    ),
    "CREATE OR REPLACE TABLE g AS SELECT a, COUNT(*) AS n FROM s WINDOW SESSION (1 DAY) "
    "GROUP BY a;": "DataSource '`G`' has topic = ",
    "CREATE OR REPLACE STREAM j AS SELECT s.k, a, b FROM s JOIN s2 WITHIN 2 HOURS "
    "ON s.k = s2.k;": "Upgrades not yet supported for StreamStreamJoin",
}


@pytest.mark.parametrize(("text", "message"), NOT_REPLACED.items(), ids=list(NOT_REPLACED))
def test_not_replaced(statements: Statements, text: str, message: str) -> None:
    statements.run(
        "CREATE STREAM s2 (k INT KEY, x INT) WITH (kafka_topic='s2', format='JSON');"
        "CREATE STREAM o AS SELECT k, a FROM s;"
        "CREATE TABLE g AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;"
        "CREATE STREAM j AS SELECT s.k, a, b FROM s JOIN s2 WITHIN 1 HOUR ON s.k = s2.k;"
    )

    with pytest.raises(SqlError) as raised:
        statements.run(text)

    assert message in str(raised.value)


def test_the_same_plan_always_replaces(statements: Statements) -> None:
    join = "CREATE OR REPLACE TABLE j AS SELECT t.k, t.a, t2.x FROM t JOIN t2 ON t.k = t2.k;"
    statements.run(
        "CREATE TABLE t2 (k INT PRIMARY KEY, x INT) WITH (kafka_topic='t2', format='JSON');"
    )

    assert statements.plan(join) == statements.plan(join)


def test_sinks_of_several_queries_are_not_replaced(statements: Statements) -> None:
    statements.run("CREATE STREAM o AS SELECT * FROM s; INSERT INTO o SELECT * FROM s;")

    with pytest.raises(SqlError) as raised:
        statements.run("CREATE OR REPLACE STREAM o AS SELECT * FROM s;")
    assert "multiple queries writing into it: [CSAS_O_0, INSERTQUERY_1]" in str(raised.value)


# --- INSERT ----------------------------------------------------------------------------------


def test_insert_into_can_name_its_query(statements: Statements) -> None:
    statements.run("CREATE STREAM o AS SELECT * FROM s;")
    insert = "INSERT INTO o WITH (query_id='{}') SELECT * FROM s;"

    assert statements.plan(insert.format("mine")).query_id == "MINE"
    for query_id, message in {
        "Mine": "Query ID 'MINE' already exists.",
        "a-b": "Query IDs may contain only alphanumeric characters and '_'.",
        "ctas_x": "Query IDs must not start with a reserved query ID prefix",
    }.items():
        with pytest.raises(SqlError, match=message):
            statements.run(insert.format(query_id))


def test_numbers_become_decimals_of_the_target(statements: Statements) -> None:
    statements.run(
        "CREATE STREAM d (k INT KEY, x DECIMAL(5, 2)) WITH (kafka_topic='d', format='JSON');"
        "INSERT INTO d SELECT k, 1 AS x FROM s; INSERT INTO d SELECT k, 1.5 AS x FROM s;"
    )

    with pytest.raises(SqlError, match="Incompatible schema between results and sink"):
        statements.run("INSERT INTO d SELECT k, 1.555 AS x FROM s;")


def test_inserted_values_go_into_their_columns(statements: Statements) -> None:
    one, two, text = IntegerLiteral(1), IntegerLiteral(2), StringLiteral("x")

    def inserted(rest: str) -> InsertValuesCommand:
        command = statements.run(f"INSERT INTO {rest};")
        assert isinstance(command, InsertValuesCommand)
        return command

    whole = inserted("s VALUES (1, 2, 'x')")
    partly = inserted("s (b, rowtime) VALUES ('x', 1)")

    assert (whole.key, whole.value, whole.timestamp) == ((one,), (two, text), None)
    assert (partly.key, partly.value, partly.timestamp) == (
        (NullLiteral(),),
        (NullLiteral(), text),
        one,
    )


NOT_INSERTED = {
    "INSERT INTO nowhere VALUES (1);": (
        "Cannot insert values into an unknown stream/table: `NOWHERE`"
    ),
    'INSERT INTO "s" VALUES (1);': "Did you mean S? Hint: try removing double quotes",
    "INSERT INTO s VALUES (1);": (
        "Failed to insert values into 'S'. Expected a value for each column. Expected Columns: []. "
        "Got [1]"
    ),
    "INSERT INTO s (x) VALUES (1);": "Column name `X` does not exist.",
    "INSERT INTO s (rowoffset) VALUES (1);": "Inserting into column `ROWOFFSET` is not allowed.",
    "INSERT INTO t (a) VALUES (1);": "Value for primary key column(s) K is required for tables",
    "INSERT INTO w (a) VALUES (1);": "Cannot insert values into windowed stream/table!",
    "INSERT INTO ro (a) VALUES (1);": "Cannot insert values into read-only table: RO",
    "INSERT INTO h VALUES (1, 'x');": "Cannot insert into HEADER columns: X",
}


@pytest.mark.parametrize(("text", "message"), NOT_INSERTED.items(), ids=list(NOT_INSERTED))
def test_not_inserted(statements: Statements, text: str, message: str) -> None:
    statements.run(
        "CREATE STREAM w (k INT KEY, a INT) WITH (kafka_topic='w', format='JSON', "
        "window_type='SESSION');"
        "CREATE SOURCE TABLE ro (k INT PRIMARY KEY, a INT) WITH (kafka_topic='r', format='JSON');"
        "CREATE STREAM h (a INT, x BYTES HEADER('x')) WITH (kafka_topic='h', format='JSON');"
    )

    with pytest.raises(SqlError) as raised:
        statements.run(text)

    assert message in str(raised.value)


TIMES = {
    "1970": 0,
    "1970-01": 0,
    "1970-01-02": 86_400_000,
    "1970-01-01T01": 3_600_000,
    "1970-01-01T00:00:01.5": 1_500,
    "1970-01-01T00:00:01.500Z": 1_500,
    "1970-01-01T02:00:00.000+0200": 0,
    "1969-12-31T22-0200": 0,
}


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_times_are_completed(text: str, expected: int) -> None:
    assert timestamp_of(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1970-13", "1970-01-01T25", "1970-01-01T00:00+x"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(SqlError, match="Failed to parse timestamp"):
        timestamp_of(text)
