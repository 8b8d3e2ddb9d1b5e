"""Statements that the analysis refuses, and the messages."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import SqlError
from support.sql_statements import Statements

SOURCES = """
CREATE STREAM s (id INT KEY, a INT, b STRING, l ARRAY<INT>, m MAP<STRING, INT>)
  WITH (kafka_topic='s', format='JSON');
CREATE STREAM r (id INT KEY, a INT, c DOUBLE) WITH (kafka_topic='r', format='JSON');
CREATE STREAM k (id INT KEY, a INT) WITH (kafka_topic='k', format='KAFKA');
CREATE TABLE t (id INT PRIMARY KEY, a INT, name STRING) WITH (kafka_topic='t', format='JSON');
CREATE TABLE u (id INT PRIMARY KEY, t_id INT) WITH (kafka_topic='u', format='JSON');
CREATE TABLE v (id STRING PRIMARY KEY, x INT) WITH (kafka_topic='v', format='JSON');
CREATE STREAM w (id INT KEY, a INT) WITH (kafka_topic='w', format='JSON', window_type='SESSION');
CREATE STREAM h (id INT KEY, a INT)
  WITH (kafka_topic='h', format='JSON', window_type='HOPPING', window_size='5 SECONDS');
CREATE SOURCE STREAM ro (id INT KEY, a INT) WITH (kafka_topic='ro', format='JSON');
CREATE STREAM hd (id INT KEY, a INT, hs BYTES HEADER('x')) WITH (kafka_topic='hd', format='JSON');
CREATE TYPE address AS STRUCT<street STRING>;
"""

REFUSED = {
    # names
    "CREATE STREAM o AS SELECT * FROM nowhere;": "NOWHERE does not exist.",
    'CREATE STREAM o AS SELECT * FROM "s";': (
        "s does not exist.\nDid you mean S? Hint: try removing double quotes from the source name."
    ),
    "CREATE STREAM o AS SELECT id, x FROM s;": (
        "Line: 1, Col: 31: SELECT column 'X' cannot be resolved."
    ),
    "CREATE STREAM o AS SELECT * FROM s WHERE x = 1;": "WHERE column 'X' cannot be resolved.",
    "CREATE STREAM o AS SELECT * FROM s PARTITION BY x;": (
        "PARTITION BY column 'X' cannot be resolved. 'X' must be a column in the source schema"
    ),
    "CREATE STREAM o AS SELECT a FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id;": (
        "Line: 1, Col: 27: Column 'A' is ambiguous. Could be R.A or S.A."
    ),
    "CREATE STREAM o AS SELECT rowkey_1, s.id FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id;": (
        "Column 'ROWKEY_1' cannot be resolved."
    ),
    "CREATE STREAM o AS SELECT id, a AS rowtime FROM s;": (
        "`ROWTIME` is a reserved column name. You cannot use it as an alias for a column."
    ),
    "CREATE STREAM o AS SELECT id, rowoffset FROM s;": (
        "Reserved column name in select: `ROWOFFSET`. Please remove or alias the column."
    ),
    "CREATE STREAM o AS SELECT id, FILTER(l, a => a > 1) FROM s;": (
        "Lambda function argument can't be a column name: A"
    ),
    "CREATE STREAM o AS SELECT id, a, a FROM s;": (
        "Duplicate value columns found in schema: `A` INTEGER"
    ),
    "CREATE STREAM o AS SELECT id AS b, b FROM s;": "Value columns clash with key columns: `B`",
    "CREATE TABLE o AS SELECT b AS a, SUM(a) AS b, a FROM s GROUP BY b, a;": (
        "Duplicate value columns found in schema: `A` INTEGER"
    ),
    "CREATE TABLE o AS SELECT id, SUM(a), COUNT(*) AS id FROM s GROUP BY id;": (
        "Value columns clash with key columns: `ID`"
    ),
    # keys in the projection
    "CREATE STREAM o AS SELECT a FROM s;": (
        "Key missing from projection (ie, SELECT). \nThe query used to build `O` must include the "
        "key column ID in its projection (eg, SELECT ID...)."
    ),
    "CREATE STREAM o AS SELECT id FROM s;": "The projection contains no value columns.",
    "CREATE STREAM o AS SELECT id, id AS x, a FROM s;": (
        "The projection contains a key column (`ID`) more than once, aliased as: ID and X."
    ),
    "CREATE STREAM o AS SELECT b FROM s PARTITION BY ABS(a);": (
        "must include the partitioning expression ABS(S.A) in its projection"
    ),
    "CREATE STREAM o AS SELECT b FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id;": (
        "must include the join expressions S.ID or R.ID in its projection (eg, SELECT S.ID...)."
    ),
    "CREATE STREAM o AS SELECT b FROM s FULL JOIN r WITHIN 1 HOUR ON s.id = r.id;": (
        "ROWKEY was added as a synthetic key column because the join criteria did not match any"
    ),
    "CREATE TABLE o AS SELECT t_id, name FROM u JOIN t ON u.t_id = t.id;": (
        "Primary key column missing in projection. For foreign-key table-table joins, the "
        "projection must include all primary key columns from the left input table (`U`). Missing "
        "column: `ID`."
    ),
    # joins
    "CREATE STREAM o AS SELECT * FROM s JOIN s WITHIN 1 HOUR ON s.id = s.id;": (
        "Can not join 'S' to 'S': self joins are not yet supported."
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN 1 HOUR ON s.id > r.id;": (
        "Only equality join criteria is supported."
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id AND s.a = r.a;": (
        "Invalid join condition: joins on multiple conditions are not yet supported. Got ((S.ID = "
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN 1 HOUR ON s.id = s.a;": (
        "Each side of the join must reference exactly one source and not the same source. Left side"
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN 1 HOUR ON s.id + r.a = 1;": (
        "Each side of the join comparision must contain references from exactly one source."
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN r ON s.id = r.id;": (
        "Stream-Stream joins must have a WITHIN clause specified."
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN t WITHIN 1 HOUR ON s.id = t.id;": (
        "A window definition was provided for a Stream-Table join."
    ),
    "CREATE STREAM o AS SELECT * FROM t JOIN s ON s.id = t.id;": (
        "Invalid join order: table-stream joins are not supported; only stream-table joins. Got T "
        "[INNER] JOIN S."
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN t ON s.id = t.a;": (
        "stream-table joins require to join on the table's primary key. Got S.ID = T.A."
    ),
    "CREATE STREAM o AS SELECT * FROM s FULL JOIN t ON s.id = t.id;": (
        "full-outer join not supported for stream-table join. Got S [FULL] OUTER JOIN T."
    ),
    "CREATE TABLE o AS SELECT * FROM t JOIN u ON t.id = u.t_id;": (
        "table-table joins require to join on the primary key of the right input table."
    ),
    "CREATE TABLE o AS SELECT * FROM t JOIN v ON t.id = v.id;": (
        "Invalid join condition: types don't match. Got T.ID{INTEGER} = V.ID{STRING}."
    ),
    "CREATE TABLE o AS SELECT * FROM u FULL JOIN t ON u.t_id = t.id;": (
        "full-outer join not supported for foreign-key table-table join."
    ),
    "CREATE TABLE o AS SELECT * FROM u RIGHT JOIN t ON u.t_id = t.id;": (
        "RIGHT OUTER JOIN on a foreign key is not supported"
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN w WITHIN 1 HOUR ON s.id = w.id;": (
        "Can not join windowed source to non-windowed source.\n`S` is not windowed\n`W` is SESSION "
        "windowed"
    ),
    "CREATE STREAM o AS SELECT * FROM h JOIN w WITHIN 1 HOUR ON h.id = w.id;": (
        "Incompatible windowed sources.\nLeft source: HOPPING\nRight source: SESSION"
    ),
    "CREATE STREAM o AS SELECT * FROM s JOIN k WITHIN 1 HOUR ON s.id = k.id;": (
        "Source(s) K are using the 'KAFKA' value format. This format does not yet support JOIN."
    ),
    "CREATE STREAM o AS SELECT s.id, b FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id "
    "JOIN t ON r.id = s.id;": "A join criteria is expected to reference the source (`T`)",
    # groups
    "CREATE TABLE o AS SELECT b FROM s GROUP BY b;": (
        "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
    ),
    "CREATE TABLE o AS SELECT b, COLLECT_LIST(NULL) FROM s GROUP BY b;": (
        "Can't infer a type of null."
    ),
    "CREATE TABLE o AS SELECT a, COUNT(*) FROM s GROUP BY b;": (
        "Non-aggregate SELECT expression(s) not part of GROUP BY: A\nEither add"
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s GROUP BY b HAVING a = 1;": (
        "Non-aggregate HAVING expression not part of GROUP BY: A"
    ),
    "CREATE TABLE o AS SELECT b, SUM(COUNT(a)) FROM s GROUP BY b;": (
        "Aggregate functions can not be nested: SUM(COUNT())"
    ),
    "CREATE TABLE o AS SELECT SUM(a), COUNT(*) FROM s GROUP BY SUM(a);": (
        "GROUP BY does not support aggregate functions: SUM is an aggregate function."
    ),
    "CREATE TABLE o AS SELECT COUNT(*) FROM s GROUP BY b;": (
        "must include the grouping expression B in its projection (eg, SELECT B...)."
    ),
    "CREATE TABLE o AS SELECT b, b AS c, COUNT(*) FROM s GROUP BY b;": (
        "The projection contains a key column more than once: `B` and `C`."
    ),
    "CREATE TABLE o AS SELECT COUNT(*) FROM s;": (
        "CREATE TABLE AS SELECT statement does not support aggregate function [COUNT(ROWTIME)] "
        "without a GROUP BY clause."
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s GROUP BY b, b;": (
        "Duplicate GROUP BY expression: S.B"
    ),
    "CREATE TABLE o AS SELECT b, SUM(windowstart) FROM s WINDOW SESSION (1 HOUR) GROUP BY b;": (
        "Window bounds column WINDOWSTART can only be used in the SELECT clause"
    ),
    "CREATE TABLE o AS SELECT b, WONT_FIND_ME(b), COUNT(*) FROM s GROUP BY b;": (
        "Can't find any functions with the name 'WONT_FIND_ME'"
    ),
    "CREATE TABLE o AS SELECT a, TOPK(id, 2) FROM t GROUP BY a;": (
        "The aggregation function TOPK cannot be applied to a table source, only to a stream"
    ),
    "CREATE TABLE o AS SELECT a, COUNT(*) FROM t WINDOW SESSION (1 HOUR) GROUP BY a;": (
        "Windowing not supported for table aggregations."
    ),
    "CREATE STREAM o AS SELECT id, a FROM s WINDOW SESSION (1 HOUR);": (
        "WINDOW clause requires a GROUP BY clause."
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s GROUP BY b EMIT FINAL;": (
        "EMIT FINAL is only supported for windowed aggregations."
    ),
    "CREATE TABLE o AS SELECT m, COUNT(*) FROM s GROUP BY m;": (
        "Map keys, including types that contain maps, are not supported"
    ),
    # windows
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s WINDOW TUMBLING (SIZE 0 DAYS) GROUP BY b;": (
        "Window size must be larger than zero."
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s WINDOW SESSION (-1 DAYS) GROUP BY b;": (
        "Gap time of a session must be larger than zero."
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s WINDOW HOPPING (SIZE 1 DAY, ADVANCE BY 0 DAYS) "
    "GROUP BY b;": "which is 86400000 ms, but given advancement interval is: 0 ms",
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 DAY, GRACE PERIOD -1 DAY) "
    "GROUP BY b;": "Grace period must not be negative.",
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 DAY, RETENTION 0 DAYS) "
    "GROUP BY b;": "Retention must be larger than zero.",
    "CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN -1 HOUR ON s.id = r.id;": (
        "Window interval of a join must not be negative."
    ),
    # new keys
    "CREATE STREAM o AS SELECT * FROM s PARTITION BY NULL, a;": (
        "Cannot PARTITION BY multiple columns including NULL"
    ),
    "CREATE STREAM o WITH (key_format='JSON') AS SELECT * FROM s PARTITION BY NULL;": (
        "Key format specified for stream without key columns."
    ),
    "CREATE STREAM o AS SELECT * FROM w PARTITION BY a;": (
        "Implicit repartitioning of windowed sources is not supported."
    ),
    "CREATE TABLE o AS SELECT * FROM t PARTITION BY a;": "Cannot repartition a TABLE source.",
    # functions
    "CREATE STREAM o AS SELECT id, EXPLODE(EXPLODE(l)) FROM s;": (
        "Table functions cannot be nested: EXPLODE(EXPLODE())"
    ),
    "CREATE STREAM o AS SELECT id, CASE WHEN a = 1 THEN EXPLODE(l) END FROM s;": (
        "Table functions cannot be used in CASE"
    ),
    "CREATE TABLE o AS SELECT b, EXPLODE(l), COUNT(*) FROM s GROUP BY b;": (
        "Table functions cannot be used with aggregations."
    ),
    "CREATE TABLE o AS SELECT id, EXPLODE(ARRAY[a]) FROM t;": (
        "Table source is not supported with table functions"
    ),
    # types
    f"CREATE STREAM o AS SELECT * FROM s WHERE {' + '.join(['a'] * 900)} = 1;": (
        "Statement is too large to parse."
    ),
    "CREATE STREAM o AS SELECT * FROM s WHERE a;": (
        "Type error in WHERE expression: Should evaluate to boolean but is A (INTEGER) instead."
    ),
    "CREATE STREAM o AS SELECT * FROM s WHERE a > 'x';": (
        "Error in WHERE expression: Cannot compare A (INTEGER) to 'x' (STRING) with GREATER_THAN."
    ),
    "CREATE TABLE o AS SELECT b, COUNT(*) FROM s GROUP BY b HAVING SUM(a) > 'x';": (
        "Error in HAVING expression: Cannot compare SUM(A) (INTEGER) to 'x' (STRING)"
    ),
    "CREATE STREAM o AS SELECT * FROM s WHERE rowtime > 'soon';": (
        "Failed to parse timestamp 'soon'"
    ),
    "CREATE STREAM o AS SELECT id, NULL AS x FROM s;": "Can't infer a type of null.",
    "CREATE STREAM o AS SELECT id, b->* FROM s;": "Column `B` is not a STRUCT type.",
    "CREATE STREAM x (a NO_TYPE) WITH (kafka_topic='x', format='JSON');": (
        "Failed to prepare statement: Cannot resolve unknown type: NO_TYPE"
    ),
    # sinks
    "CREATE STREAM s AS SELECT * FROM r;": (
        "Cannot add stream 'S': A stream with the same name already exists"
    ),
    "CREATE TABLE o AS SELECT * FROM s;": (
        "Invalid result type. Your SELECT query produces a STREAM. Please use CREATE STREAM AS"
    ),
    "CREATE STREAM o WITH (value_format='FOO') AS SELECT * FROM s;": "Unknown format: FOO",
    "CREATE STREAM o WITH (timestamp='nope') AS SELECT * FROM s;": (
        "The TIMESTAMP column set in the WITH clause does not exist in the schema: 'NOPE'"
    ),
    "CREATE STREAM o WITH (timestamp='b') AS SELECT * FROM s;": (
        "A String timestamp field has been specified without also specifying the timestamp_format"
    ),
    "CREATE STREAM o WITH (wrap_single_value=true) AS SELECT * FROM r;": (
        "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
    ),
    "CREATE TABLE o WITH (retention_ms=5) AS SELECT b, COUNT(*) FROM s GROUP BY b;": (
        "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not"
    ),
    "INSERT INTO nowhere SELECT * FROM s;": "Line: 1, Col: 13: Source `NOWHERE` does not exist.",
    "INSERT INTO t SELECT * FROM s;": (
        "INSERT INTO can only be used to insert into a stream. T is a table."
    ),
    "INSERT INTO hd SELECT * FROM s;": "Cannot insert into HD because it has header columns",
    "INSERT INTO ro SELECT * FROM r;": "Cannot insert into read-only stream: RO",
    "INSERT INTO r SELECT id, a FROM s;": (
        "Incompatible schema between results and sink.\nResult schema is `ID` INTEGER KEY, `A` "
        "INTEGER\nSink schema is `ID` INTEGER KEY, `A` INTEGER, `C` DOUBLE"
    ),
    "INSERT INTO r SELECT * FROM t;": "Incompatible data sink and query result.",
    "INSERT INTO r WITH (query_id='csas_x') SELECT * FROM r2;": "R2 does not exist.",
    # pull queries
    "SELECT * FROM s GROUP BY a;": "Pull queries don't support GROUP BY clauses.",
    "SELECT rowpartition FROM t;": (
        "Pull queries don't support the following columns in SELECT clauses: `ROWPARTITION`"
    ),
    # the rest
    "SHOW STREAMS;": "Statement not executable",
    "DROP STREAM nowhere;": "Stream NOWHERE does not exist.",
    "DROP TABLE s;": "Incompatible data source type is stream, but statement was DROP table",
    "DROP STREAM ro DELETE TOPIC;": "Cannot delete topic for read-only source: RO",
    "CREATE TYPE address AS INT;": "Cannot register custom type 'ADDRESS' since it is already",
    "DROP TYPE nothing;": "Type NOTHING does not exist.",
    "ALTER STREAM ro ADD COLUMN x INT;": "ALTER operations are not supported on source streams.",
    "ALTER TABLE s ADD COLUMN x INT;": (
        "Incompatible data source type is STREAM, but statement was ALTER TABLE"
    ),
    "ALTER STREAM s ADD COLUMN a INT;": "A column with the same name already exists.",
    "ALTER STREAM nowhere ADD COLUMN a INT;": "Source NOWHERE does not exist.",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=[text[:90] for text in REFUSED])
def test_refused(text: str, message: str) -> None:
    statements = Statements()
    statements.run(SOURCES)
    before = statements.metastore.copy()

    with pytest.raises(SqlError) as raised:
        statements.run(text)

    assert message in str(raised.value)
    assert statements.metastore == before


def test_failed_queries_are_shown_with_their_names_resolved() -> None:
    statements = Statements()
    statements.run(SOURCES)

    with pytest.raises(SqlError) as raised:
        statements.run("CREATE TABLE o AS SELECT a, a + 1, COUNT(*) FROM s GROUP BY b;")

    assert raised.value.with_statement().endswith(
        "Statement: CREATE TABLE O AS SELECT\n  S.A A,\n  (S.A + 1) KSQL_COL_0,\n"
        "  COUNT(*) KSQL_COL_1\nFROM S S\nGROUP BY S.B\nEMIT CHANGES"
    )


def test_joined_topics_must_have_as_many_partitions() -> None:
    statements = Statements(topics={"s": 1, "r": 2, "t": 1, "u": 1})
    statements.run(
        "CREATE STREAM s (id INT KEY, a INT) WITH (kafka_topic='s', format='JSON');"
        "CREATE STREAM r (id INT KEY, a INT) WITH (kafka_topic='r', format='JSON');"
    )

    with pytest.raises(SqlError) as raised:
        statements.run("CREATE STREAM o AS SELECT * FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id;")

    assert "`S` partitions = 1; `R` partitions = 2. Please repartition" in str(raised.value)


def test_a_topic_that_does_not_exist_needs_a_number_of_partitions() -> None:
    statements = Statements(topics={"other": 1})
    create = "CREATE STREAM s (a INT) WITH (kafka_topic='s', format='JSON'{});"

    with pytest.raises(SqlError, match="Topic 's' does not exist"):
        statements.run(create.format(""))

    statements.run(create.format(", partitions=3"))
