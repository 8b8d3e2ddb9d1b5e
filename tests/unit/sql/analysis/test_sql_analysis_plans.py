"""Plans of statements, as text: `plans.txt` beside this file holds sources, then each statement
with its steps, the sink first. A change of planning shows there as a difference to look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import ResultKind
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import Emit, WindowKind
from support.plan_summary import plan_summary
from support.sql_statements import Statements

_, SOURCES, *BLOCKS = (Path(__file__).parent / "plans.txt").read_text().split("\n\n")


@pytest.fixture
def statements() -> Statements:
    made = Statements()
    made.run(SOURCES)
    return made


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split(";")[0] for block in BLOCKS])
def test_plans(statements: Statements, block: str) -> None:
    statement, expected = block.split("\n", 1)

    summary = plan_summary(statements.plan(statement))

    assert summary.rstrip("\n") == expected.rstrip("\n")


def test_results_know_their_kind_and_window(statements: Statements) -> None:
    stream = statements.plan("CREATE STREAM o1 AS SELECT * FROM w;")
    table = statements.plan("CREATE TABLE o2 AS SELECT b, COUNT(*) FROM s GROUP BY b;")
    windowed = statements.plan(
        "CREATE TABLE o3 AS SELECT b, COUNT(*) FROM s WINDOW HOPPING (SIZE 1 HOUR, "
        "ADVANCE BY 1 MINUTE) GROUP BY b EMIT FINAL;"
    )

    assert (stream.kind, stream.sources, stream.sink) == (ResultKind.STREAM, ("W",), "O1")
    assert stream.window is not None
    assert stream.window.kind is WindowKind.SESSION
    assert (table.kind, table.window) == (ResultKind.TABLE, None)
    assert windowed.kind is ResultKind.WINDOWED_TABLE
    assert windowed.window is not None
    assert (windowed.window.size_ms, windowed.window.emit) == (3_600_000, Emit.FINAL)
    assert [stream.query_id, table.query_id, windowed.query_id] == [
        "CSAS_O1_0",
        "CTAS_O2_1",
        "CTAS_O3_2",
    ]


def test_final_windows_close_at_once_unless_a_grace_period_is_given(statements: Statements) -> None:
    for number, (grace, expected) in enumerate((("", 0), (", GRACE PERIOD 5 SECONDS", 5_000))):
        plan = statements.plan(
            f"CREATE TABLE o{number} AS SELECT b, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 HOUR"
            f"{grace}) GROUP BY b EMIT FINAL;"
        )
        step = plan.step
        while not isinstance(step, steps.StreamWindowedAggregate):
            assert isinstance(step, steps.TableSink | steps.TableSelect | steps.TableSuppress)
            step = step.source
        assert step.window.grace_ms == expected


def test_filters_read_texts_as_times(statements: Statements) -> None:
    plan = statements.plan(
        "CREATE STREAM o AS SELECT * FROM w WHERE rowtime > '2020-01-01' "
        "AND windowstart BETWEEN '2020-01-01T01+0100' AND 5;"
    )

    sink = plan.step
    assert isinstance(sink, steps.StreamSink)
    assert isinstance(sink.source, steps.StreamSelect)
    filtered = sink.source.source
    assert isinstance(filtered, steps.StreamFilter)
    assert message_text(filtered.condition) == (
        "((ROWTIME > 1577836800000) AND (WINDOWSTART BETWEEN 1577836800000 AND 5))"
    )


def test_keys_that_a_registry_describes_are_written_again_before_a_join(
    statements: Statements,
) -> None:
    statements.run(
        "CREATE STREAM x (id INT KEY, a INT) WITH (kafka_topic='x', format='AVRO');"
        "CREATE TABLE y (id INT PRIMARY KEY, c INT) WITH (kafka_topic='y', format='AVRO');"
    )
    plan = statements.plan("CREATE STREAM o AS SELECT x.id, a, c FROM x JOIN y ON x.id = y.id;")

    assert plan_summary(plan).count("REKEY") == 2
