"""Statements: text in, canonical text out, and what is refused with which words."""

from __future__ import annotations

import pytest

from barnabas.sql import types
from barnabas.sql.errors import ParseError, Place
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parser import parse, parse_one
from barnabas.sql.syntax.statement_printer import statement_text

CANONICAL = {
    "select * from s": "SELECT *\nFROM S S",
    "select * from s emit changes limit 5": "SELECT *\nFROM S S\nEMIT CHANGES\nLIMIT 5",
    "select a, t.*, b->*, c as `d` from s as t partition by a": (
        "SELECT\n  A,\n  T.*,\n  B->*,\n  C `d`\nFROM S T\nPARTITION BY A"
    ),
    "select a emit, final from s emit emit final": (
        "SELECT\n  A EMIT,\n  FINAL\nFROM S EMIT\nEMIT FINAL"
    ),
    "create table t as select count(*) from s window w tumbling (size 90 seconds, "
    "retention 1 day, grace period 10 milliseconds) where a > 1 group by (a, b) "
    "having count(*) > 1": (
        "CREATE TABLE T AS SELECT COUNT(*)\nFROM S S\n"
        "WINDOW W TUMBLING ( SIZE 90 SECONDS , RETENTION 1 DAYS , GRACE PERIOD 10 MILLISECONDS ) \n"
        "WHERE (A > 1)\nGROUP BY A, B\nHAVING (COUNT(*) > 1)\nEMIT CHANGES"
    ),
    "create or replace stream t with (partitions=3, kafka_topic='x') as select * from a "
    "left join b within (1 hour, 30 minutes) grace period 1 day on a.x = b.x "
    "full outer join c on a.x = c.x": (
        "CREATE OR REPLACE STREAM T WITH (KAFKA_TOPIC='x', PARTITIONS=3) AS SELECT *\nFROM A A\n"
        "LEFT OUTER JOIN B B WITHIN (1 HOURS, 30 MINUTES) GRACE PERIOD 1 DAYS ON ((A.X = B.X))\n"
        "FULL OUTER JOIN C C ON ((A.X = C.X))\nEMIT CHANGES"
    ),
    "insert into s with (query_id='q') select * from t where a group by ()": (
        "INSERT INTO S WITH (QUERY_ID='q') SELECT *\nFROM T T\nWHERE A\nGROUP BY ()\nEMIT CHANGES"
    ),
    "select 1 from s window hopping (size 1 hour, advance by 10 minutes) group by (a + b) * 2": (
        "SELECT 1\nFROM S S\nWINDOW HOPPING ( SIZE 1 HOURS , ADVANCE BY 10 MINUTES ) \n"
        "GROUP BY ((A + B) * 2)"
    ),
    "select 1 from s window session (5 seconds) group by a": (
        "SELECT 1\nFROM S S\nWINDOW SESSION ( 5 SECONDS ) \nGROUP BY A"
    ),
    "create source table if not exists t (k int primary key, v my_type, h array<int> headers, "
    "i bytes header('x')) with ('kafka_topic'='t', wrap_single_value=false, x=null, y=-1.5)": (
        "CREATE SOURCE TABLE IF NOT EXISTS T (K INTEGER PRIMARY KEY, V MY_TYPE, "
        "H ARRAY<INTEGER> HEADERS, I BYTES HEADER('x')) "
        "WITH (KAFKA_TOPIC='t', WRAP_SINGLE_VALUE=false, X=NULL, Y=-1.5)"
    ),
    "create stream s with (value_format='avro')": "CREATE STREAM S WITH (VALUE_FORMAT='avro')",
    "insert into s values (1, 'a', array[2])": "INSERT INTO S VALUES (1, 'a', ARRAY[2])",
    "insert into s (a, `b`) values (-1, null)": "INSERT INTO S (A, `b`) VALUES (-1, null)",
    "drop stream if exists s delete topic": "DROP STREAM IF EXISTS S DELETE TOPIC",
    "alter stream s add column a int, add b string": (
        "ALTER STREAM S\nADD COLUMN A INTEGER,\nADD COLUMN B STRING"
    ),
    "alter table s add column int": "ALTER TABLE S\nADD COLUMN COLUMN INTEGER",
    "create type if not exists t as struct<a int>": (
        "CREATE TYPE IF NOT EXISTS T AS STRUCT<A INTEGER>"
    ),
    "drop type t": "DROP TYPE T",
    "create sink connector if not exists c with ('a.b'='x')": (
        "CREATE SINK CONNECTOR IF NOT EXISTS C WITH ('a.b'='x')"
    ),
    "drop connector if exists c": "DROP CONNECTOR IF EXISTS C",
    "list all topics extended": "SHOW ALL TOPICS EXTENDED",
    "show streams": "SHOW STREAMS",
    "show source connectors": "SHOW SOURCE CONNECTORS",
    "show connector plugins": "SHOW CONNECTOR PLUGINS",
    "list queries extended": "SHOW QUERIES EXTENDED",
    "describe tables extended": "DESCRIBE TABLES EXTENDED",
    "describe streams": "DESCRIBE STREAMS",
    "describe `tables`": "DESCRIBE `tables`",
    "describe s extended": "DESCRIBE S EXTENDED",
    "describe function Lcase": "DESCRIBE FUNCTION Lcase",
    "describe connector c": "DESCRIBE CONNECTOR C",
    "explain q_1": "EXPLAIN Q_1",
    "explain select * from s": "EXPLAIN\nSELECT *\nFROM S S",
    "print topic_A from beginning interval 2 limit 3": (
        "PRINT 'topic_A' FROM BEGINNING INTERVAL 2 LIMIT 3"
    ),
    "terminate all": "TERMINATE ALL",
    "pause q1": "PAUSE Q1",
    "set 'a'='b''c'": "SET 'a'='b''c'",
    "unset 'a'": "UNSET 'a'",
    "alter system 'a'='b'": "ALTER SYSTEM 'a'='b'",
    "define Limit = '3'": "DEFINE Limit='3'",
    "undefine x": "UNDEFINE x",
    "assert not exists topic t with (partitions=1) timeout 5 seconds": (
        "ASSERT NOT EXISTS TOPIC 't' WITH (PARTITIONS=1) TIMEOUT 5 SECONDS"
    ),
    "assert schema subject 's' id 3": "ASSERT SCHEMA SUBJECT 's' ID 3",
}

