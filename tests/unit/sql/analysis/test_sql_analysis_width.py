"""Wide sources: the time that analysis takes grows with the number of columns, not its square."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from barnabas.sql.expressions.scope import Scope
from barnabas.sql.functions.catalog import Function
from barnabas.sql.schema import Column
from support.sql_statements import Statements

COLUMNS = [f"C{number}" for number in range(300)]
DECLARED = ", ".join(f"{name} INT" for name in COLUMNS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM S",
        f"SELECT K, {', '.join(f'{name} + 1 AS {name}' for name in COLUMNS)} FROM S",
        "SELECT * FROM S JOIN T ON S.K = T.K",
        "SELECT * FROM S PARTITION BY C3",
        f"SELECT K, {', '.join(f'SUM({name}) AS {name}' for name in COLUMNS)} FROM S GROUP BY K",
    ],
    ids=["star", "expressions", "join", "partition by", "aggregates"],
)
def test_names_of_columns_are_gathered_a_few_times(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = Statements()
    for kind, key, topic in (("STREAM", "KEY", "S"), ("TABLE", "PRIMARY KEY", "T")):
        statements.run(
            f"CREATE {kind} {topic} (K INT {key}, {DECLARED}) "
            f"WITH (KAFKA_TOPIC='{topic}', FORMAT='JSON');"
        )
    made: list[Scope] = []
    gather = Scope.of_columns

    def counted(columns: Iterable[Column], functions: Mapping[str, Function]) -> Scope:
        made.append(gather(columns, functions))
        return made[-1]

    monkeypatch.setattr(Scope, "of_columns", counted)
    statements.run(f"CREATE {'TABLE' if 'GROUP' in query else 'STREAM'} R AS {query};")
    assert len(made) < 20
