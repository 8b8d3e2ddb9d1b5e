"""Schemas as Spark's SQL writes them, without Spark."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.spark.rows import parse_schema
from barnabas.schemas.data.errors import ConfigError

TABLE = [
    ("id int", "struct<id:int>"),
    (" `a b``c`:BIGINT ,b  string", "struct<a b`c:bigint,b:string>"),
    (
        "p decimal(5,2), q dec( 7 ), r numeric",
        "struct<p:decimal(5,2),q:decimal(7,0),r:decimal(10,0)>",
    ),
    ("t array<string>, u array<array<int>>", "struct<t:array<string>,u:array<array<int>>>"),
    ("m map<string, decimal(3,1)>", "struct<m:map<string,decimal(3,1)>>"),
    ("s struct<a: int, b struct<c:date>>", "struct<s:struct<a:int,b:struct<c:date>>>"),
    ("e struct<>", "struct<e:struct<>>"),
    ("v varchar(10), c char(2)", "struct<v:string,c:string>"),
    ("n timestamp_ntz, z timestamp", "struct<n:timestamp_ntz,z:timestamp>"),
    ("map string, not int, comment int", "struct<map:string,not:int,comment:int>"),
]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_schemas_are_read_as_spark_does(text: str, expected: str) -> None:
    assert parse_schema(text).simpleString() == expected


def test_columns_may_be_required_and_described() -> None:
    found = parse_schema("a int NOT NULL COMMENT 'its, number', b array<int> comment \"x\", c int")
    assert [(one.name, one.nullable) for one in found.fields] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends where a column is due"),
        ("a", "ends where a type is due"),
        ("a int,", "ends where a column is due"),
        ("a int b int", "cannot be read at 'b'"),
        ("a any", "cannot be read at 'any'"),
        ("a decimal(2,3)", "cannot be read at 'decimal'"),
        ("a decimal(39)", "cannot be read at 'decimal'"),
        ("a decimal(x)", "cannot be read at 'x'"),
        ("a array<int", "ends where > is due"),
        ("a array int", "cannot be read at 'int'"),
        ("a map<int>", "cannot be read at '>'"),
        ("'a' int", "cannot be read at \"'a'\""),
        ("a int; b int", "cannot be read at '; b int'"),
        ("a int comment b", "cannot be read at 'comment'"),
    ],
)
def test_what_is_no_schema_is_told(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_schema(text)
    assert message in str(raised.value)
