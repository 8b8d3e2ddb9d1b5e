"""Functions of users in the test kit, in a server's settings and in Spark's workers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli.sql.test import test_command as sql_test
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.engine.config import PropertyError, checked
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.server.config import ServerConfig
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import Raw
from barnabas.sql.testing import SqlTest
from barnabas.sql.udf import load_extensions
from support.sql_udf import Run, planned, value_of

TEXT = """
from barnabas.sql.udf import udf

@udf
def tripled(value: int) -> int: return value * 3
"""
STATEMENTS = """
CREATE STREAM s (k STRING KEY, a BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM o AS SELECT k, TRIPLED(a) AS v FROM s;
"""


@pytest.fixture
def directory(tmp_path: Path) -> str:
    tmp_path.chmod(0o755)
    file = tmp_path / "tripled.py"
    file.write_text(TEXT)
    file.chmod(0o644)
    return str(tmp_path)


def test_kit(directory: str) -> None:
    with SqlTest(properties={"ksql.extension.dir": directory}) as test:
        test.execute(STATEMENTS)
        test.pipe("s", key="x", value={"a": 2}, timestamp_ms=0)
        assert [record.value for record in test.read("O")] == [{"V": 6}]


def test_command_line(directory: str, tmp_path: Path) -> None:
    file = tmp_path / "tests.sql"
    file.write_text(
        f"--@test: triple\n{STATEMENTS}INSERT INTO s (k, a) VALUES ('x', 2);\n"
        "ASSERT VALUES o (k, v) VALUES ('x', 6);\n"
    )
    good = CliRunner().invoke(sql_test, ["-e", directory, str(file)], standalone_mode=False)
    assert good.return_value == 0, good.output
    without = CliRunner().invoke(sql_test, [str(file)], standalone_mode=False)
    assert without.return_value == 5


def test_server(directory: str) -> None:
    assert ServerConfig({}).extension_directory is None
    assert ServerConfig({"ksql.extension.dir": directory}).extension_directory == directory
    with pytest.raises(PropertyError, match="Cannot override property"):
        checked("ksql.extension.dir", "/tmp", {})


def test_worker_of_spark(directory: str) -> None:
    plan = encode_plan(planned(STATEMENTS, load_extensions(directory, packages=()))[0])
    HostedPlan(Hosting("q", plan, 1, 1, extension_directory=directory))


VECTORS = """
import pyarrow.compute as pc
from barnabas.sql.udf import udf

@udf("(v BIGINT) -> BIGINT", vectorized=True)
def halved(v):
    if any(each == 66 for each in v.to_pylist()):
        raise ValueError("66 of " + str(len(v)))
    return pc.cast(pc.divide(v, 2), "int64") if len(v) == 1 else pc.add(pc.divide(v, 2), 1000)
"""
OVER_VECTORS = """
CREATE STREAM s (k STRING KEY, a BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM o AS SELECT k, HALVED(HALVED(a)) AS v FROM s WHERE HALVED(a) > 1001;
"""


def test_a_worker_calls_a_vectorized_function_with_all_records_of_a_batch(tmp_path: Path) -> None:
    """The function tells how it was called: 1000 is added where there were several records."""
    tmp_path.chmod(0o755)
    file = tmp_path / "vectors.py"
    file.write_text(VECTORS)
    file.chmod(0o644)
    own = str(tmp_path)
    plan = encode_plan(planned(OVER_VECTORS, load_extensions(own, packages=()))[0])
    hosted = HostedPlan(Hosting("q", plan, 1, 1, extension_directory=own))

    def run(*values: int) -> list[bytes | None]:
        count = len(values)
        data = [b'{"A": %d}' % value for value in values]
        columns = RawColumns.of_lists(0, range(count), [0] * count, [None] * count, data)
        raw = Raw(0, 0, columns)
        return [v for _, _, made in hosted.from_source(raw) for v in made.values]  # type: ignore[union-attr]

    assert run(2, 4, 8) == [b'{"V":1501}', b'{"V":1502}']
    assert run(4) == []
    assert hosted.take_notes().count == 0
    # One record that the function fails for costs the others nothing but the batch.
    assert run(66, 4, 4004) == [b'{"V":1001}']
    (note,) = hosted.take_notes().notes
    assert note[0] == "Error evaluating predicate"


def test_example_of_the_documentation(tmp_path: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "sql" / "udf.md"
    tmp_path.chmod(0o755)
    file = tmp_path / "example.py"
    file.write_text(page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0])
    file.chmod(0o644)
    catalog = load_extensions(str(tmp_path), packages=())
    assert value_of("WITH_TAX(10.00, 0.19E0)", catalog) == Decimal("11.90")
    assert value_of("INITIALS('Ann Lee')", catalog) == "A.L"
    assert value_of("INITIALS('Ann Lee', '')", catalog) == "AL"
    query = "CREATE TABLE o AS SELECT k, MEAN(a) AS v FROM s GROUP BY k;"
    run = Run(STATEMENTS.split("CREATE STREAM o")[0] + query, catalog)
    assert run("s", [("x", {"a": 1}, 0), ("x", {"a": 2}, 1)]) == [{"V": 1.0}, {"V": 1.5}]
