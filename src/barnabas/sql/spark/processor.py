"""An operator of a plan, for `transformWithStateInPandas` grouped by `label`.

For each query Spark loads the operator in a new Python process on the driver, only to ask which
state it has. So this module imports only what that needs; the runtime comes with the first rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.spark.archives import keep_archives
from barnabas.sql.spark.hosting import Hosting, RangeReading, SharedResults

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_KEY = StructType([StructField("key", BinaryType())])
_VALUE = StructType([StructField("value", BinaryType())])


class _Processor(StatefulProcessor):
    """An operator whose state is a map of pages."""

    _state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        keep_archives()
        self._state = handle.getMapState("pages", _KEY, _VALUE)

    def close(self) -> None:
        pass


class OperatorProcessor(_Processor):
    """The operator with a given number in the plan.

    `reading`: how it fetches the records of ranges that it gets.
    """

    def __init__(self, hosting: Hosting, number: int, reading: RangeReading | None = None) -> None:
        self._hosting = hosting
        self._number = number
        self._reading = reading

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        from barnabas.sql.spark.worker import run_operator

        label = int(key[0])
        yield run_operator(self._hosting, self._number, self._state, label, rows, self._reading)


class SharedProcessor(_Processor):
    """The one operator of a shared stream: runs the query that a label is of.

    `common`: what its queries have in common, secrets among it.
    """

    def __init__(self, common: Hosting, reading: RangeReading, results: SharedResults) -> None:
        self._common = common
        self._reading = reading
        self._results = results

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        from barnabas.sql.spark.shared_worker import run_member

        stream = self._common, self._reading, self._results
        yield run_member(*stream, self._state, int(key[0]), rows)
