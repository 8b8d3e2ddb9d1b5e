"""The statements that docs/sql/README.md shows run, and its SELECT finds what they made."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.sql.testing import SqlTest

TEXT = (Path(__file__).parents[4] / "docs" / "sql" / "README.md").read_text()


def test_the_first_statements_run() -> None:
    (statements,) = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
    with SqlTest() as test:
        test.execute(statements)
        (row,) = test.table("per_user")
        assert "SELECT * FROM per_user WHERE user = 'ann'" in TEXT
        assert "ann" in str(row)
        assert "'N': 1" in str(row)
