"""The table of a join as state of Spark's: what runs in its Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_ABSENT: Final = object()


class TableState(StatefulProcessor):
    """Joins the rows of one bucket of keys; rows of both sides are packed."""

    def __init__(self, *, is_left: bool) -> None:
        self._is_left = is_left
        self._table: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._table = handle.getMapState("table", "key STRING", "row BINARY")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        taken: list[tuple[Any, ...]] = []
        for frame in rows:
            # A text that is null is NaN to pandas.
            keys = [one if isinstance(one, str) else None for one in frame["key"]]
            names = ("time", "order", "offset", "is_change", "row")
            taken += zip(keys, *(frame[name] for name in names), strict=True)
        known: dict[str, Any] = {}
        results = []
        for row_key, time, _, _, is_change, row in in_order(taken):
            if is_change:
                known[row_key] = row
                if row is None:
                    self._table.removeKey((row_key,))
                else:
                    self._table.updateValue((row_key,), (row,))
                continue
            match = None if row_key is None else known.get(row_key, _ABSENT)
            if match is _ABSENT:
                value = self._table.getValue((row_key,))
                match = known[row_key] = None if value is None else value[0]
            if match is not None or self._is_left:
                results.append((time, row, match))
        yield pd.DataFrame(results, columns=["time", "row", "found"])

    def close(self) -> None:
        """Nothing is held."""


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows (key, time, order, offset, is_change, …) in the order in which they count.

    A change counts no earlier than those of its key at lower offsets.
    """
    changes = sorted((row for row in rows if row[4] and row[0] is not None), key=lambda row: row[3])
    latest: dict[str, int] = {}
    placed = []
    for row in changes:
        at = latest[row[0]] = max(row[2], latest.get(row[0], row[2]))
        placed.append((at, 0, row[3], row))
    placed += [(row[2], 1, row[3], row) for row in rows if not row[4]]
    placed.sort(key=lambda one: one[:3])
    return [row for *_, row in placed]
