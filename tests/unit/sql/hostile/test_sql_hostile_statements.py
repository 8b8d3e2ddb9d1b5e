"""Statements that are meant to break the engine: each fails as a SqlError, and soon."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.sql.errors import ParseError, Place, SqlError
from barnabas.sql.functions.built_in import functions
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.syntax.parser import parse, parse_expression, parse_one
from support.sql_statements import Statements

SOURCES = """
CREATE STREAM S (K STRING KEY, A INT, T STRING, ARR ARRAY<INT>, ST STRUCT<X INT>)
  WITH (kafka_topic='s', value_format='JSON', partitions=1);
CREATE STREAM OTHER (K STRING KEY, B INT)
  WITH (kafka_topic='other', value_format='JSON', partitions=1);
"""
WITH = "WITH (kafka_topic='x', value_format='JSON', partitions=1);"


def select(expression: str) -> str:
    return f"CREATE STREAM O AS SELECT K, {expression} AS R FROM S;"


def refused(text: str) -> SqlError:
    statements = Statements()
    statements.run(SOURCES)
    with pytest.raises(SqlError) as caught:
        statements.run(text)
    return caught.value


def nested(count: int, begin: str, inner: str, end: str = "") -> str:
    return begin * count + inner + end * count


NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: nested(n, "(", "A", ")"),
    "open parentheses": lambda n: "(" * n,
    "NOT": lambda n: nested(n, "NOT ", "TRUE"),
    "signs": lambda n: nested(n, "- ", "A"),
    "calls": lambda n: nested(n, "ABS(", "A", ")"),
    "cases": lambda n: nested(n, "CASE WHEN TRUE THEN ", "A", " END"),
    "casts": lambda n: nested(n, "CAST(", "A", " AS INT)"),
    "arrays": lambda n: nested(n, "ARRAY[", "A", "]"),
    "maps": lambda n: nested(n, "MAP('a' := ", "A", ")"),
    "structs": lambda n: nested(n, "STRUCT(F := ", "A", ")"),
    "lambdas": lambda n: nested(n, "TRANSFORM(ARR, X => ", "1", ")"),
    "sums": lambda n: "+".join(["A"] * n),
    "concatenations": lambda n: "||".join(["T"] * n),
    "subscripts": lambda n: "ARR" + "[1]" * n,
    "fields": lambda n: "ST" + "->X" * n,
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("count", [150, 400, 3_000])
def test_nesting_has_a_limit_with_a_place(name: str, count: int) -> None:
    error = refused(select(NESTED[name](count)))
    assert isinstance(error, ParseError)
    assert "Statement is too large" in error.message
    assert error.place is not None
    assert error.statement


@pytest.mark.parametrize("name", NESTED)
def test_nesting_below_the_limit_never_runs_out_of_stack(name: str) -> None:
    """Just below the limits every pass must end, too."""
    statements = Statements()
    statements.run(SOURCES)
    for count in (20, 40, 95):
        try:
            plan = statements.plan(
                select(NESTED[name](count)).replace("STREAM O", f"STREAM O{count}")
            )
        except SqlError:
            continue
        Driver([plan], PlanCompiler(functions())).pipe("s", TopicRecord(b"k", b'{"A": 1}', 0))


def test_long_chains_of_conditions_are_no_nesting() -> None:
    statements = Statements()
    statements.run(SOURCES)
    conditions = " OR ".join(f"A = {number} AND T <> 'x'" for number in range(1_000))
    plan = statements.plan(f"CREATE STREAM O AS SELECT * FROM S WHERE {conditions};")
    driver = Driver([plan], PlanCompiler(functions()))
    for value in (b'{"A": 999, "T": "y"}', b'{"A": 999, "T": "x"}', b'{"A": 1000, "T": "y"}'):
        driver.pipe("s", TopicRecord(b"k", value, 0))
    assert len(driver.topics["O"]) == 1


@pytest.mark.parametrize("count", [2, 16, 17, 18, 33, 50])
@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_chains_keep_their_order(operator: str, count: int) -> None:
    names = [f"C{number}" for number in range(count)]
    shown = str(parse_expression(f" {operator} ".join(names)))
    places = [shown.index(f"name='{name}'") for name in names]
    assert places == sorted(places)


def test_operands_compared_twice_are_looked_at_once() -> None:
    """Nested, each would double the work of the one within it."""
    expression = "A"
    for _ in range(15):
        expression = f"CASE {expression} WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE 0 END"
        expression = f"CASE WHEN {expression} BETWEEN 1 AND 2 THEN {1} ELSE 3 END"
    statements = Statements()
    statements.run(SOURCES)
    driver = Driver([statements.plan(select(expression))], PlanCompiler(functions()))
    driver.pipe("s", TopicRecord(b"k", b'{"A": 1}', 0))
    assert driver.topics["O"][0].value == b'{"R":1}'


def test_held_operands_stay_themselves_in_messages_and_lambdas() -> None:
    error = refused(select("CASE A + 1 WHEN 'x' THEN 2 END"))
    assert "(A + 1)" in error.message
    statements = Statements()
    statements.run(SOURCES)
    text = "TRANSFORM(ARR, X => CASE X + A WHEN 3 THEN A ELSE X + A END)"
    driver = Driver([statements.plan(select(text))], PlanCompiler(functions()))
    driver.pipe("s", TopicRecord(b"k", b'{"A": 1, "ARR": [1, 2, 3]}', 0))
    assert driver.topics["O"][0].value == b'{"R":[2,1,4]}'


class TestTypes:
    def test_doubling(self) -> None:
        text = "CREATE TYPE T0 AS INT;"
        for number in range(1, 40):
            before = f"T{number - 1}"
            text += f"CREATE TYPE T{number} AS STRUCT<A {before}, B {before}>;"
        assert "more than" in refused(text).message

    def test_doubling_by_queries(self) -> None:
        text = select("A")
        for number in range(1, 40):
            before = "O" if number == 1 else f"O{number - 1}"
            text += f"CREATE STREAM O{number} AS SELECT K, STRUCT(A:=R, B:=R) AS R FROM {before};"
        assert "more than" in refused(text).message

    def test_chain(self) -> None:
        text = "CREATE TYPE T0 AS INT;"
        text += "".join(f"CREATE TYPE T{n} AS ARRAY<T{n - 1}>;" for n in range(1, 300))
        assert "deeper than" in refused(text).message

    def test_nesting(self) -> None:
        error = refused(f"CREATE STREAM X (A {nested(300, 'ARRAY<', 'INT', '>')}) {WITH}")
        assert error.place is not None

    def test_itself(self) -> None:
        assert "unknown type: T" in refused("CREATE TYPE T AS STRUCT<A T>;").message

    @pytest.mark.parametrize("size", ["9" * 10_000, "99999999999", "-1"])
    def test_digits_of_decimals(self, size: str) -> None:
        refused(f"CREATE STREAM X (A DECIMAL({size}, 2)) {WITH}")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT '\ud800' FROM S EMIT CHANGES;", Place(1, 9)),
        ("SELECT A,\n  `x\udfff` FROM S;", Place(2, 5)),
        ("\udc80", Place(1, 1)),
    ],
)
def test_half_characters_have_a_place(text: str, place: Place) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.place == place
    str(caught.value).encode()


@pytest.mark.parametrize(
    "window",
    [
        "TUMBLING (SIZE 0 SECONDS)",
        "TUMBLING (SIZE -1 SECONDS)",
        "TUMBLING (SIZE 99999999999999999999 DAYS)",
        f"TUMBLING (SIZE {'9' * 10_000} DAYS)",
        "TUMBLING (SIZE 1 DAY, GRACE PERIOD -1 SECONDS)",
        "TUMBLING (SIZE 1 DAY, RETENTION 100000000000 DAYS)",
        "HOPPING (SIZE 1 DAYS, ADVANCE BY 0 SECONDS)",
        "HOPPING (SIZE 1 DAYS, ADVANCE BY -1 SECONDS)",
        "HOPPING (SIZE 1 DAYS, ADVANCE BY 2 DAYS)",
        "HOPPING (SIZE 1000 DAYS, ADVANCE BY 1 MILLISECONDS)",
        "SESSION (0 SECONDS)",
    ],
)
def test_windows_that_cannot_be(window: str) -> None:
    text = f"CREATE TABLE O AS SELECT K, COUNT(*) FROM S WINDOW {window} GROUP BY K;"
    assert refused(text).place is not None


@pytest.mark.parametrize(
    "within", ["-1 SECONDS", "(1 DAY, -2 DAY)", "1 DAY GRACE PERIOD -1 DAY", "9999999999999 DAYS"]
)
def test_joins_within_what_cannot_be(within: str) -> None:
    text = f"CREATE STREAM O AS SELECT * FROM S JOIN OTHER WITHIN {within} ON S.K = OTHER.K;"
    assert refused(text).place is not None


@pytest.mark.parametrize(
    "size", ["0 SECONDS", "-1 DAYS", "+-1 DAYS", "² DAYS", "9" * 5_000 + " DAYS"]
)
def test_window_sizes_of_topics(size: str) -> None:
    refused(
        "CREATE STREAM X (K STRING KEY, A INT) WITH (kafka_topic='x', value_format='JSON', "
        f"partitions=1, window_type='TUMBLING', window_size='{size}');"
    )


def test_a_short_chain_groups_to_the_left() -> None:
    parse_one("SELECT A FROM S WHERE A AND B AND C EMIT CHANGES;")
    left = parse_expression("(A AND B) AND C")
    assert parse_expression("A AND B AND C") == left
