"""The tutorial for writing a connector works, as do the other classes on its page."""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import types as spark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    SimpleDataSourceStreamReader,
)

from barnabas.connect.allowed_plugins import allow
from barnabas.connect.connectors.spark.rows import (
    connect_schema,
    row_of,
    spark_type,
    struct_of_row,
    struct_type,
)
from barnabas.connect.connectors.spark.sink import SparkSink
from barnabas.connect.connectors.spark.source import SparkSource
from barnabas.connect.errors.spark import spark_failure
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.errors import ConfigError, DataError

PAGE = Path(__file__).parents[4] / "docs/connect/own-connector.md"
HERE = __name__
JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "shop.py").write_text(source)
    (tmp_path / "tutorial_of_shop.py").write_text(test)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        importlib.import_module("tutorial_of_shop").test_new_orders_become_records(tmp_path)
    finally:
        for name in ("shop", "tutorial_of_shop"):
            sys.modules.pop(name, None)


class Counter(DataSource):
    def schema(self) -> str:
        return "n int"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return CountReader()


class CountReader(SimpleDataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        end = {"n": min(start["n"] + 2, 5)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[Any]:
        return iter([(number,) for number in range(start["n"], end["n"])])

    def commit(self, end: dict[str, int]) -> None:
        pass


class Fixed(DataSource):
    def schema(self) -> str:
        return "n int"

    def reader(self, schema: Any) -> DataSourceReader:
        return FixedReader()


class FixedReader(DataSourceReader):
    def read(self, partition: Any) -> Iterator[Any]:
        yield (7,)


class Kept(DataSource):
    rows: ClassVar[list[Any]] = []

    def schema(self) -> str:
        return "a int, b string"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        return KeptWriter()


class KeptWriter(DataSourceWriter):
    def write(self, iterator: Iterator[Any]) -> Any:
        return list(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        Kept.rows += [row for message in messages for row in message]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Counter", [b'{"n":%d}' % number for number in range(5)]), ("Fixed", [b'{"n":7}'])],
)
def test_other_readers(name: str, expected: list[bytes]) -> None:
    settings = {
        "connector.class": "barnabas.connect.SparkSource",
        "format": f"{HERE}:{name}",
        "topic": "t",
        **JSON,
    }
    with ConnectKit() as kit:
        kit.start("c", settings)
        kit.wait_for_records("t", len(expected))
        assert kit.values("t") == expected


def test_writer() -> None:
    Kept.rows.clear()
    settings = {
        "connector.class": "barnabas.connect.SparkSink",
        "format": f"{HERE}:Kept",
        "topics": "t",
        **JSON,
    }
    with ConnectKit() as kit:
        kit.produce("t", b'{"a": 1, "b": "x", "c": 2}')
        kit.produce("t", b'{"a": 2}')
        kit.start("c", settings)
        kit.wait_until(lambda: kit.committed("c") == {("t", 0): 2})
    assert Kept.rows == [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"format": "json:JSONEncoder"}, "not a subclass of pyspark"),
        ({"format": "no.such:Class"}, "Failed to find any class"),
    ],
)
def test_wrong_formats(settings: dict[str, str], text: str) -> None:
    given = {"connector.class": "barnabas.connect.SparkSource", "topic": "t", **settings}
    with ConnectKit() as kit, pytest.raises(ConfigError, match=text):
        kit.start("c", given)


def test_the_kit_tells_what_failed_by_name() -> None:
    given = {"connector.class": "barnabas.connect.SparkSource", "topic": "t", "format": "rate"}
    with ConnectKit() as kit:
        kit.start("c", given)
        assert "needs the engine on Spark" in str(kit.wait_for_failure("c"))


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"format": f"{__name__}:Kept", "stream": "true"}, "stream"),
        ({"format": f"{__name__}:Kept", "schema": "id int"}, "schema"),
        ({"format": "rate", "stream": "true"}, "checkpoint.location"),
        ({"format": "rate", "checkpoint.location": "/tmp/x"}, "checkpoint.location"),
    ],
)
def test_settings_that_do_not_go_together(more: dict[str, str], name: str) -> None:
    allow([__name__])
    assert list(SparkSource().validate({"topic": "t", **more})) == [name]
    assert SparkSource().validate({"topic": "t", "format": more["format"]}) == {}


def test_formats_of_spark_want_a_schema_to_write() -> None:
    allow([__name__])
    assert list(SparkSink().validate({"format": "parquet"})) == ["schema"]
    for given in ({"format": "parquet", "schema": "id int"}, {"format": f"{__name__}:Kept"}):
        assert SparkSink().validate(given) == {}


def test_rows_and_structs_go_both_ways() -> None:
    kind = spark.StructType(
        [
            spark.StructField("a", spark.ArrayType(spark.LongType())),
            spark.StructField("m", spark.MapType(spark.StringType(), spark.DoubleType())),
            spark.StructField("d", spark.DecimalType(38, 2)),
            spark.StructField("day", spark.DateType()),
            spark.StructField("at", spark.TimestampType()),
            spark.StructField("s", spark.StructType([spark.StructField("x", spark.ByteType())])),
        ]
    )
    schema = connect_schema(kind)
    row = ([1], {"k": 0.5}, Decimal("1.25"), date(2024, 1, 2), datetime(2024, 1, 2), (3,))  # noqa: DTZ001
    struct = struct_of_row(schema, row)
    assert spark_type(schema) == kind
    back = row_of(struct, kind.names)
    assert back[:4] == row[:4]
    assert back.at == datetime(2024, 1, 2, tzinfo=UTC)
    assert back.s.x == 3
    with pytest.raises(DataError):
        struct_of_row(schema, (1,))
    assert struct_type("a array<int>").simpleString() == "struct<a:array<int>>"


def test_times_without_a_zone_are_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        schema = connect_schema(spark.StructType([spark.StructField("t", spark.TimestampType())]))
        noon = datetime(2026, 1, 1, 12)  # noqa: DTZ001  # as Spark gives it
        here = struct_of_row(schema, (noon,)).values
        nowhere = struct_of_row(schema, (noon,), UTC).values
    finally:
        monkeypatch.undo()
        time.tzset()
    assert list(here) == [datetime(2026, 1, 1, 3, tzinfo=UTC)]
    assert list(nowhere) == [datetime(2026, 1, 1, 12, tzinfo=UTC)]


def test_errors_of_java_are_told_in_one_line() -> None:
    class JavaError(Exception):
        class java_exception:  # noqa: N801  # Py4J's
            @staticmethod
            def toString() -> str:  # noqa: N802  # Java's
                return "java.io.IOException: no room\n\tat here"

    error = JavaError("An error occurred while calling o1.save.\n: java.io.IOException")
    assert spark_failure("cannot write", error) == "cannot write: java.io.IOException: no room"
    assert spark_failure("cannot write", Exception("a\nb")) == "cannot write: a"
