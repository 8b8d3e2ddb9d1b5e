"""What the runtime of SQL plans costs on one core, without Spark and without formats.

    python -m bench.sql_runtime

Per row: the bytes of a value and of a store's key, there and back, beside pickle. Per record: a
filter and selection, a windowed count, a stream–table join; state lies as bytes in a dictionary,
as a host's store would give and take it.
"""

from __future__ import annotations

import pickle
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import FormatChoice, Formats, QueryPlan, ResultKind
from barnabas.sql.runtime.build import build
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import MemoryStore
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.rows_encoding import (
    decode_key,
    encode_key,
    pack,
    partition_of,
    unpack,
)
from barnabas.sql.runtime.stage import Stage
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.expressions import (
    Arithmetic,
    ArithmeticOperator,
    ColumnReference,
    Comparison,
    ComparisonOperator,
    FunctionCall,
    IntegerLiteral,
)
from barnabas.sql.syntax.tree import JoinKind, Window, WindowKind
from barnabas.sql.types import BIGINT, DOUBLE, STRING

ROW = [1700000000000, ["alice", "page_1", 123, 4.5, True, None, "some longer text of thirty chars"]]
KEY = ("alice", 12345)
ENCODED_ROW, ENCODED_KEY, PICKLED = pack(ROW), encode_key(KEY), pickle.dumps(ROW, 5)
REPEATS = 5
FORMATS = Formats(FormatChoice("JSON"), FormatChoice("JSON"))
USER, PAGE = Column("USER", STRING, Part.KEY), Column("PAGE", STRING)
VIEWS = Schema((USER, PAGE, Column("MS", BIGINT), Column("SCORE", DOUBLE)))
PEOPLE = Schema((USER, Column("CITY", STRING), Column("AGE", BIGINT)))


class BytesStore(MemoryStore):
    """Values as bytes, as a host's store keeps them."""

    def get(self, key: tuple[Any, ...]) -> Any:
        data = super().get(key)
        return None if data is None else unpack(data)

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        super().put(key, None if value is None else pack(value))

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        return ((key, unpack(data)) for key, data in super().range(low, high))


@dataclass
class Job:
    name: str
    step: steps.Step
    people: int | None = None
    """Which input takes the table's rows."""


def views() -> steps.StreamSource:
    return steps.StreamSource("views", FORMATS, VIEWS)


def filtered() -> steps.Step:
    condition = Comparison(
        ComparisonOperator.GREATER_THAN, ColumnReference("MS"), IntegerLiteral(-1)
    )
    source = steps.StreamFilter(views(), condition, VIEWS)
    double = Arithmetic(ArithmeticOperator.MULTIPLY, ColumnReference("SCORE"), IntegerLiteral(2))
    selected = (
        steps.SelectedColumn("PAGE", FunctionCall("UCASE", (ColumnReference("PAGE"),))),
        steps.SelectedColumn("DOUBLED", double),
    )
    made = Schema((USER, PAGE, Column("DOUBLED", DOUBLE)))
    return steps.StreamSelect(source, ("USER",), selected, made)


def counted() -> steps.Step:
    grouped = steps.StreamGroupByKey(views(), VIEWS)
    made = Schema(
        (USER, Column("KSQL_AGG_VARIABLE_0", BIGINT), Column("KSQL_AGG_VARIABLE_1", DOUBLE))
    )
    calls = (
        FunctionCall("COUNT", (ColumnReference("MS"),)),
        FunctionCall("SUM", (ColumnReference("SCORE"),)),
    )
    window = Window(WindowKind.TUMBLING, 60_000, 60_000, None, 600_000)
    return steps.StreamWindowedAggregate(grouped, (), calls, window, made)


def joined() -> steps.Step:
    table = steps.TableSource("people", FORMATS, PEOPLE)
    made = Schema((USER, *VIEWS.value, *PEOPLE.value))
    return steps.StreamTableJoin(JoinKind.INNER, "USER", views(), table, made)


def stage_of(step: steps.Step) -> Stage:
    sink = steps.StreamSink(step, "out", FORMATS, step.schema)
    plan = QueryPlan("Q", (), "OUT", ResultKind.STREAM, sink)
    (stage,) = build(plan, PlanCompiler(functions())).stages
    stores: dict[str, BytesStore] = {}
    stage.bind(lambda name: stores.setdefault(name, BytesStore()))
    return stage


def microseconds(call: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(call, number=number, repeat=REPEATS)) / number * 1e6


def report(name: str, figure: float) -> None:
    print(f"{name:<34}{figure:8.2f} µs")


def measure(job: Job, records: int = 20_000) -> float:
    stage = stage_of(job.step)
    if job.people is not None:
        for user in range(1000):
            stage.process(job.people, Record([f"user_{user}"], ["Berlin", user], 0))
    rows = [[f"page_{n % 50}", n, n / 7] for n in range(records)]
    keys = [[f"user_{n % 1000}"] for n in range(records)]

    def run() -> None:
        process = stage.process
        for n in range(records):
            process(0, Record(keys[n], rows[n], n * 10))

    return min(timeit.repeat(run, number=1, repeat=3)) / records * 1e6


def main() -> None:
    for name, call in (
        ("pack a row of 7", lambda: pack(ROW)),
        ("unpack it", lambda: unpack(ENCODED_ROW)),
        ("pickle it (for comparison)", lambda: pickle.dumps(ROW, 5)),
        ("unpickle it", lambda: pickle.loads(PICKLED)),
        ("encode a key of 2", lambda: encode_key(KEY)),
        ("decode it", lambda: decode_key(ENCODED_KEY)),
        ("partition of it", lambda: partition_of(KEY, 8)),
    ):
        report(name, microseconds(call, 50_000))
    for job in (
        Job("filter and select", filtered()),
        Job("count in windows", counted()),
        Job("join stream to table", joined(), people=1),
    ):
        report(f"a record: {job.name}", measure(job))


if __name__ == "__main__":
    main()
