"""An operator of a plan, for `transformWithStateInPandas` grouped by `label`.

For each query Spark loads the operator in a new Python process on the driver, only to ask which
state it has. So this module imports only what that needs; the runtime comes with the first rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.spark.archives import keep_archives
from barnabas.sql.spark.hosting import Hosting, RangeReading, SharedResults

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_KEY = StructType([StructField("key", BinaryType())])
_CLIENT: Final = "_statefulProcessorApiClient"
"""The attribute of a handle that selects the group whose state is read and written."""
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
    """The one operator of a shared stream: keeps what its labels get, and runs them together.

    Labels come in ascending order; the last one closes the task. So all queries of a task can take
    turns, each with its label's state. `common`: the settings that all queries have in common,
    including secrets.
    """

    _gathered: dict[int, list[bytes]]
    _client: Any = None

    def __init__(self, common: Hosting, reading: RangeReading, results: SharedResults) -> None:
        self._common = common
        self._reading = reading
        self._results = results

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._gathered = {}
        self._client = getattr(handle, _CLIENT)

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        from barnabas.sql.spark.shared_worker import LabelStates, run_members
        from barnabas.sql.spark.topology import is_closing

        label = int(key[0])
        parcels = [bytes(data) for frame in rows for data in frame["parcel"].to_numpy()]
        self._gathered[label] = parcels
        if not is_closing(label):
            return
        gathered, self._gathered = self._gathered, {}
        states = LabelStates(self._state, lambda of: self._client.set_implicit_key((of,)))
        yield run_members(self._common, self._reading, self._results, states, gathered)


def why_no_shared_processor() -> str:
    """Return why this version of PySpark cannot run a `SharedProcessor`; empty if it can."""
    nothing: Any = None
    if hasattr(StatefulProcessorHandle(nothing), _CLIENT):
        return ""
    return "this version of PySpark has another handle of state"
