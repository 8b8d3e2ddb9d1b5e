"""The test kit: statements and records in memory."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import AnalysisError
from barnabas.sql.testing import OutputRecord, SqlTest

CLICKS = """
    CREATE STREAM clicks (user STRING KEY, page STRING)
    WITH (kafka_topic='clicks', value_format='JSON');
"""
COUNTS = """
    CREATE TABLE clicks_per_minute AS
    SELECT user, COUNT(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY user;
"""


@pytest.mark.parametrize("value_format", ["JSON", "AVRO", "PROTOBUF", "DELIMITED", "JSON_SR"])
def test_records_come_out_as_rows(value_format: str) -> None:
    with SqlTest() as test:
        test.execute(CLICKS.replace("JSON", value_format) + COUNTS)
        test.pipe("clicks", key={"user": "u1"}, value={"page": "a"}, timestamp_ms=0)
        test.pipe("CLICKS", key="u1", value={"PAGE": "b"}, timestamp_ms=59_999)
        test.pipe("clicks", key="u1", value="c", timestamp_ms=60_000)
        assert test.read("CLICKS_PER_MINUTE") == [
            OutputRecord({"USER": "u1"}, {"N": 1}, 0, (0, 60_000)),
            OutputRecord({"USER": "u1"}, {"N": 2}, 59_999, (0, 60_000)),
            OutputRecord({"USER": "u1"}, {"N": 1}, 60_000, (60_000, 120_000)),
        ]
        assert test.read("clicks_per_minute") == []
        assert [row.value for row in test.table("clicks_per_minute")] == [{"N": 2}, {"N": 1}]


def test_time_goes_forward_with_records_and_by_hand() -> None:
    with SqlTest(now_ms=5) as test:
        test.execute(CLICKS + "INSERT INTO clicks (user, page) VALUES ('u1', 'a');")
        test.pipe("clicks", "u1", "b", 100)
        test.advance(20)
        test.pipe("clicks", "u1", "c")
        assert [record.timestamp_ms for record in test.read("clicks")] == [5, 100, 120]
        assert test.now_ms == 120


def test_queries_read_what_comes_after_them_until_they_end() -> None:
    with SqlTest() as test:
        test.execute(CLICKS)
        test.pipe("clicks", "u1", "a")
        test.execute("CREATE STREAM copy AS SELECT * FROM clicks;")
        test.pipe("clicks", "u1", "b")
        test.execute("TERMINATE CSAS_COPY_0;")
        test.pipe("clicks", "u1", "c")
        assert [record.value for record in test.read("copy")] == [{"PAGE": "b"}]
        with pytest.raises(AnalysisError, match="Unknown queryId"):
            test.execute("TERMINATE CSAS_COPY_0;")


def test_a_dropped_stream_is_not_written_any_more() -> None:
    with SqlTest() as test:
        test.execute(CLICKS + "CREATE STREAM copy WITH (kafka_topic='c') AS SELECT * FROM clicks;")
        test.pipe("clicks", "u1", "a")
        test.execute("DROP STREAM copy;")
        test.pipe("clicks", "u1", "b")
        assert [record.value for record in test.read("c")] == [{"PAGE": "a"}]


def test_a_replaced_query_goes_on_with_the_state_of_the_old_one() -> None:
    with SqlTest(properties={"ksql.create.or.replace.enabled": "true"}) as test:
        test.execute(CLICKS)
        counts = (
            "CREATE OR REPLACE TABLE n AS SELECT user, COUNT(*) AS n FROM clicks {} GROUP BY user;"
        )
        test.execute(counts.format(""))
        test.pipe("clicks", "u1", "a")
        test.execute(counts.format("WHERE page <> 'b'"))
        test.pipe("clicks", "u1", "b")
        test.pipe("clicks", "u1", "c")
        assert [record.value for record in test.read("n")] == [{"N": 1}, {"N": 2}]


def test_variables_and_properties_are_those_of_the_session() -> None:
    with SqlTest(variables={"topic": "clicks"}) as test:
        test.execute(CLICKS.replace("='clicks'", "='${topic}'"))
        test.execute(
            "DEFINE low = 'a'; CREATE STREAM few AS SELECT * FROM clicks WHERE page='${low}';"
        )
        test.pipe("clicks", "u1", "a")
        test.pipe("clicks", "u1", "b")
        assert [record.value for record in test.read("few")] == [{"PAGE": "a"}]


def test_what_cannot_be_read_is_noted() -> None:
    with SqlTest() as test:
        test.execute(CLICKS + "CREATE STREAM copy AS SELECT * FROM clicks;")
        test.pipe("clicks", "u1", b"{nonsense")
        assert test.read("copy") == []
        (note,) = test.log
        assert "clicks" in note


def test_deleted_rows_are_none() -> None:
    with SqlTest() as test:
        test.execute(
            "CREATE TABLE users (id INT PRIMARY KEY, name STRING) "
            "WITH (kafka_topic='users', value_format='JSON');"
            "CREATE TABLE copy AS SELECT * FROM users;"
        )
        test.pipe("users", 1, "Ann")
        test.pipe("users", 1)
        assert [record.value for record in test.read("copy")] == [{"NAME": "Ann"}, None]
        assert test.table("copy") == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("u1", {"page": "a", "colour": "red"}, "no column colour"),
        ("u1", {"page": ["a"], "more": 1}, "no column more"),
        ({"name": "u1"}, "a", "no column name"),
    ],
)
def test_what_does_not_fit_is_refused(key: object, value: object, words: str) -> None:
    with SqlTest() as test:
        test.execute(CLICKS)
        with pytest.raises(ValueError, match=words):
            test.pipe("clicks", key, value)


def test_names_must_exist() -> None:
    with SqlTest() as test, pytest.raises(ValueError, match="no stream, table or topic nowhere"):
        test.read("nowhere")


def test_a_query_needs_a_sink() -> None:
    with SqlTest() as test:
        test.execute(CLICKS)
        with pytest.raises(AnalysisError, match="CREATE … AS"):
            test.execute("SELECT * FROM clicks EMIT CHANGES;")