IN_TESTS = {
    "assert values s (a) values (1)": "ASSERT VALUES S (A) VALUES (1)",
    "assert null values s (a) key (1)": "ASSERT NULL VALUES S (A) KEY (1)",
    "assert table t (a int primary key) with (kafka_topic='x')": (
        "ASSERT TABLE T (A INTEGER PRIMARY KEY) WITH (KAFKA_TOPIC='x')"
    ),
    "run script 'a.sql'": "RUN SCRIPT 'a.sql'",
}


@pytest.mark.parametrize(("text", "canonical"), (CANONICAL | IN_TESTS).items())
def test_canonical_text(text: str, canonical: str) -> None:
    statement = parse_one(text, is_test=text in IN_TESTS)

    assert statement_text(statement) == canonical
    assert parse_one(canonical, is_test=text in IN_TESTS) == statement


def test_texts_of_statements_leave_out_what_is_around_them() -> None:
    parsed = parse("-- first\nSHOW TABLES; /* ; */\n  DESCRIBE\n s; ")

    assert [one.text for one in parsed] == ["SHOW TABLES;", "DESCRIBE\n s;"]


def test_places_count_from_the_beginning_of_the_text() -> None:
    parsed = parse("SHOW TABLES;\nSELECT a,\n  b FROM s;")

    query = parsed[1].statement
    assert isinstance(query, tree.Query)
    column = query.select[1]
    assert isinstance(column, tree.SingleColumn)
    assert column.expression.place == Place(3, 3)


def test_properties_count_without_case_and_keep_their_types() -> None:
    create = parse_one(
        "create stream s with (Partitions=1, 'Retention_Ms'=3000000000, x=1.5, y=1e0)"
    )

    assert isinstance(create, tree.CreateSource)
    assert create.properties.keys() == {"PARTITIONS", "RETENTION_MS", "X", "Y"}
    assert create.properties["RETENTION_MS"] == 3_000_000_000


def test_names_of_types_stand_inside_of_types() -> None:
    create = parse_one("create type t as array<address>")

    assert isinstance(create, tree.CreateType)
    assert isinstance(create.type, types.Array)
    assert repr(create.type.item) == "NamedType(name='ADDRESS')"


WRONG = {
    "select a from s": "Expecting ';'",
    "selct a from s;": "line 1:1: Syntax Error\nUnknown statement 'selct'\nDid you mean 'SELECT'?",
    "run script 'x';": "line 1:1: Syntax Error\nUnknown statement 'run'",
    "assert values s values (1);": "Syntax error at or near 'values' at line 1:8",
    "show tables;\nselect * from s group by a, (b, c);": (
        "line 2:31: Syntax Error\nmissing ')' at ','"
    ),
    "create stream s (k int (key));": (
        "line 1:25: Syntax Error\nExpecting {'STRING', INTEGER_VALUE}"
    ),
    "create stream s (k varchar(string) (key));": ("line 1:36: Syntax Error\nExpecting {',', ')'}"),
    "create stream s (table int);": '"table" is a reserved keyword and it can\'t be used',
    "create stream `a b` (x int);": (
        "Failed to prepare statement: Illegal argument at Line: 1, Col: 15. Source names may only "
        "contain alphanumeric values, '_' or '-'. Got: 'a b'"
    ),
    "select u.a from s;": "'U' is not a valid stream/table name or alias.",
    "select u.* from s;": "'U' is not a valid stream/table name or alias.",
    "select a from s group by a and b;": "Syntax Error",
    "select a from s limit 1.5;": "Value must be integer for command: LIMIT",
    "create table t as select * from s limit 1;": (
        "CREATE TABLE AS SELECT statements don't support LIMIT clause."
    ),
    "create stream s (a bytes header(' ')) ;": "non-empty header key name",
    "create stream s with (a=1, A=2);": "Duplicate property in the WITH clause: A",
    "assert schema;": "must include a subject name or an id",
    "select a, from s;": "Syntax error at or near 'from'",
    "select a from s where;": "Syntax error at or near ';' at line 1:22",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_is_no_statement(text: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse(text)

    assert message in str(raised.value)


def test_errors_carry_the_line_of_the_statement() -> None:
    with pytest.raises(ParseError) as raised:
        parse("SHOW TABLES;\nCREATE STREAM s (k INT (KEY));")

    assert raised.value.with_statement().endswith("Statement: CREATE STREAM s (k INT (KEY));")
