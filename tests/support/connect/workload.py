"""Tables of all common types, rows and changes: what a change capture source is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "postgres_workload"
TABLES: Final = (FOLDER / "tables.sql").read_text()
ROWS: Final = (FOLDER / "rows.sql").read_text()
CHANGES: Final = tuple((FOLDER / "changes.sql").read_text().split(";\n\n"))
"""Each is a separate transaction, unless it begins one. The last one's row ends it all."""
