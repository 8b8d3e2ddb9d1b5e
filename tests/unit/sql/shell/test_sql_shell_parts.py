"""The shell's parts that need no server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.shell.client import DocumentReader
from barnabas.sql.shell.completion import completions, word_before
from barnabas.sql.shell.console import column_names, underlined
from barnabas.sql.shell.entities import entity_lines
from barnabas.sql.shell.splitting import Kind, split
from barnabas.sql.shell.tables import Grid, table
from support.effort import examples


@pytest.mark.parametrize(
    ("text", "pieces", "rest"),
    [
        ("", [], ""),
        ("SHOW STREAMS;", ["SHOW STREAMS;"], ""),
        ("SHOW STREAMS; SHOW\n", ["SHOW STREAMS;"], "SHOW"),
        (" -- first\nSELECT 1; -- last\n", ["SELECT 1;"], ""),
        (";;SHOW TABLES;;", ["SHOW TABLES;"], ""),
        ("PRINT 'a;b';", ["PRINT 'a;b';"], ""),
        ("INSERT INTO s VALUES ('a;\n", [], "INSERT INTO s VALUES ('a;\n"),
        ("SELECT 'it''s;' FROM `a;b`;", ["SELECT 'it''s;' FROM `a;b`;"], ""),
        ("SHOW /* no; */ TABLES;", ["SHOW /* no; */ TABLES;"], ""),
        ("SHOW /* no;\n", [], "SHOW /* no;\n"),
        ("/* a */ -- b\n", [], ""),
        ("SELECT 8 / 2;", ["SELECT 8 / 2;"], ""),
    ],
)
def test_statements_end_with_a_semicolon_of_their_own(
    text: str, pieces: list[str], rest: str
) -> None:
    found, left = split(text)
    assert ([piece.text for piece in found], left) == (pieces, rest)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select * from s;", Kind.QUERY),
        ("PRINT topic;", Kind.PRINT),
        ("SET 'a'='b';", Kind.SET),
        ("UNSET 'a';", Kind.UNSET),
        ("DEFINE a='b';", Kind.DEFINE),
        ("UNDEFINE a;", Kind.UNDEFINE),
        ("run script 'x.sql';", Kind.RUN_SCRIPT),
        ("SHOW STREAMS;", Kind.STATEMENT),
        ("/* SELECT */ EXPLAIN SELECT * FROM s;", Kind.STATEMENT),
    ],
)
def test_the_first_words_tell_the_kind(text: str, kind: Kind) -> None:
    (piece,), _ = split(text)
    assert piece.kind is kind


@pytest.mark.parametrize(
    ("message", "statement", "shown"),
    [
        ("line 1:8: Syntax Error", "SELECT 1x FROM s;", "  SELECT 1x FROM s;\n         ^^"),
        ("Line: 2, Col: 2: no column", "SELECT\n\tabc;", "  \tabc;\n  \t^^^"),
        ("at the end, line 1:5", "SHOW", "  SHOW\n      ^"),
        ("line 9:1: beyond", "SHOW;", ""),
        ("line 1:70: beyond", "SHOW;", ""),
        ("no place", "SHOW;", ""),
    ],
)
def test_the_place_of_an_error_is_underlined(message: str, statement: str, shown: str) -> None:
    assert underlined(message, statement) == shown


def test_a_table_is_as_wide_as_its_cells() -> None:
    assert table(["Name", "N"], [["a", "10"], ["long name\nin two", ""]]) == [
        " Name      | N",
        "----------------",
        " a         | 10",
        " long name |",
        " in two    |",
        "----------------",
    ]


def test_a_grid_wraps_or_cuts() -> None:
    grid = Grid(["A", "B"], 15)
    assert grid.head() == ["+------+------+", "|A     |B     |", "+------+------+"]
    assert grid.row(["short", "too long"]) == ["|short |too lo|", "|      |ng    |"]
    assert Grid(["A"], 9, wraps=False).row(["much too long"]) == ["|much...|"]
    assert Grid(["A"], 9, column_width=3).row(["abcd"]) == ["|abc|", "|d  |"]
    assert Grid(["A", "B", "C"], 4).row(["1", "2", "3"]) == ["|1    |2    |3    |"]


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("", []),
        ("`ID` INTEGER KEY, `a b` STRUCT<`X` INTEGER, `Y` DECIMAL(4, 2)>", ["ID", "a b"]),
        ("`A``B` MAP<STRING, ARRAY<BIGINT>>, C STRING", ["A`B", "C"]),
    ],
)
def test_names_of_columns_come_from_the_header(schema: str, names: list[str]) -> None:
    assert column_names(schema) == names


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(st.dictionaries(st.text(), JSON), max_size=4), st.sampled_from(["", ",\n", "\n"]),
       st.data())  # fmt: skip
@settings(max_examples=examples(18))
def test_documents_come_whole_however_they_are_cut(
    documents: list[dict[str, object]], between: str, data: st.DataObject
) -> None:
    text = "[" + between.join(json.dumps(one) for one in documents) + "]\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=5)))
    reader, found = DocumentReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += reader.feed(text[start:end])
    assert (found, reader.rest) == (documents, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW STR", ["STREAMLINE", "STREAM", "STREAMS", "STRING", "STRUCT"]),
        ("show tab", ["table", "tables"]),
        ("select * from streaml", ["streamline"]),
        ("PRINT Ot", []),
        ("PRINT ot", ["other"]),
        ("se", ["server", "select", "session", "set"]),
        ("SELECT 'STR", []),
        ("SELECT ", []),
        ("SELECT a.STREA", ["STREAMLINE", "STREAM", "STREAMS"]),
    ],
)
def test_words_are_completed(text: str, expected: list[str]) -> None:
    assert completions(text, ["STREAMLINE", "other"], ["server", "help"]) == expected


def test_a_word_is_what_stands_right_before_the_cursor() -> None:
    assert [word_before(text) for text in ("SHOW STR", "SHOW ", "f(x", "12", "")] == [
        "STR",
        "",
        "x",
        "",
        "",
    ]


FIELDS = [
    {"name": "ID", "schema": {"type": "INTEGER"}, "type": "KEY"},
    {
        "name": "PAIR",
        "schema": {
            "type": "STRUCT",
            "fields": [
                {"name": "A", "schema": {"type": "ARRAY", "memberSchema": {"type": "STRING"}}},
                {"name": "D", "schema": {"type": "DECIMAL",
                                         "parameters": {"precision": 4, "scale": 2}}},
            ],
        },
    },
    {"name": "H", "schema": {"type": "BYTES"}, "type": "HEADER", "headerKey": "h"},
    {"name": "M", "schema": {"type": "MAP", "memberSchema": {"type": "BIGINT"}}},
]  # fmt: skip
SOURCE = {"name": "S", "type": "TABLE", "fields": FIELDS, "extended": False}
EXTENDED = {
    **SOURCE,
    "extended": True,
    "windowType": "TUMBLING",
    "keyFormat": "KAFKA",
    "valueFormat": "JSON",
    "topic": "s",
    "partitions": 2,
    "replication": 1,
    "statement": "CREATE …",
    "timestamp": "",
    "readQueries": [{"id": "CTAS_1", "state": "RUNNING", "queryString": "CREATE\nTABLE"}],
    "statistics": "messages-per-sec: 1",
    "queryOffsetSummaries": [
        {"groupId": "g", "topicSummaries": [{"kafkaTopic": "t", "offsets": [
            {"partition": 0, "logStartOffset": 0, "logEndOffset": 9, "consumerOffset": 4}]}]}
    ],
}  # fmt: skip
QUERY = {
    "id": "CSAS_1",
    "queryType": "PERSISTENT",
    "statementText": "CREATE …",
    "fields": [],
    "sources": ["S"],
    "sinks": ["T"],
    "executionPlan": "> [ SINK ]",
    "topology": "Topologies:\n  Sub",
    "overriddenProperties": {"auto.offset.reset": "earliest"},
    "ksqlHostQueryStatus": {"h:1": "RUNNING"},
    "queryErrors": [{"type": "USER", "errorMessage": "no"}],
}


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        ({"@type": "currentStatus", "commandStatus": {"status": "SUCCESS", "message": "Done"}},
         [" Message", "---------", " Done"]),
        ({"@type": "streams", "streams": [{"name": "S", "topic": "s", "keyFormat": "KAFKA",
                                           "valueFormat": "JSON", "isWindowed": False}]},
         [" Stream Name | Kafka Topic | Key Format | Value Format | Windowed",
          " S           | s           | KAFKA      | JSON         | false"]),
        ({"@type": "tables", "tables": []}, [" Table Name | Kafka Topic |"]),
        ({"@type": "kafka_topics", "topics": [{"name": "t", "replicaInfo": [1, 1, 1]}]},
         [" t           | 3          | 1"]),
        ({"@type": "kafka_topics_extended", "topics": [
            {"name": "t", "replicaInfo": [1, 2], "consumerCount": 5, "consumerGroupCount": 6}]},
         ["| Consumers | ConsumerGroups", " t           | 2          | 1, 2               | 5"]),
        ({"@type": "queries", "queries": [
            {"id": "Q", "queryType": "PUSH", "statusCount": {"RUNNING": 2}, "sinks": [],
             "sinkKafkaTopics": [], "queryString": "SELECT\n1"}]},
         [" Q        | PUSH       | RUNNING:2 |", "SELECT 1", "EXPLAIN <Query ID>"]),
        ({"@type": "function_names", "functions": [{"name": "ABS", "category": "MATH"}]},
         [" ABS           | MATH"]),
        ({"@type": "properties", "properties": [
            {"name": "a", "scope": "KSQL", "level": "QUERY", "value": None},
            {"name": "b", "value": "1"}, {"name": "c", "value": "2"}],
          "overwrittenProperties": ["b"], "defaultProperties": ["a"]},
         [" a        | KSQL  | QUERY |                  |", "| SESSION          | 1",
          "| SERVER           | 2"]),
        ({"@type": "type_list", "types": {"T": {"type": "STRING"}}},
         [" T         | VARCHAR(STRING)"]),
        ({"@type": "variables", "variables": [{"name": "v", "value": "x"}]},
         [" v             | x"]),
        ({"@type": "sourceDescription", "sourceDescription": SOURCE},
         ["Name                 : S", " ID    | INTEGER          (primary key)",
          " PAIR  | STRUCT<A ARRAY<VARCHAR(STRING)>, D DECIMAL(4, 2)>",
          " H     | BYTES            (header('h'))", " M     | MAP<STRING, BIGINT>"]),
        ({"@type": "source_descriptions", "sourceDescriptions": [EXTENDED]},
         ["(primary key) (Window type: TUMBLING)", "s (partitions: 2, replication: 1)",
          "Not set - using <ROWTIME>", "CTAS_1 (RUNNING) : CREATE TABLE",
          "messages-per-sec", "| 9          | 4      | 5"]),
        ({"@type": "queryDescription", "queryDescription": QUERY},
         ["ID                   : CSAS_1", "{h:1=RUNNING}", "Execution plan", "> [ SINK ]",
          "  Sub", " auto.offset.reset | earliest", " USER | no"]),
        ({"@type": "query_descriptions", "queryDescriptions": [QUERY, QUERY]}, ["CSAS_1"]),
        ({"@type": "describe_function", "name": "ABS", "type": "SCALAR", "description": "Absolute",
          "author": "us", "functions": [{"returnType": "INT", "description": "of ints", "arguments":
              [{"name": "v", "type": "INT", "description": "a number", "isVariadic": True}]}]},
         ["Overview     : Absolute", "Variation   : ABS(v INT[])", "Returns     : INT",
          "v           : a number"]),
        ({"@type": "terminate_query", "queryId": "q", "wasTerminated": True},
         [" Query q terminated."]),
        ({"@type": "assert_topic", "topicName": "t", "exists": False}, ["Topic t does not exist."]),
        ({"@type": "assert_schema", "subject": "s", "id": 3, "exists": True},
         ["Schema with subject name s id 3 exists."]),
        ({"@type": "connector_list", "connectors": [{"name": "c", "type": "SINK", "className": "C",
                                                     "state": "RUNNING"}]},
         [" c              | SINK"]),
        ({"@type": "warning_entity", "message": "There", "warnings": [{"message": "beware"}]},
         ["WARNING: beware", " There"]),
        ({"@type": "something_new", "answer": 42}, ['  "answer": 42']),
    ],
)  # fmt: skip
def test_each_kind_of_answer_is_shown(entity: dict[str, object], expected: list[str]) -> None:
    lines = entity_lines(entity)
    for words in expected:
        assert any(words in line for line in lines), "\n".join(lines)


def test_a_query_s_status_and_errors_stand_above_its_text_and_plan() -> None:
    described = {**QUERY, "message": "no"}
    lines = entity_lines({"@type": "queryDescription", "queryDescription": described})
    begins = ("Host Query Status", "Status ", "Errors", " USER | no", "SQL ", "Execution plan")
    places = [next(n for n, line in enumerate(lines) if line.startswith(b)) for b in begins]
    assert places == sorted(places)
